"""The viewer's scripts outside of a browser: their types, and their unit tests in node.

``npm ci`` in this folder brings the type checker; the unit tests need node alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from needs import not_here

from compile_lens.views.viewer.embed import bare, script

pytestmark = pytest.mark.browser

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[1] / "compile_lens" / "views" / "static" / "viewer"


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def _node() -> str:
    found = shutil.which("node")
    if found is None:
        not_here("node is not on PATH: install Node.js 18 or newer")
    return found


def test_the_unit_tests_pass() -> None:
    said = _run(_node(), "--test", "--test-reporter=tap")
    (passed,) = re.findall(r"^# pass (\d+)$", said, re.MULTILINE)
    (skipped,) = re.findall(r"^# skipped (\d+)$", said, re.MULTILINE)
    files = list(HERE.glob("*.test.mjs"))
    assert files and int(passed) >= len(files), "every file holds a test"
    assert int(skipped) == 0


def test_the_types_hold() -> None:
    node = _node()
    compiler = HERE / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.is_file():
        not_here("the type checker is not installed: run npm ci in tests/viewer")
    _run(node, str(compiler), "--noEmit", "-p", "tsconfig.json")


def test_the_joined_script_is_one(tmp_path: Path) -> None:
    """What the page runs, read by node as a browser would read it."""
    for name, source in (
        ("page.cjs", script()),
        ("boot.cjs", bare((SCRIPTS / "boot.js").read_text("utf-8"))),
    ):
        file = tmp_path / name
        file.write_text(source, encoding="utf-8")
        _run(_node(), "--check", str(file))
