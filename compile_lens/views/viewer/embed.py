"""What makes the page come alive: one script for each page, with its data, its style and nothing from outside.

The modules in ``static/viewer`` are joined to one function: their imports are resolved here, so that the page
needs no second file. Names at their top level are unique, imports stand on lines of their own and comments
too; a test holds them to that.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import json
import re
from pathlib import PurePosixPath

from compile_lens.record import Capture
from compile_lens.views.palette import COLOURS

from .parts import encoded, packed

MAIN = "main.js"
"""The module that starts the page; every other one is reached from it."""

SHEETS = ("viewer.css", "graph.css", "listing.css", "inspector.css", "findings.css")
"""Style sheets of the page's inside, in order."""

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\s*$')

_START = """
const root = document.currentScript.closest(".compile-lens");
const { parts, style, unpack, failed } = root.compileLens;
delete root.compileLens;
start(root, parts, style, unpack).catch(failed);
"""


def live(capture: Capture) -> str:
    """HTML that makes the page around it interactive: its data and its script."""
    parts = {"script": packed(script()), "style": packed(sheet()), **encoded(capture)}
    # Base64 and plain names: no character that HTML could misread.
    data = json.dumps(parts, separators=(",", ":"))
    return (
        f"<style>{_squeezed(_read('viewer/host.css'))}</style>"
        f'<script type="application/json" class="cl-data">{data}</script>\n'
        f"<script>{bare(_read('viewer/boot.js'))}</script>\n"
    )


@functools.cache
def script() -> str:
    """The viewer as one function that starts on the page it stands in.

    The package holds it with shortened names as well, made from the modules by ``assets/make.py``: a page is
    a tenth smaller so. Where the modules are others by now, they are taken as they are.
    """
    whole = joined()
    made_from, _, shortened = _read("viewer.min.js").partition("\n")
    return shortened if made_from == digest(whole) else whole


@functools.cache
def joined() -> str:
    """The modules joined, with their own names."""
    body = "\n".join(_module(name) for name in modules())
    return f'(() => {{\n"use strict";\n{body}{_START}}})();\n'


def digest(whole: str) -> str:
    """The first line of the shortened script: which modules it was made from."""
    return f"// {hashlib.sha256(whole.encode('utf-8')).hexdigest()}"


@functools.cache
def modules() -> tuple[str, ...]:
    """Names of the modules, each after those that it imports."""
    order: dict[str, None] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ValueError(f"modules import each other in a circle: {' → '.join((*path, name))}")
        if name in order:
            return
        for line in _read(f"viewer/{name}").split("\n"):
            found = _IMPORT.match(line)
            if found:
                visit(found.group(1), (*path, name))
        order[name] = None

    visit(MAIN, ())
    return tuple(order)


@functools.cache
def sheet() -> str:
    """The style sheet of the page's inside. Colours that Python draws with as well come from there."""
    rules = [f"--kind-{k}-fill:light-dark({c.fill},{c.dark_fill})" for k, c in COLOURS.items()]
    rules += [f"--kind-{k}-line:light-dark({c.line},{c.dark_line})" for k, c in COLOURS.items()]
    sheets = "\n".join(_squeezed(_read(f"viewer/{name}")) for name in SHEETS)
    return f":host{{{';'.join(rules)}}}\n{sheets}"


def bare(source: str) -> str:
    """A script without the comments and the indentation that only its authors need."""
    kept = []
    inside = False
    for line in source.split("\n"):
        line = line.strip()
        if inside or line.startswith("/*"):
            inside = "*/" not in line
            line = line.partition("*/")[2].strip()
        if line and not line.startswith("//"):
            kept.append(line)
    return "\n".join(kept) + "\n"


def _module(name: str) -> str:
    lines = [line for line in bare(_read(f"viewer/{name}")).split("\n") if not _IMPORT.match(line)]
    return "\n".join(line.removeprefix("export ") for line in lines)


def _squeezed(css: str) -> str:
    css = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)).strip()
    return re.sub(r"(?<=:) | ?([{};]) ?", r"\1", css).replace(";}", "}")


def _read(name: str) -> str:
    folder = importlib.resources.files("compile_lens.views").joinpath("static")
    return folder.joinpath(*PurePosixPath(name).parts).read_text(encoding="utf-8")
