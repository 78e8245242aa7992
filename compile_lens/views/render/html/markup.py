"""Building blocks of the HTML: escaping, elements with inline styles, colours, and the size budget.

Everything is styled inline with properties that JupyterLab's sanitizer keeps, so the page looks the same in
an untrusted notebook. A media query cannot stand inline; the page therefore brings its own light ground and
dark text, set on every element that a host might recolour. Where its host or its reader is dark, the rules of
``dark_style`` find each colour in those inline styles and put a dark one in its place.
"""

from __future__ import annotations

import html
import importlib.resources
import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote
from xml.etree import ElementTree

from ...words.characters import clean, flat, short
from ...words.palette import INK

HIGHLIGHT_BLOCK = 16_000
"""Characters of one listing that are coloured; the rest is shown plain. Colouring is the slow part."""

HIGHLIGHT_TOTAL = 100_000
"""Characters coloured on one page."""

TEXT_BLOCK = 40_000
"""Characters of one listing that are shown at all."""

TEXT_TOTAL = 500_000
"""Characters shown in the listings of one page."""

PICTURE_ONE = 400_000
"""Bytes of SVG of one graph; a larger one is left out, and said so."""

PICTURE_TOTAL = 1_000_000
"""Bytes of SVG on one page."""

DRAWN_BOXES = 120
"""Boxes of one drawing; a larger graph is drawn with its modules collapsed."""

DRAWN_ALL = 500
"""Boxes and lines of all drawings of one page: placing them takes the time. Telling stages come first. It is counted,
not timed, so that a page is the same on every machine."""

KERNELS = 400
"""Kernels of one module that get a block of their own."""

WHOLE = "capture.save('capture.json') keeps everything"

FAINT = "#556"
GROUND = "#fff"
SUNK = "#f6f8fa"
EDGE = "#ccd"
MISSING_INK = "#7a4b00"
PHASE_COLOURS = {"": FAINT, "forward": "#05c", "backward": "#a40", "inference": "#1a6b3c"}
STATE_COLOURS = {
    "compiled": ("#14532d", "#e7f6ec", "#86c79b"),
    "partial": ("#6b4500", "#fff6df", "#e0b84f"),
    "nothing": ("#6b4500", "#fff6df", "#e0b84f"),
    "failed": ("#8f1d14", "#fff0ee", "#e39a93"),
}
"""Ink, ground and edge of the outcome, each ink at least 7:1 on its ground."""

SANS = "font-family:system-ui,sans-serif"
MONO = "font-family:monospace"


def frame(widest: int) -> str:
    """The style of the outside of what stands in a cell, and of a page up to so many pixels wide."""
    return (
        f"{SANS};font-size:14px;line-height:1.5;color:{INK};background:{GROUND};border:1px solid {EDGE};"
        f"border-radius:10px;padding:18px 22px;max-width:{widest}px;box-sizing:border-box;text-align:left;"
        "overflow-x:auto;overflow-wrap:break-word"
    )


def text(value: str) -> str:
    """A string of the user's as HTML on one line: invisible characters written out, markup escaped."""
    return html.escape(flat(value), quote=True)


def linked(value: str) -> str:
    """A string of the user's as HTML on one line, its addresses of the web as links; nothing else of it is one."""
    parts = _ADDRESS.split(flat(value))
    shown = [html.escape(part, quote=True) for part in parts]
    look = f"color:{PHASE_COLOURS['forward']}"
    return "".join(
        tag("a", part, look, extra=f'href="{part}" target="_blank" rel="noopener noreferrer"')
        if i % 2
        else part
        for i, part in enumerate(shown)
    )


_ADDRESS = re.compile(r"""(https?://[^\s"'`<>()\[\]{}]*[\w/])""")


def block(value: str) -> str:
    """A string of the user's as HTML that keeps its lines."""
    return html.escape(clean(value), quote=True)


def tag(name: str, content: str, style: str = "", cls: str = "", extra: str = "") -> str:
    """An element around HTML. ``cls`` is a class of ours, ``extra`` further attributes as HTML."""
    attributes = f' class="cl-{cls}"' if cls else ""
    attributes += f' style="{style}"' if style else ""
    attributes += f" {extra}" if extra else ""
    return f"<{name}{attributes}>{content}</{name}>"


def div(content: str, style: str = "", cls: str = "") -> str:
    return tag("div", content, style, cls)


def scrolled(content: str, style: str = "", cls: str = "") -> str:
    """A place in which scrolls what is wider than it: the keyboard has to come to it."""
    return tag(
        "div", content, f"overflow-x:auto;{style}" if style else "overflow-x:auto", cls, 'tabindex="0"'
    )


def table_row(cells: str, ground: str, style: str = "") -> str:
    """A row of a table, with a ground of its own: JupyterLab stripes rows and paints them on hover."""
    return tag("tr", cells, f"background:{ground};border-bottom:1px solid {EDGE}{style}")


def span(content: str, style: str = "", cls: str = "") -> str:
    return tag("span", content, style, cls)


def mono(value: str, style: str = "") -> str:
    """A string of the user's in fixed pitch, on one line; a very long one is cut, and says so."""
    return span(text(short(value, 2_000)), f"{MONO};{style}")


def faint(content: str, style: str = "") -> str:
    return span(content, f"color:{FAINT};{style}" if style else f"color:{FAINT}")


def heading(title: str, detail: str = "", cls: str = "heading") -> str:
    """A section's title with a few faint words after it; both are HTML."""
    shown = span(title, "font-size:15px;font-weight:600")
    shown += faint(detail, "margin-left:10px") if detail else ""
    return div(shown, "margin:22px 0 8px", cls)


def fold(summary: str, content: str, cls: str, open: bool = False, level: int = 0) -> str:
    """A section that opens and closes without a script."""
    ground = f";background:{SUNK}" if level == 0 else ""
    head = tag("summary", summary, f"padding:7px 12px{ground}")
    body = div(content, "padding:10px")
    frame = f"border:1px solid {EDGE};margin:6px 0"
    return tag("details", head + body, frame, cls, "open" if open else "")


def note(content: str) -> str:
    """A line that says what is not shown, or why."""
    return div(content, f"margin:6px 0;color:{FAINT}", "note")


def picture(svg: str, alt: str, shrink: bool = True) -> str:
    """An SVG document as an image: the one form that an untrusted notebook keeps.

    ``shrink`` makes it as narrow as its place; else it keeps its size, and its place has to scroll.
    """
    data = in_address(svg)
    style = f"max-width:{'100%' if shrink else 'none'};height:auto;display:block;margin:0"
    return f'<img class="cl-graph" loading="lazy" style="{style}" alt="{text(alt)}" src=\'data:image/svg+xml,{data}\'>'


def in_address(svg: str) -> str:
    """An SVG document in an address: percent signs for the few characters that an attribute or a URL would misread.

    That is a third shorter than base64.
    """
    return quote(svg.replace("\n", ""), safe=_PLAIN, errors="backslashreplace")


_PLAIN = ' !"$()*+,-./:;=>?@[]^_`{|}~'
"""Characters that may stand in a ``data:`` URL within single quotes as they are. ``<`` may, but some hosts take an
attribute away that seems to end an element."""


@dataclass
class Budget:
    """The room left on a page, so that a report of a large model stays small and quick to write."""

    highlight: int = HIGHLIGHT_TOTAL
    text: int = TEXT_TOTAL
    pictures: int = PICTURE_TOTAL
    drawn: int = DRAWN_ALL

    def colour(self, wanted: int) -> int:
        """The number of characters of the next listing that may be coloured."""
        granted = min(wanted, HIGHLIGHT_BLOCK, self.highlight)
        self.highlight -= granted
        return granted

    def show(self, wanted: int) -> int:
        """The number of characters of the next listing that may be shown."""
        granted = min(wanted, TEXT_BLOCK, self.text)
        self.text -= granted
        return granted

    def draw(self, size: int) -> bool:
        """Return True if a picture of ``size`` bytes still fits."""
        if size > PICTURE_ONE or size > self.pictures:
            return False
        self.pictures -= size
        return True


POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""It forbids outside requests."""


def around(fragment: str, title: str, generator: str, widest: int = 1280, language: str = "en") -> str:
    """HTML of a page around a fragment of HTML; ``title`` and ``generator`` are HTML too, ``language`` is that of the
    page."""
    return (
        "<!doctype html>\n"
        f'<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{generator}<title>{title} · compile_lens</title>\n"
        f"<style>\n{sheet(widest)}</style>\n</head>\n<body>\n<main>\n{fragment}</main>\n</body>\n</html>\n"
    )


def sheet(widest: int = 1280) -> str:
    """Its text, for a page that grows up to so many pixels of CSS."""
    files = importlib.resources.files(__package__)
    rules = files.joinpath("lens.css").read_text(encoding="utf-8")
    return f"{rules}main {{ max-width: {widest}px; }}\n"


class Drawn(Protocol):
    """An object with a drawing for a cell."""

    def _repr_svg_(self) -> str: ...


def cell_image(drawn: Drawn) -> str:
    """An ``<img>`` of a drawing; what stands in its place is the label that the drawing has itself."""
    svg = drawn._repr_svg_()
    return picture(svg, ElementTree.fromstring(svg).get("aria-label", ""))


GROUNDS = {
    GROUND: "#15181d",
    SUNK: "#1e232a",
    STATE_COLOURS["compiled"][1]: "#12291b",
    STATE_COLOURS["nothing"][1]: "#2e2510",
    STATE_COLOURS["failed"][1]: "#331816",
}
"""Light and dark grounds."""

EDGES = {
    EDGE: "#3b434d",
    STATE_COLOURS["compiled"][2]: "#2f6b45",
    STATE_COLOURS["nothing"][2]: "#7a5f1f",
    STATE_COLOURS["failed"][2]: "#8a3a33",
    FAINT: "#a9b3bf",
    PHASE_COLOURS["forward"]: "#86b6ff",
    PHASE_COLOURS["backward"]: "#f3a778",
    PHASE_COLOURS["inference"]: "#85d3a2",
}

TEXTS = {
    INK: "#e6eaef",
    FAINT: "#a9b3bf",
    PHASE_COLOURS["forward"]: "#86b6ff",
    PHASE_COLOURS["backward"]: "#f3a778",
    PHASE_COLOURS["inference"]: "#85d3a2",
    STATE_COLOURS["compiled"][0]: "#9fe0b6",
    STATE_COLOURS["nothing"][0]: "#ffd47a",
    STATE_COLOURS["failed"][0]: "#ffb1a8",
    "#8250df": "#cdaeff",
    "#b3202c": "#ff9a9f",
    "#0550ae": "#8fc0ff",
    "#6f42c1": "#cdaeff",
    "#8a3f00": "#f3a778",
    "#116329": "#85d3a2",
    "#8a5a00": "#ffd47a",
    MISSING_INK: "#ffd47a",
}
"""Light and dark inks: every one that a page or a listing in it uses."""

_READER = "body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) "
_HOSTS = (
    ':is(body:is([data-jp-theme-light="false"], [data-vscode-theme-kind="vscode-dark"]), html[theme="dark"]) '
)
"""Conditions for dark colours: the reader's own wish where no host says otherwise; JupyterLab, VS Code, Colab."""


def dark_style(root: str) -> str:
    """The rules for what is inside of ``root``, a selector, as a ``<style>``. Paper stays white."""
    return f'<style media="screen">\n{dark_where_preferred(root)}{_rules(_HOSTS + root)}</style>\n'


def dark_where_preferred(root: str) -> str:
    """The rules for what is inside of ``root`` on a page of its own: dark where its reader prefers that."""
    return f"@media screen and (prefers-color-scheme: dark) {{\n{_rules(_READER + root)}}}\n"


def _rules(root: str) -> str:
    rules = [f"{root} {{ color-scheme: dark; }}"]
    for colours, light, dark in (
        *(("background", light, dark) for light, dark in GROUNDS.items()),
        *(("border-color", light, dark) for light, dark in EDGES.items()),
        *(("color", light, dark) for light, dark in TEXTS.items()),
    ):
        sign = {
            "background": f"background:{light}",
            "border-color": f"solid {light}",
            "color": f"color:{light}",
        }[colours]
        rules.append(f'{root} [style*="{sign}"] {{ {colours}: {dark} !important; }}')
    return "\n".join(rules) + "\n"
