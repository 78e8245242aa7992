"""The page on a dark ground: a rule for every colour that it uses, where its host or its reader is dark.

The page is styled inline, light, so that it reads where a style sheet is removed. The rules here find each colour
in those inline styles and put a dark one in its place.
"""

from __future__ import annotations

from ...words.highlight import INKS
from ...words.palette import INK
from .markup import EDGE, FAINT, GROUND, MISSING_INK, PHASE_COLOURS, STATE_COLOURS, SUNK

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

_ASKED = "body:not([data-jp-theme-light]):not([data-vscode-theme-kind]) "
_HOSTS = (
    ':is(body:is([data-jp-theme-light="false"], [data-vscode-theme-kind="vscode-dark"]), html[theme="dark"]) '
)
"""What says that it is dark: the reader's own wish where no host says otherwise; JupyterLab, VS Code, Colab."""


def style(root: str) -> str:
    """The rules for what is inside of ``root``, a selector, as a ``<style>``. Paper stays white."""
    return f'<style media="screen">\n{wished(root)}{_rules(_HOSTS + root)}</style>\n'


def wished(root: str) -> str:
    """The rules for what is inside of ``root`` on a page of its own: dark where its reader prefers that."""
    return f"@media screen and (prefers-color-scheme: dark) {{\n{_rules(_ASKED + root)}}}\n"


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


MISSING = tuple(ink for ink in INKS if ink not in TEXTS)
"""Inks of listings that have no dark one; a test holds this empty."""
