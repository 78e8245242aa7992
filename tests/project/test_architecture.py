"""Every file, name and arrow that ``ARCHITECTURE.md`` and ``CONTRIBUTING.md`` mention exists."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import test_walls as walls
from faults import for_each

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "compile_lens"
sys.path.append(str(ROOT / "assets"))  # its files are scripts, not installed modules

import flow  # noqa: E402

DOCUMENTS = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")
}
QUOTED = [
    (name, quoted)
    for name, text in DOCUMENTS.items()
    for quoted in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
]
PATHS = sorted({(name, q) for name, q in QUOTED if re.fullmatch(r"[\w./-]+(/|\.(py|md|toml|ipynb))", q)})
NAMES = sorted({(name, q) for name, q in QUOTED if re.fullmatch(r"[A-Z]{4,}", q)})

TOLD_SHORT = ("_torch/", "_torch/targets/", "views/", "views/live/", "views/live/web/", "views/words/")
"""Rooms whose files and folders the text names without the room, because it is clear which one is meant."""


MADE = ("dist/",)
"""Folders that a command of the text creates."""


def test_the_documents_tell_of_something() -> None:
    assert len(PATHS) > 60 and {"STAGES", "ORDER", "ABSENT"} <= {q for _, q in NAMES}


@for_each(PATHS)
def test_a_path_that_is_told_is_there(document: str, path: str) -> None:
    rooms = (ROOT, PACKAGE, *(PACKAGE / room for room in TOLD_SHORT))
    assert path in MADE or any((room / path).exists() for room in rooms), f"{document} tells of {path}"


@for_each(NAMES)
def test_a_name_that_is_told_is_in_the_file_beside_it(document: str, name: str) -> None:
    text = DOCUMENTS[document]
    files = [
        ROOT / path if (ROOT / path).is_file() else PACKAGE / path
        for path in re.findall(r"`([\w./]+\.py|\.ci/run)`", text)
        if (ROOT / path).is_file() or (PACKAGE / path).is_file()
    ]
    assert any(re.search(rf"^{name}\b", file.read_text("utf-8"), re.M) for file in files), name


def test_architecture_fits_two_pages_and_one_for_the_live_page() -> None:
    assert len(DOCUMENTS["ARCHITECTURE.md"].split()) <= 1500


def test_every_room_is_in_the_picture_and_in_the_table() -> None:
    folders = {p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists()}
    assert set(flow.ROOMS) == folders
    rooms = set(re.findall(r"^\| `(\w+)/` \|", DOCUMENTS["ARCHITECTURE.md"], re.M))
    assert rooms == folders


@pytest.mark.full
def test_every_arrow_of_the_picture_is_an_import() -> None:
    rooms = set(walls.between((), walls.every_arrow()))
    calls = {arrow for arrow in flow.CALLS if not set(arrow) & set(flow.YOURS)}
    assert calls <= rooms, "who calls imports whom it calls"
    brought = {arrow for arrow in flow.BRINGS if not set(arrow) & set(flow.YOURS)}
    wrong = [(one, other) for one, other in brought if not {(one, other), (other, one)} & rooms]
    assert not wrong


@pytest.mark.torch
def test_the_picture_is_drawn_from_these_rooms() -> None:
    """Drawn by ``assets/make.py``, with the Graphviz that the package ships."""
    import make

    assert make.kept("rooms.svg") == make.rooms(), "run python assets/make.py, and look"


def test_each_room_has_its_tests() -> None:
    """Each room has a test folder; tests of the pages' scripts and of user-facing objects have other names."""
    elsewhere = {"results": "views"}
    for room in flow.ROOMS:
        assert list((ROOT / "tests" / elsewhere.get(room, room)).rglob("test_*.py")), room
