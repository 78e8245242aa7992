"""Draws the pictures of the README from a capture: ``python assets/make.py``.

The two SVGs are what ``compile-lens demo`` draws, byte for byte. The PNG is the top of its report in a
browser, so it is only made where Chromium is; its times and processor are those of the machine that made it.
``--check`` writes nothing and exits with 1 if a drawing differs from the one in this folder, or if the
screenshot is no PNG of the promised size.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from compile_lens import Capture, cli

HERE = Path(__file__).resolve().parent
DRAWINGS = ("sin2cos2-forward.svg", "sin2cos2-backward.svg")
SCREENSHOT = "report.png"
WIDTH, HEIGHT = 1180, 1000
"""Pixels of the screenshot: from the top down to the source; the drawings stand beside it in the README."""

LARGEST = 200_000
"""Bytes that the screenshot may take: it is downloaded by everyone who reads the README."""

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with what is here, and write nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drawings = demo(folder)
        if check:
            return _check(drawings)
        for file, text in drawings.items():
            (HERE / file).write_bytes(text.encode("utf-8"))
            print(f"wrote assets/{file}")
        browser = chromium()
        if browser is None:
            print(f"kept assets/{SCREENSHOT}: no Chromium on PATH to take it anew")
            return 0
        picture = screenshot(browser, report(folder), folder)
    if problem := flaw(picture):
        print(f"assets/{SCREENSHOT} was not written: {problem}", file=sys.stderr)
        return 1
    (HERE / SCREENSHOT).write_bytes(picture)
    print(f"wrote assets/{SCREENSHOT} ({len(picture):,} bytes)")
    return 0


def _check(drawings: dict[str, str]) -> int:
    problems = [f"{file} differs from a fresh drawing" for file in DRAWINGS if kept(file) != drawings[file]]
    problems += [f"{SCREENSHOT} {problem}" for problem in [flaw(kept_bytes(SCREENSHOT))] if problem]
    for problem in problems:
        print(f"assets/{problem}: run `python assets/make.py`, and look at what it made", file=sys.stderr)
    if not problems:
        print(f"assets: {', '.join((*DRAWINGS, SCREENSHOT))} are as they should be")
    return 1 if problems else 0


def demo(folder: Path) -> dict[str, str]:
    """Run ``compile-lens demo`` into ``folder``; the drawings by the names they have here."""
    said = io.StringIO()
    with _embedded_graphviz(), contextlib.redirect_stdout(said):
        code = cli.main(["demo", "--quiet", "--out", str(folder)])
    if code:
        raise SystemExit(f"compile-lens demo ended with {code}:\n{said.getvalue()}")
    return {file: (folder / file.partition("-")[2]).read_text(encoding="utf-8") for file in DRAWINGS}


@contextlib.contextmanager
def _embedded_graphviz() -> Iterator[None]:
    """Leave ``dot`` out of PATH: another Graphviz than the embedded one may place the boxes elsewhere."""
    before = os.environ["PATH"]
    folders = before.split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(f for f in folders if not shutil.which("dot", path=f))
    try:
        yield
    finally:
        os.environ["PATH"] = before


def report(folder: Path) -> Path:
    """The demo's report once more, with ``demo.py`` for the path of the temporary folder."""
    text = (folder / "record.json").read_text(encoding="utf-8")
    for place in {str(folder), str(folder.resolve())}:
        text = text.replace(json.dumps(f"{place}{os.sep}")[1:-1], "")
    return Capture.from_json(text).save(folder / "picture.html")


def chromium() -> str | None:
    """A Chromium on PATH."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next(filter(None, found), None)


def screenshot(browser: str, page: Path, folder: Path) -> bytes:
    """The top of a page as a PNG."""
    picture = folder / SCREENSHOT
    options = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --hide-scrollbars --disable-lcd-text"
    ).split()
    done = subprocess.run(
        [
            browser,
            *options,
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--screenshot={picture}",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if not picture.is_file():
        raise SystemExit(f"Chromium took no picture:\n{done.stderr[-2000:]}")
    return packed(picture.read_bytes())


def packed(png: bytes) -> bytes:
    """The same picture, packed harder and without the chunks that a reader does not see."""
    keep: list[tuple[bytes, bytes]] = []
    data = b""
    for kind, body in chunks(png):
        if kind == b"IDAT":
            data += body
        elif kind in (b"IHDR", b"PLTE", b"tRNS"):
            keep.append((kind, body))
    keep += [(b"IDAT", zlib.compress(zlib.decompress(data), 9)), (b"IEND", b"")]
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in keep
    )


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and content of every chunk of a PNG. Raises ``ValueError`` where it is cut short or damaged."""
    at = len(SIGNATURE)
    while at < len(png):
        try:
            (length,), kind = struct.unpack_from(">I", png, at), png[at + 4 : at + 8]
            body = png[at + 8 : at + 8 + length]
            (sum_,) = struct.unpack_from(">I", png, at + 8 + length)
        except struct.error:
            raise ValueError("is cut short") from None
        if sum_ != zlib.crc32(kind + body):
            raise ValueError(f"is damaged in chunk {kind!r}")
        yield kind, body
        at += 12 + length


def flaw(png: bytes) -> str:
    """What is wrong with the screenshot, ``""`` if nothing is."""
    if not png.startswith(SIGNATURE):
        return "is not a PNG"
    try:
        found = dict(chunks(png))
    except ValueError as error:
        return str(error)
    if b"IEND" not in found:
        return "is cut short"
    width, height = struct.unpack_from(">II", found[b"IHDR"])
    if (width, height) != (WIDTH, HEIGHT):
        return f"is {width} × {height} pixels, not {WIDTH} × {HEIGHT}"
    if len(png) > LARGEST:
        return f"takes {len(png):,} bytes; at most {LARGEST:,} are allowed"
    return ""


def kept_bytes(file: str) -> bytes:
    """A file of this folder; empty if it is not there."""
    path = HERE / file
    return path.read_bytes() if path.is_file() else b""


def kept(file: str) -> str:
    """A drawing of this folder; empty if it is not there."""
    return kept_bytes(file).decode("utf-8")


if __name__ == "__main__":
    sys.exit(main())
