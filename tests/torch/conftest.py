"""Fixtures of the tests that need torch. Without torch this folder is left out, not failed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("torch.nn") is None:
    collect_ignore_glob = ["test_*.py"]

ROOT = Path(__file__).resolve().parents[2]


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
        paths = [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
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
