"""The viewer's scripts and styles outside of a browser: types, formatting, unit tests in node, and
that the built files in a page match their sources.

``npm ci`` in this folder brings what is needed beside Node.js.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from needs import not_here

pytestmark = pytest.mark.browser

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "compile_lens" / "views" / "live" / "built"


def _npm(script: str, *arguments: str) -> str:
    """Return the output of a command of ``package.json``; the test fails if the command does."""
    npm = shutil.which("npm")
    if npm is None:
        not_here("npm is not on PATH: install Node.js 18 or newer")
    if not (HERE / "node_modules" / ".bin").is_dir():
        not_here("the tools of the scripts are not installed: run npm ci in tests/viewer")
    done = subprocess.run(
        [npm, "run", "--silent", script, "--", *arguments],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def test_the_unit_tests_pass() -> None:
    output = _npm("test", "--test-reporter=tap")
    (passed,) = re.findall(r"^# pass (\d+)$", output, re.MULTILINE)
    (skipped,) = re.findall(r"^# skipped (\d+)$", output, re.MULTILINE)
    files = list(HERE.glob("*.test.mjs"))
    assert files and int(passed) >= len(files), "every file holds a test"
    assert int(skipped) == 0


def test_the_types_and_the_form_hold() -> None:
    _npm("check")


def test_what_a_page_carries_was_built_from_these(tmp_path: Path) -> None:
    _npm("build", f"--outdir={tmp_path}")
    fresh = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_bytes() for file in BUILT.iterdir()}
    stale = sorted(name for name in {*fresh, *kept} if fresh.get(name) != kept.get(name))
    assert not stale, f"{', '.join(stale)}: run npm run build in tests/viewer, and commit what it wrote"
