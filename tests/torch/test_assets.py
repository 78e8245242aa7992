"""The pictures of the README are what the project draws today, byte for byte."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"

MADE_ON = "2.13"
"""The torch whose graphs are drawn; another may decompose an operator otherwise."""

on_that_torch = pytest.mark.skipif(
    not torch.__version__.startswith(f"{MADE_ON}."),
    reason=f"the pictures are made on torch {MADE_ON}, this is {torch.__version__}",
)


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("assets_make", ASSETS / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = _load()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder that the demo was written to, and its drawings."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, make.demo(folder)


@on_that_torch
@pytest.mark.parametrize("file", make.DRAWINGS)
def test_a_drawing_is_what_the_demo_draws(demo: tuple[Path, dict[str, str]], file: str) -> None:
    assert make.kept(file) == demo[1][file], f"assets/{file} changed: run python assets/make.py, and look"


def test_a_drawing_holds_no_path_of_a_machine(demo: tuple[Path, dict[str, str]]) -> None:
    folder, drawings = demo
    for text in (*drawings.values(), *(make.kept(file) for file in make.DRAWINGS)):
        assert text.startswith("<svg ")
        assert not [place for place in (folder, ROOT, Path.home()) if f"{place}/" in text]
        assert "demo.py:7" in text, "the source line is told by the file's name alone"


def test_the_pictured_report_holds_no_path_of_a_machine(demo: tuple[Path, dict[str, str]]) -> None:
    folder = demo[0]
    page = make.report(folder).read_text(encoding="utf-8")
    assert "demo.py:6" in page
    assert str(folder) not in page and str(ROOT) not in page


def test_the_screenshot_is_whole_and_light() -> None:
    assert make.flaw(make.kept_bytes(make.SCREENSHOT)) == ""


def test_a_bad_screenshot_is_told() -> None:
    good = make.kept_bytes(make.SCREENSHOT)
    assert make.flaw(b"") == "is not a PNG"
    assert make.flaw(good[:-20]) == "is cut short"
    assert "is damaged" in make.flaw(good[:5000] + bytes([good[5000] ^ 1]) + good[5001:])
    assert make.packed(good) == good, "it is packed already"


@on_that_torch
def test_check_tells_what_differs(tmp_path: Path) -> None:
    copied = tmp_path / "assets"
    shutil.copytree(ASSETS, copied, ignore=shutil.ignore_patterns("__pycache__"))
    drawing = copied / make.DRAWINGS[0]
    drawing.write_text(drawing.read_text(encoding="utf-8").replace(">sin<", ">tan<"), encoding="utf-8")
    before = {p.name: p.read_bytes() for p in copied.iterdir()}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = ['make', '--check']\n"
            f"import runpy; runpy.run_path({str(copied / 'make.py')!r}, run_name='__main__')",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert re.findall(r"assets/(\S+) differs", done.stderr) == [make.DRAWINGS[0]]
    assert {p.name: p.read_bytes() for p in copied.iterdir() if p.is_file()} == before


@pytest.mark.browser
@pytest.mark.skipif(make.chromium() is None, reason="no Chromium on PATH")
def test_the_screenshot_can_be_taken_anew(demo: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    browser = make.chromium()
    assert browser is not None
    assert make.flaw(make.screenshot(browser, make.report(demo[0]), tmp_path)) == ""
