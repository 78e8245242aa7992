"""pytest plugin: a fixture ``compile_lens``, and a page for each capture of a failed test.

It is registered wherever compile_lens is installed, and does nothing for a suite that does not use it: it imports
nothing, not even torch, until a test takes the fixture and uses one of its names.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .trials.checks import Lens

_LENS = pytest.StashKey["Lens"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("compile-lens").addoption(
        "--compile-lens-report",
        metavar="DIR",
        help="write a page for each capture of a failing test into DIR",
    )


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("compile_lens_report")
    if given and os.path.exists(given) and not os.path.isdir(given):
        raise pytest.UsageError(
            f"--compile-lens-report={given} is not a folder: name a folder, existing or new"
        )


@pytest.fixture
def compile_lens(request: pytest.FixtureRequest) -> Lens:
    """The names of compile_lens (``compile_lens.expect(f, x)``), loaded on first use."""
    from .trials.checks import Lens

    lens = Lens()
    request.node.stash[_LENS] = lens
    return lens


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    report = outcome.get_result()
    folder = item.config.getoption("compile_lens_report")
    if not folder or not report.failed:
        return
    from .trials.checks import Lens, pages

    lens = item.stash.get(_LENS, None) or Lens()
    captures = lens.captures(call.excinfo.value if call.excinfo is not None else None)
    lines = pages(captures, Path(folder).absolute(), item.nodeid)
    if lines:
        report.sections.append(("compile_lens", "\n".join(lines)))
