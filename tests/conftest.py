"""What every test may use: golden files and their one switch, a program of its own, a torch that is warm."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sampled
from hypothesis import settings

# Torch reads it: with it set, a program that hides a decomposition is refused and an operator's aliased output is an
# error. What is compared here are programs as users run them, on whatever machine the tests are.
os.environ.pop("CI", None)

settings.register_profile(
    "no deadline", deadline=None
)  # how long an example takes is the machine's, not the code's
settings.load_profile("no deadline")

ROOT = Path(__file__).resolve().parents[1]
HELPERS = ROOT / "tests" / "helpers"
GOLDEN = ROOT / "tests" / "golden"

TORCH = importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torch.nn") is not None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Without torch the files that say they need it are left out, not failed."""
    if TORCH or collection_path.suffix != ".py":
        return None
    return "pytest.mark.torch" in collection_path.read_text(encoding="utf-8") or None


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Each worker imports torch and compiles: more than a few of them want more memory than they save time."""
    return min(os.cpu_count() or 1, 4)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--exhaustive"):
        usual = [item for item in items if not item.get_closest_marker("exhaustive")]
        dear = set(sampled.left_out([(item.nodeid, item) for item in usual]))
        kept = [item for item in usual if item not in dear]
        if len(kept) < len(items):
            still = set(kept)
            config.hook.pytest_deselected(items=[item for item in items if item not in still])
            items[:] = kept
    if hasattr(config, "workerinput"):  # the long ones first, so that no process ends long after the others
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that look at the same captures go to one process together; all others to the one that is free."""
    if config.getoption("dist") != "loadgroup":
        return None
    from together import Together

    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """A failure because another process failed shows what that one wrote last."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, subprocess.CalledProcessError) and error.stderr:
        report.sections.append(("end of the other process's stderr", str(error.stderr)[-3000:]))
    return report


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


@pytest.fixture(scope="session")
def warm() -> None:
    """One capture, so that what torch sets up at its first compile is there before a snapshot is taken."""
    import torch

    from compile_lens import capture

    capture(lambda x: torch.sin(x) * 2, torch.rand(4, requires_grad=True))


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., str]:
    """Run a Python program in a process of its own and return what it printed.

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
