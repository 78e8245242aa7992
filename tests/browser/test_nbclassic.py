"""Captures in the classic notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .notebook_tests import NotebookTests, NotebookUseTests
from .notebooks import Classic, placed
from .servers import Server
from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]


@pytest.fixture
def opened(page: Page, watch: Watch, nbclassic: Server, book: Path) -> Callable[..., Classic]:
    """Return ``opened(trusted=…)``, which opens the notebook."""

    def open(*, trusted: bool) -> Classic:
        return Classic(page, watch, nbclassic, placed(book, nbclassic.homes, "book", trusted=trusted))

    return open


@pytest.mark.exhaustive
class TestClassic(NotebookTests):
    """Tests of every front end."""


class TestUseOfClassic(NotebookUseTests):
    """The remaining tests of every front end."""
