"""The plugin of pytest: a fixture ``compile_lens``, and a page for each test that failed.

It is registered wherever compile_lens is installed, and does nothing for a suite that does not use it: it imports
nothing, torch least of all, until a test takes the fixture and asks it for something.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .results.capture import Capture

MOST = 8
"""Pages of one test."""

NAME = 120
"""Characters of a test's name in the name of its page."""


class Lens:
    """``compile_lens`` for one test: every name of the package, loaded when it is asked for.

    The captures that a test makes with it are those of which ``--compile-lens-report`` keeps pages.
    """

    def __init__(self) -> None:
        self._seen: dict[int, Capture] = {}

    def __getattr__(self, name: str) -> Any:
        import compile_lens as package

        value = getattr(package, name)
        if isinstance(value, type) or not callable(value):
            return value

        @functools.wraps(value)
        def called(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            made = value(*args, **kwargs)
            self._see(made)
            return made

        return called

    def _see(self, made: Any) -> None:
        capture = _capture(made)
        if capture is not None:
            self._seen[id(capture)] = capture


_LENS = pytest.StashKey[Lens]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("compile-lens").addoption(
        "--compile-lens-report",
        metavar="DIR",
        help="keep a page of each capture that a failing test made with the fixture compile_lens, or failed about",
    )


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("compile_lens_report")
    if given and Path(given).exists() and not Path(given).is_dir():
        raise pytest.UsageError(
            f"--compile-lens-report={given} is not a folder: name one, or one that is not there"
        )


@pytest.fixture
def compile_lens(request: pytest.FixtureRequest) -> Lens:
    """The names of compile_lens (``compile_lens.expect(f, x)``), loaded when they are asked for."""
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
    lens = item.stash.get(_LENS, None)
    seen = dict(lens._seen) if lens is not None else {}
    raised = _capture(call.excinfo.value) if call.excinfo is not None else None
    if raised is not None:
        seen[id(raised)] = raised
    lines = _kept(list(seen.values()), Path(folder).absolute(), item.nodeid)
    if lines:
        report.sections.append(("compile_lens", "\n".join(lines)))


def _capture(thing: Any) -> Capture | None:
    """The capture that something of compile_lens's is, or is about; asked without importing what tells them."""
    if any((kind.__module__, kind.__name__) == _HOME for kind in type(thing).__mro__):
        found: Capture = thing
        return found
    ours = any(kind.__module__.partition(".")[0] == "compile_lens" for kind in type(thing).__mro__)
    return _capture(getattr(thing, "capture", None)) if ours else None


_HOME = ("compile_lens.results.capture", "Capture")


def _kept(captures: list[Capture], folder: Path, test: str) -> list[str]:
    """Writes the pages of a test. A page that cannot be written is told, and fails nothing else."""
    lines = []
    plain = re.sub(r"\W+", "-", test.rpartition("/")[2]).strip("-")[:NAME]
    mark = hashlib.sha256(test.encode("utf-8", "surrogatepass")).hexdigest()[:6]  # names that become the same
    for number, capture in enumerate(captures[:MOST], 1):
        path = folder / f"{plain}-{mark}{f'-{number}' if len(captures) > 1 else ''}.html"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            capture.save(path)
        except Exception as error:
            lines.append(f"no page of {capture.function}: {type(error).__name__}: {error}")
        else:
            lines.append(f"page of {capture.function}: {path}")
    if len(captures) > MOST:
        lines.append(f"{len(captures) - MOST} captures more have no page")
    return lines
