"""The files of ``assets/make.py`` match what the project draws today, drawings byte for byte."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from full_text import full
from needs import not_here

from compile_lens import Capture

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"

MADE_ON = "2.13"
"""The torch whose graphs are drawn; another may decompose an operator differently."""

on_that_torch = pytest.mark.skipif(
    not torch.__version__.startswith(f"{MADE_ON}."),
    reason=f"the pictures are made on torch {MADE_ON}, this is {torch.__version__}",
)

sys.path.append(str(ASSETS))  # its files are scripts, not installed modules

import make  # noqa: E402
import png  # noqa: E402
import screens  # noqa: E402

FILES = tuple(screen.file for screen in screens.SCREENS)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return the folder that the demo was written to, and its drawings."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, make.demo(folder)


@on_that_torch
@pytest.mark.parametrize("file", make.DEMO)
def test_a_drawing_is_what_the_demo_draws(demo: tuple[Path, dict[str, str]], file: str) -> None:
    assert make.kept(file) == demo[1][file], f"assets/{file} changed: run python assets/make.py, and look"


def test_a_drawing_holds_no_path_of_a_machine(demo: tuple[Path, dict[str, str]]) -> None:
    folder, drawings = demo
    for text in (*drawings.values(), *(make.kept(file) for file in make.DEMO)):
        assert text.startswith("<svg ")
        assert not [place for place in (folder, ROOT, Path.home()) if f"{place}/" in text]
        assert "demo.py:7" in text, "the source line is told by the file's name alone"


def _is_independent(capture: Capture, *folders: Path) -> None:
    text = capture.to_json()
    assert not [place for place in (*folders, ROOT, Path.home()) if f"{place}/" in text]
    assert capture.timings == () and capture.created == "", "they are others each time"


def test_the_pictured_report_holds_no_path_of_a_machine(demo: tuple[Path, dict[str, str]]) -> None:
    capture = make.pictured(demo[0])
    _is_independent(capture, demo[0])
    assert {source.file for source in capture.sources} == {"demo.py"}


@pytest.mark.full
@pytest.mark.parametrize("program", sorted({s.capture for s in screens.SCREENS} - {"demo", screens.NOTEBOOK}))
@pytest.mark.cases(full=1)
def test_a_pictured_program_holds_no_path_of_a_machine(program: str) -> None:
    capture = screens.captured(program)
    _is_independent(capture)
    assert {source.file for source in capture.sources} == {f"{program}.py"}
    graphs = capture.compilations[0].graphs
    assert graphs["forward" if "forward" in graphs else "inference"].calls


def test_every_picture_is_promised() -> None:
    assert {path.name for path in ASSETS.glob("*.png")} == set(FILES)
    assert {path.name for path in ASSETS.glob("*.svg")} == set(make.DRAWINGS)


@pytest.mark.parametrize("screen", screens.SCREENS, ids=FILES)
def test_a_picture_is_whole_and_light(screen: screens.Screen) -> None:
    assert make.flaw(screen, make.kept_bytes(screen.file)) == ""


def test_a_bad_picture_is_told() -> None:
    screen, other = screens.SCREENS[:2]
    good = make.kept_bytes(screen.file)
    assert make.flaw(screen, b"") == "is not a PNG"
    assert make.flaw(screen, good[:-20]) == "is cut short"
    assert "is damaged" in make.flaw(screen, good[:5000] + bytes([good[5000] ^ 1]) + good[5001:])
    assert (
        make.flaw(other, good)
        == f"is {screen.width} × {screen.height} pixels, not {other.width} × {other.height}"
    )
    assert "at most 1,000 are allowed" in png.flaw(good, screen.size, 1000)


def _written(pixels: png.Pixels, filters: tuple[int, ...]) -> bytes:
    """Return a PNG of RGB pixels whose rows alternate between these filters."""
    height, width, _ = pixels.shape
    rows = []
    above = np.zeros(width * 3, np.int32)
    for number, row in enumerate(pixels.reshape(height, -1).astype(np.int32)):
        left = np.concatenate([np.zeros(3, np.int32), row[:-3]])
        corner = np.concatenate([np.zeros(3, np.int32), above[:-3]])
        near = np.stack([left, above, corner])
        closest = np.abs(near - (left + above - corner)).argmin(axis=0)
        paeth = np.take_along_axis(near, closest[None], axis=0)[0]
        filter_ = filters[number % len(filters)]
        guess = [np.zeros_like(row), left, above, (left + above) // 2, paeth][filter_]
        rows.append(bytes([filter_]) + (row - guess).astype(np.uint8).tobytes())
        above = row
    header = png.struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return png.joined([(b"IHDR", header), (b"IDAT", png.zlib.compress(b"".join(rows)))])


@pytest.mark.parametrize("filter_", range(5))
def test_every_filter_of_a_png_is_read(filter_: int) -> None:
    pixels = np.random.default_rng(filter_).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    assert (png.decoded(_written(pixels, (filter_, 4))) == pixels).all()


def _shown(reduced: bytes) -> png.Pixels:
    """Return the pixels of a picture with a palette."""
    blocks = dict(png.chunks(reduced))
    width, height = png.struct.unpack_from(">II", blocks[b"IHDR"])
    rows = np.frombuffer(png.zlib.decompress(blocks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    return np.frombuffer(blocks[b"PLTE"], np.uint8).reshape(-1, 3)[rows[:, 1:]]


def test_few_colours_are_kept_as_they_are() -> None:
    palette = np.random.default_rng(0).integers(0, 256, (200, 3), dtype=np.uint8)
    pixels = palette[np.random.default_rng(1).integers(0, 200, (40, 50))]
    assert (_shown(png.reduced(_written(pixels, (0, 1, 2)))) == pixels).all()


def test_many_colours_become_near_ones_and_grounds_stay() -> None:
    pixels = np.full((64, 64, 3), 246, np.uint8)
    shades = np.arange(1024, dtype=np.int32)
    pixels[:16] = np.stack([shades % 256, shades // 8, 255 - shades % 256], axis=1).reshape(16, 64, 3)
    shown = _shown(png.reduced(_written(pixels, (0,))))
    assert (shown[16:] == 246).all()
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) <= png.MOST_COLOURS
    assert np.abs(shown.astype(int) - pixels).max() < 32


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return the folder in another place."""
    return Path(shutil.copytree(ASSETS, tmp_path / "assets", ignore=shutil.ignore_patterns("__pycache__")))


def _state(folder: Path) -> dict[str, bytes]:
    return {full(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"}


@pytest.mark.exhaustive
@on_that_torch
def test_check_tells_what_differs_and_writes_nothing(copied: Path) -> None:
    drawing = copied / make.DRAWINGS[0]
    drawing.write_text(drawing.read_text(encoding="utf-8").replace(">sin<", ">tan<"), encoding="utf-8")
    (copied / FILES[0]).write_bytes(b"")
    before = _state(copied.parent)
    done = subprocess.run(
        [sys.executable, str(copied / "make.py"), "--check", "--only", "drawings", "pictures"],
        cwd=copied.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert re.findall(r"^(\S+) (differs|is not a PNG)", done.stderr, re.MULTILINE) == [
        (f"assets/{make.DRAWINGS[0]}", "differs"),
        (f"assets/{FILES[0]}", "is not a PNG"),
    ]
    assert _state(copied.parent) == before


def test_what_was_not_asked_for_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for other in ("drawings", "gallery"):
        monkeypatch.setattr(make, other, lambda *_: pytest.fail("it was not asked for"))
    monkeypatch.setattr(sys, "argv", ["make.py", "--check", "--only", "pictures"])
    assert make.main() == 0
    output = capsys.readouterr().out
    assert all(file in output for file in FILES) and not [file for file in make.DRAWINGS if file in output]


@pytest.mark.browser
@pytest.mark.exhaustive
def test_a_picture_can_be_taken_anew(demo: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    if reason := screens.missing():
        not_here(reason)
    wanted = screens.SCREENS[0]
    ((screen, picture),) = screens.taken(make.pictured(demo[0]), tmp_path, (wanted,))
    assert screen is wanted and make.flaw(screen, picture) == ""
