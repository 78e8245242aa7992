"""What every test may use: golden files and their one switch."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write the golden files anew instead of comparing with them",
    )
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="also run what takes many minutes: all that a few ordinary tests take samples of",
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Each worker imports torch and compiles: more than a few of them want more memory than they save time."""
    return min(os.cpu_count() or 1, 4)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    long = [item for item in items if item.get_closest_marker("exhaustive")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)`` compares a text with ``tests/golden/<name>``; --update-goldens writes it."""
    update = bool(request.config.getoption("--update-goldens"))

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        if update:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(text.encode("utf-8"))
            return
        if not file.exists():
            pytest.fail(
                f"there is no golden file {name}: run pytest --update-goldens, and look at what it wrote"
            )
        wanted = file.read_bytes().decode("utf-8")
        assert text == wanted, f"{name} changed: if that is meant, run pytest --update-goldens"

    return check
