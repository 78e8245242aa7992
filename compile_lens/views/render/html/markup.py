"""Building blocks of the HTML: escaping, elements with inline styles, colours, and the size budget.

Everything is styled inline with properties that JupyterLab's sanitizer keeps, so that the page looks the same in an
untrusted notebook. Media queries cannot be inline, so the page sets its own light background and dark text on every
element that a host might recolour. In a dark host or for a reader who prefers dark, the rules of ``dark_style`` replace
each colour in those inline styles.
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
"""Maximum coloured characters of one listing; the rest is plain, since colouring is slow."""

HIGHLIGHT_TOTAL = 100_000
"""Maximum coloured characters on a page."""

TEXT_BLOCK = 40_000
"""Maximum characters shown of one listing."""

TEXT_TOTAL = 500_000
"""Maximum characters shown in all listings of a page."""

PICTURE_ONE = 400_000
"""Maximum bytes of SVG of one graph; a note replaces a larger one."""

PICTURE_TOTAL = 1_000_000
"""Maximum bytes of SVG on a page."""

DRAWN_BOXES = 120
"""Maximum boxes of one drawing; a larger graph is drawn with its modules collapsed."""

DRAWN_ALL = 500
"""Maximum boxes and lines of all drawings of a page, since placing them takes time; the main stages come first. A
count, not a time limit, keeps pages equal on all machines."""

KERNELS = 400
"""Maximum kernels of one module that are shown."""

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
"""Text, background and border colour of each outcome; the text has a contrast of at least 7:1."""

SANS = "font-family:system-ui,sans-serif"
MONO = "font-family:monospace"


def frame(widest: int) -> str:
    """Return the style of the outer element in a cell or on a page, with a maximum width in pixels."""
    return (
        f"{SANS};font-size:14px;line-height:1.5;color:{INK};background:{GROUND};border:1px solid {EDGE};"
        f"border-radius:10px;padding:18px 22px;max-width:{widest}px;box-sizing:border-box;text-align:left;"
        "overflow-x:auto;overflow-wrap:break-word"
    )


def text(value: str) -> str:
    """Return a user string as HTML on one line: invisible characters written out, markup escaped."""
    return html.escape(flat(value), quote=True)


def linked(value: str) -> str:
    """Return a user string as HTML on one line, with web addresses as links."""
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
    """Return a user string as HTML that keeps its lines."""
    return html.escape(clean(value), quote=True)


def tag(name: str, content: str, style: str = "", cls: str = "", extra: str = "") -> str:
    """Return an element around HTML. ``cls`` is one of our classes, ``extra`` further attributes as HTML."""
    attributes = f' class="cl-{cls}"' if cls else ""
    attributes += f' style="{style}"' if style else ""
    attributes += f" {extra}" if extra else ""
    return f"<{name}{attributes}>{content}</{name}>"


def div(content: str, style: str = "", cls: str = "") -> str:
    return tag("div", content, style, cls)


def scrolled(content: str, style: str = "", cls: str = "") -> str:
    """Return a container that scrolls wide content; it is focusable for keyboard users."""
    return tag(
        "div", content, f"overflow-x:auto;{style}" if style else "overflow-x:auto", cls, 'tabindex="0"'
    )


def table_row(cells: str, ground: str, style: str = "") -> str:
    """Return a table row with its own background, since JupyterLab stripes and highlights rows."""
    return tag("tr", cells, f"background:{ground};border-bottom:1px solid {EDGE}{style}")


def span(content: str, style: str = "", cls: str = "") -> str:
    return tag("span", content, style, cls)


def mono(value: str, style: str = "") -> str:
    """Return a user string in monospace on one line, visibly cut if very long."""
    return span(text(short(value, 2_000)), f"{MONO};{style}")


def faint(content: str, style: str = "") -> str:
    return span(content, f"color:{FAINT};{style}" if style else f"color:{FAINT}")


def heading(title: str, detail: str = "", cls: str = "heading") -> str:
    """Return a section's title with a few faint words after it; both are HTML."""
    shown = span(title, "font-size:15px;font-weight:600")
    shown += faint(detail, "margin-left:10px") if detail else ""
    return div(shown, "margin:22px 0 8px", cls)


def fold(summary: str, content: str, cls: str, open: bool = False, level: int = 0) -> str:
    """Return a section that folds without a script."""
    ground = f";background:{SUNK}" if level == 0 else ""
    head = tag("summary", summary, f"padding:7px 12px{ground}")
    body = div(content, "padding:10px")
    frame = f"border:1px solid {EDGE};margin:6px 0"
    return tag("details", head + body, frame, cls, "open" if open else "")


def note(content: str) -> str:
    """Return a line on what is not shown, or why."""
    return div(content, f"margin:6px 0;color:{FAINT}", "note")


def picture(svg: str, alt: str, shrink: bool = True) -> str:
    """Return an SVG document as an image, the only form that an untrusted notebook keeps.

    ``shrink`` fits it to its container; otherwise it keeps its size, and the container must scroll.
    """
    data = in_address(svg)
    style = f"max-width:{'100%' if shrink else 'none'};height:auto;display:block;margin:0"
    return f'<img class="cl-graph" loading="lazy" style="{style}" alt="{text(alt)}" src=\'data:image/svg+xml,{data}\'>'


def in_address(svg: str) -> str:
    """Return an SVG document for a ``data:`` URL, percent-encoded only where needed: a third shorter than base64."""
    return quote(svg.replace("\n", ""), safe=_PLAIN, errors="backslashreplace")


_PLAIN = ' !"$()*+,-./:;=>?@[]^_`{|}~'
"""Characters that need no encoding in a ``data:`` URL in single quotes. ``<`` would be allowed, but some hosts drop an
attribute that seems to end an element."""


@dataclass
class Budget:
    """Remaining budget of a page, which keeps the report of a large model small and quick to write."""

    highlight: int = HIGHLIGHT_TOTAL
    text: int = TEXT_TOTAL
    pictures: int = PICTURE_TOTAL
    drawn: int = DRAWN_ALL

    def colour(self, wanted: int) -> int:
        """Return the number of characters of the next listing that may be coloured."""
        granted = min(wanted, HIGHLIGHT_BLOCK, self.highlight)
        self.highlight -= granted
        return granted

    def show(self, wanted: int) -> int:
        """Return the number of characters of the next listing that may be shown."""
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
"""Content-Security-Policy of pages, which forbids outside requests."""


def around(fragment: str, title: str, generator: str, widest: int = 1280, language: str = "en") -> str:
    """Return a page around a fragment of HTML; ``title`` and ``generator`` are HTML too, ``language`` is the page's
    language."""
    return (
        "<!doctype html>\n"
        f'<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{generator}<title>{title} · compile_lens</title>\n"
        f"<style>\n{sheet(widest)}</style>\n</head>\n<body>\n<main>\n{fragment}</main>\n</body>\n</html>\n"
    )


def sheet(widest: int = 1280) -> str:
    """Return the style sheet of a page with a maximum width in CSS pixels."""
    files = importlib.resources.files(__package__)
    rules = files.joinpath("lens.css").read_text(encoding="utf-8")
    return f"{rules}main {{ max-width: {widest}px; }}\n"


class Drawn(Protocol):
    """An object with an SVG drawing for a notebook cell."""

    def _repr_svg_(self) -> str: ...


def cell_image(drawn: Drawn) -> str:
    """Return an ``<img>`` of a drawing, with the drawing's label as alternative text."""
    svg = drawn._repr_svg_()
    return picture(svg, ElementTree.fromstring(svg).get("aria-label", ""))


GROUNDS = {
    GROUND: "#15181d",
    SUNK: "#1e232a",
    STATE_COLOURS["compiled"][1]: "#12291b",
    STATE_COLOURS["nothing"][1]: "#2e2510",
    STATE_COLOURS["failed"][1]: "#331816",
}
"""Dark background for each light one."""

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
"""Dark-theme text colour for each light one that a page or its listings use."""

_READER = "body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) "
_HOSTS = (
    ':is(body:is([data-jp-theme-light="false"], [data-vscode-theme-kind="vscode-dark"]), html[theme="dark"]) '
)
"""Selectors of dark hosts: JupyterLab, VS Code, Colab."""


def dark_style(root: str) -> str:
    """Return the dark rules for the contents of ``root``, a selector, as a ``<style>``. Print stays white."""
    return f'<style media="screen">\n{dark_where_preferred(root)}{_rules(_HOSTS + root)}</style>\n'


def dark_where_preferred(root: str) -> str:
    """Return the dark rules for the contents of ``root`` on a complete page, used if the reader prefers dark."""
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
