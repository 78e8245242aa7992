"""Generates everything here: ``python assets/make.py``.

``gallery/`` has a page for each of its programs (``exhibits.py``). ``compile-lens demo`` draws two SVGs, byte for
byte; ``rooms.svg`` is the picture of ``ARCHITECTURE.md``. The pictures of the viewer need a Chromium: without
one, they stay as they are, and a message says so. ``--check`` writes nothing and exits with 1 if a drawing or a page
differs from the one in this folder, or if a picture is not a PNG of the promised size.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import exhibits
import flow
import png
import screens

from compile_lens import Capture, cli

HERE = Path(__file__).resolve().parent
DEMO = ("sin2cos2-forward.svg", "sin2cos2-backward.svg")
DRAWINGS = (*DEMO, "rooms.svg")
PARTS = ("drawings", "gallery", "pictures")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with what is here, and write nothing")
    parser.add_argument(
        "--only", choices=PARTS, nargs="+", default=PARTS, help="make or compare these, and nothing else"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results: dict[str, str] = {}
        if "drawings" in given.only:
            results |= drawings(folder)
        if "gallery" in given.only:
            results |= gallery()
        if given.check:
            return _check(results, "pictures" in given.only)
        _write(results, "gallery" in given.only)
        return _write_pictures(folder) if "pictures" in given.only else 0


def drawings(folder: Path) -> dict[str, str]:
    """Return the drawings by the names they have here; ``folder`` gets the demo's output."""
    return {**demo(folder), "rooms.svg": rooms()}


def _write(made: dict[str, str], whole_gallery: bool) -> None:
    if whole_gallery:
        for old in set(gallery_here()) - set(made):
            (HERE / old).unlink()
    for file, text in made.items():
        (HERE / file).write_bytes(text.encode("utf-8"))
        print(f"wrote assets/{file}")


def _write_pictures(folder: Path) -> int:
    if reason := screens.missing():
        print(f"kept the pictures of the viewer: {reason}")
        return 0
    problems = 0
    if not (folder / "record.json").exists():
        demo(folder)
    for screen, picture in screens.taken(pictured(folder), folder):
        if problem := flaw(screen, picture):
            print(f"assets/{screen.file} was not written: it {problem}", file=sys.stderr)
            problems += 1
            continue
        (HERE / screen.file).write_bytes(picture)
        print(f"wrote assets/{screen.file} ({len(picture):,} bytes)")
    return 1 if problems else 0


def _check(made: dict[str, str], pictures: bool) -> int:
    problems = [
        f"assets/{file} differs from a fresh one" for file, text in made.items() if kept(file) != text
    ]
    shown = screens.SCREENS if pictures else ()
    problems += [
        f"assets/{screen.file} {problem}"
        for screen in shown
        if (problem := flaw(screen, kept_bytes(screen.file)))
    ]
    for problem in problems:
        print(f"{problem}: run `python assets/make.py`, and look at what it made", file=sys.stderr)
    if not problems:
        print(f"assets: {', '.join([*made, *(screen.file for screen in shown)])} are as they should be")
    return 1 if problems else 0


def demo(folder: Path) -> dict[str, str]:
    """Run ``compile-lens demo`` into ``folder``; return the drawings by the names they have here."""
    output = io.StringIO()
    with _embedded_graphviz(), contextlib.redirect_stdout(output):
        code = cli.main(["demo", "--quiet", "--out", str(folder)])
    if code:
        raise SystemExit(f"compile-lens demo ended with {code}:\n{output.getvalue()}")
    return {file: (folder / file.partition("-")[2]).read_text(encoding="utf-8") for file in DEMO}


def gallery() -> dict[str, str]:
    """Return every page of the gallery and its drawings, by their names here."""
    shown = [exhibits.exhibit(name) for name in exhibits.NAMES]
    with _embedded_graphviz():
        files = {file: text for each in shown for file, text in each.files().items()}
    return {f"gallery/{file}": text for file, text in {**files, "README.md": exhibits.index(shown)}.items()}


def gallery_here() -> list[str]:
    """Return the existing gallery files, by their names in this folder."""
    return [f"gallery/{path.name}" for path in exhibits.GALLERY.glob("*.*")]


def rooms() -> str:
    """Return the rooms of the package, drawn by its own view."""
    with _embedded_graphviz():
        return flow.drawing()


@contextlib.contextmanager
def _embedded_graphviz() -> Iterator[None]:
    """Remove ``dot`` from PATH: a Graphviz other than the embedded one may place the boxes differently."""
    before = os.environ["PATH"]
    folders = before.split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(f for f in folders if not shutil.which("dot", path=f))
    try:
        yield
    finally:
        os.environ["PATH"] = before


def pictured(folder: Path) -> Capture:
    """Return the demo's capture as the pictures show it."""
    return screens.independent((folder / "record.json").read_text(encoding="utf-8"), folder)


def flaw(screen: screens.Screen, picture: bytes) -> str:
    """Return the flaw of a picture, ``""`` if it has none."""
    return png.flaw(picture, screen.size, screens.LARGEST)


def kept_bytes(file: str) -> bytes:
    """Return a file of this folder; empty if it does not exist."""
    path = HERE / file
    return path.read_bytes() if path.is_file() else b""


def kept(file: str) -> str:
    """Return a drawing of this folder; empty if it does not exist."""
    return kept_bytes(file).decode("utf-8")


if __name__ == "__main__":
    sys.exit(main())
