"""Shared fixtures: golden files and their switch, a program of the test's own, a warm torch."""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import logging
import os
import pkgutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from nightly import Again, Nightly
from passed import depends_on_triton, in_report, passed
from tiers import EXHAUSTIVE, FULL, QUICK, TIERS, Case, chosen, file_is_excluded

# Torch reads it: with it set, a program that hides a decomposition is refused and an operator's aliased output is
# an error. Tests compare programs as users run them, on whatever machine the tests run.
os.environ.pop("CI", None)

settings.register_profile(
    "no deadline", deadline=None
)  # the duration of an example depends on the machine, not the code
settings.load_profile("no deadline")

ROOT = Path(__file__).resolve().parents[1]
HELPERS = ROOT / "tests" / "helpers"
GOLDEN = ROOT / "tests" / "golden"

TORCH = importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torch.nn") is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files of which a tier runs no test, and, without torch, those that need it."""
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return (not TORCH and "pytest.mark.torch" in text) or file_is_excluded(text, config.option.tier) or None


@pytest.fixture(scope="session", autouse=True)
def _modules_of_views() -> None:
    """Import modules before a test does. pytest rewrites each module of a package with a plugin on its first import,
    and CPython's compiler may raise ``SystemError`` if garbage collection parses something meanwhile."""
    import compile_lens

    collects = gc.isenabled()
    gc.disable()
    try:
        for room in ("layout", "measures", "views"):
            folder = str(Path(compile_lens.__file__).parent / room)
            for module in pkgutil.walk_packages([folder], f"compile_lens.{room}."):
                if not module.name.endswith(".child"):
                    importlib.import_module(module.name)
    finally:
        if collects:
            gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="rewrite the golden files instead of comparing with them",
    )
    parser.addoption(
        "--passed",
        type=Path,
        metavar="REPORT",
        help="leave out what passed in the run of this JUnit report, but for tests that Triton may change",
    )
    helps = {
        QUICK: "run the quick tier also of the files, folders or words that are named",
        FULL: "run all that CI runs: each test, with all its cases but of a few",
        EXHAUSTIVE: "run every case of every test; a run that was stopped goes on where it was",
    }
    for tier in TIERS:
        parser.addoption(f"--{tier}", action="store_const", const=tier, dest="tier", help=helps[tier])


def pytest_configure(config: pytest.Config) -> None:
    """Run tests named on the command line in full; without names, use the quick tier."""
    worker = getattr(config, "workerinput", None)
    if worker:
        config.option.tier = worker["tier"]
        return
    config.pluginmanager.register(_FailuresAtOnce(config))
    everything = [ROOT, ROOT / "tests"]
    paths = [Path(config.invocation_params.dir, str(arg).partition("::")[0]).resolve() for arg in config.args]
    cut = bool(config.option.keyword or config.option.markexpr)
    named = cut or any(p not in everything for p in paths)
    config.option.tier = config.option.tier or (FULL if named else QUICK)
    single = any("::" in str(arg) for arg in config.args)
    if config.option.tier == EXHAUSTIVE and not cut and not config.option.collectonly:
        plugin = Again(ROOT) if single else Nightly(ROOT, config.args if named else ())
        config.pluginmanager.register(plugin, "again" if single else "nightly")


class _FailuresAtOnce:
    """Prints each failure when it happens: an interrupted run has no summary."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(getattr(crash, "message", "")).partition("\n")[0]
            terminal.write_line(f"\n{report.when} of {report.nodeid} failed: {message[:200]}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["tier"] = node.config.option.tier


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.option.tier == QUICK:
        terminalreporter.write_line(
            "This was the quick tier. The rest: pytest --full (what CI runs), pytest --exhaustive (every case)."
        )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Limit the workers: each imports torch and compiles, and more than a few cost more memory than they save time."""
    return min(os.cpu_count() or 1, 4)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:  # before pytest heeds -m
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
    cases = {item.nodeid: _case(item) for item in items}
    ids = chosen([*cases.values()], config.option.tier)
    if config.option.passed:
        earlier = passed(config.option.passed.read_text(encoding="utf-8"))
        depends = functools.cache(depends_on_triton)  # which reads the file
        ids -= {
            item.nodeid
            for item in items
            if in_report(item.nodeid) in earlier and not depends(cases[item.nodeid].marks, item.path)
        }
    nightly = config.pluginmanager.get_plugin("nightly")
    worker = getattr(config, "workerinput", None)
    ids.difference_update(worker.get("finished", ()) if worker else nightly.outcomes if nightly else ())
    if len(ids) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ids])
        items[:] = [item for item in items if item.nodeid in ids]
    if worker:  # the long files first, so that no process ends long after the others
        weights: Counter[str] = Counter()
        for item in items:
            weights[_file(item)] += next(
                (w for mark, w in WEIGHTS.items() if item.get_closest_marker(mark)), 1
            )
        items.sort(key=lambda item: -weights[_file(item)])


def pytest_collection_finish() -> None:
    """Keep torch from writing its trace in each test: pytest adds handlers to every logger that does not propagate, and
    torch formats all graphs, code and events of a compile if there is one."""
    logging.getLogger("torch.__trace").propagate = True


WEIGHTS = {"slow": 300, "browser": 50, "torch": 20}
"""Rough duration of a test with a mark, relative to one without."""


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _case(item: pytest.Item) -> Case:
    limits = item.get_closest_marker("cases")
    return Case(
        item.nodeid,
        frozenset(mark.name for mark in item.iter_markers()),
        dict(limits.kwargs) if limits else {},
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send tests that use the same captures to one process together, and all others to an idle one."""
    if config.getoption("dist") != "loadgroup":
        return None
    from together import Together

    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Add the last output of a failed child process to the failure that it causes."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, subprocess.CalledProcessError) and error.stderr:
        report.sections.append(("end of the other process's stderr", str(error.stderr)[-3000:]))
    return report


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return ``golden(name, text)``, which compares a text with ``tests/golden/<name>``; --update-goldens writes it."""
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


@pytest.fixture(scope="session")
def warm() -> None:
    """Capture once, so that torch's first-compile initialization precedes every snapshot."""
    import torch

    from compile_lens import capture

    capture(lambda x: torch.sin(x) * 2, torch.rand(4, requires_grad=True))


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., str]:
    """Run a Python program in its own process and return its output.

    ``env`` overrides variables (``None`` removes one). A failure shows the program's stderr.
    """

    def run(program: str, env: dict[str, str | None] | None = None, timeout: float = 240) -> str:
        file = tmp_path / "program.py"
        file.write_text(program)
        merged: dict[str, str | None] = {**os.environ, **(env or {})}
        paths = [str(ROOT), str(HELPERS), os.environ.get("PYTHONPATH", "")]
        merged["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
        done = subprocess.run(
            [sys.executable, str(file)],
            env={k: v for k, v in merged.items() if v is not None},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run
