"""The gallery in ``assets/gallery`` matches its programs today, and its texts' claims are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "assets"))  # its files are scripts, not installed modules

import exhibits  # noqa: E402
import make  # noqa: E402

MADE_ON = "2.13"
"""The torch that the pages show; another may decompose, fuse or generate code differently."""


@pytest.mark.slow
@pytest.mark.skipif(
    not torch.__version__.startswith(f"{MADE_ON}."), reason=f"the gallery is of torch {MADE_ON}"
)
def test_is_what_the_programs_become_today() -> None:
    """Generated in its own process, as by ``make``."""
    command = [sys.executable, str(ROOT / "assets" / "make.py"), "--check", "--only", "gallery"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]


def test_no_page_is_left_of_a_program_that_is_gone() -> None:
    pages = {Path(file).stem for file in make.gallery_here() if file.endswith(".md")}
    assert pages == {*exhibits.NAMES, "README"}


def row(name: str, case: str) -> dict[str, int]:
    """Return figures of a case as the page has them."""
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in make.kept(f"gallery/{name}.md").splitlines()
        if line.startswith("| ")
    ]
    (found,) = (line for line in table if line[0] == case)
    return {key: int(re.sub(r"\D", "", value)) for key, value in zip(table[0][1:], found[1:], strict=True)}


SIZE = 4 * 2**20
"""Bytes of the input tensors of the larger programs."""


@pytest.mark.parametrize(
    ("name", "case", "known"),
    [
        ("sin2_cos2", "cpu:avx2", {"eager ops": 17, "launches": 2, "bytes after": 5 * 4000}),
        (
            "square_square",
            "cpu:avx2",
            {"eager ops": 2, "launches": 1, "bytes before": 4 * SIZE, "bytes after": 2 * SIZE},
        ),
        ("softmax", "dim 0, cpu:avx2", {"bytes after": 6_299_648}),
        ("softmax", "dim 0, mps", {"launches": 5}),
        ("softmax", "dim -1, mps", {"launches": 1, "bytes after": 2 * 4 * 512 * 512}),
        ("custom_op", "custom", {"launches": 3, "bytes after": 4 * SIZE}),
        ("custom_op", "plain", {"launches": 1, "bytes after": 2 * SIZE}),
        ("attention", "plain", {"ATen ops": 1, "launches": 1}),
        ("attention", "with tanh", {"launches": 3}),
        ("determinants", "in closed form", {"launches": 1, "bytes after": 2000 * 10 * 4}),
        *(
            ("ddp_buckets", f"{size} MB", {"graphs": graphs})
            for size, graphs in ((25, 2), (3, 3), (2, 4), (1, 6))
        ),
    ],
)
def test_shows_what_was_counted_by_hand(name: str, case: str, known: dict[str, int]) -> None:
    figures = row(name, case)
    assert {key: figures[key] for key in known} == known


def test_every_drawing_is_shown_with_words_for_it() -> None:
    drawn = {Path(file).name for file in make.gallery_here() if file.endswith(".svg")}
    shown: set[str] = set()
    for name in exhibits.NAMES:
        for words, file in re.findall(r"!\[([^]]*)\]\(([^)]*)\)", make.kept(f"gallery/{name}.md")):
            assert re.search(r"\d+ nodes?, \d+ calls?", words), file
            shown.add(file)
    assert shown == drawn and drawn


def test_every_page_is_reached_and_holds_no_path_of_a_machine() -> None:
    index = make.kept("gallery/README.md")
    for file in make.gallery_here():
        text = make.kept(file)
        assert not [place for place in (ROOT, Path.home()) if f"{place}/" in text], file
        assert file.endswith((".svg", "README.md")) or f"({Path(file).name})" in index
