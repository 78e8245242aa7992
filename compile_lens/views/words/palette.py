"""Colours by node kind, for all views.

Each kind has a fill and a line for light pages and for dark pages. Text on any fill has the ink colour of the theme,
with a contrast of at least 4.5:1 (WCAG 2 AA). Each box also names its operation, so no meaning depends on colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """Colours of a drawing that do not depend on a node's kind, as ``#rrggbb``."""

    paper: str
    ink: str
    quiet: str
    edge: str
    label: str
    saved: str
    on_saved: str


LIGHT = Theme(
    paper="#ffffff",
    ink="#16191d",
    quiet="#4b5563",
    edge="#8a94a3",
    label="#3f4855",
    saved="#b45309",
    on_saved="#ffffff",
)
DARK = Theme(
    paper="#15181d",
    ink="#f1f3f5",
    quiet="#aeb6c2",
    edge="#77818f",
    label="#c3cad4",
    saved="#fbbf24",
    on_saved="#1a1203",
)


@dataclass(frozen=True)
class Colour:
    """Fill and line of a kind of node on light and on dark pages, and its text in the legend."""

    fill: str
    line: str
    dark_fill: str
    dark_line: str
    meaning: str


COLOURS = {
    "input": Colour("#e3f4e8", "#3c9a5f", "#173425", "#4fae74", "input"),
    "output": Colour("#d5eadf", "#1f6f4a", "#1d4531", "#7ccfa2", "output"),
    "constant": Colour("#edf3dd", "#7a8e35", "#2c3318", "#a5ba5c", "constant"),
    "pointwise": Colour("#e1edfd", "#3f7fd6", "#182f52", "#6ca5f2", "pointwise"),
    "reduction": Colour("#fdeacb", "#bf7a12", "#46310c", "#e3a945", "reduction"),
    "scan": Colour("#fbf2b8", "#9c8710", "#3d370b", "#d6c044", "scan"),
    "matmul": Colour("#fbdfe3", "#cf4a63", "#4d1a26", "#ee8195", "matrix product"),
    "view": Colour("#f1f3f5", "#838d99", "#262b31", "#7f8995", "view"),
    "allocation": Colour("#e8e4dd", "#8f8370", "#322d25", "#a99c86", "allocation"),
    "random": Colour("#fae1f6", "#be4fae", "#441a3e", "#dd84d0", "random"),
    "mutation": Colour("#fddccb", "#cf5a1f", "#4c2410", "#f08f5b", "mutation"),
    "control": Colour("#eae4fd", "#7a5bd6", "#2b2150", "#a48df0", "control flow"),
    "symbol": Colour("#d9f3f4", "#2a929a", "#103438", "#56bcc4", "symbolic size"),
    "extern": Colour("#f3dcec", "#a63f80", "#42193a", "#d67bb6", "extern kernel"),
    "custom": Colour("#e2e2f8", "#5256b4", "#22244c", "#8d91e6", "operator outside ATen"),
    "nop": Colour("#f6f6f6", "#929292", "#222222", "#7b7b7b", "no operation"),
    "other": Colour("#eceff2", "#6c7683", "#2b3037", "#98a2ae", "other"),
    "collapsed": Colour("#eef1fb", "#5b6ba8", "#20263c", "#8c9bd6", "collapsed (several nodes)"),
}
"""Colours by ``Node.kind``, in the order of a legend; ``collapsed`` is for boxes that hold several nodes."""


@dataclass(frozen=True)
class UnitColour:
    """Background and bar of a unit of work on light and on dark pages."""

    fill: str
    bar: str
    dark_fill: str
    dark_bar: str


UNITS = (
    UnitColour("#5ecbd2", "#0a7c85", "#237e83", "#5ecbd2"),
    UnitColour("#d3a433", "#8f6500", "#504108", "#d3a433"),
    UnitColour("#c1f5c3", "#2a8a3c", "#5d7a43", "#c1f5c3"),
    UnitColour("#fee883", "#8a7a00", "#8a6f13", "#fee883"),
    UnitColour("#ae9ffd", "#5a45d8", "#373691", "#ae9ffd"),
    UnitColour("#ff8a76", "#c4381f", "#683234", "#ff8a76"),
)
"""Colours of units in order, repeated cyclically. They also differ for colour-blind readers (a test checks how much),
and a tag stands beside each."""


def known_kind(kind: str) -> str:
    """Return ``kind`` if it has its own colours, else ``other``; safe in a class name."""
    return kind if kind in COLOURS else "other"


INK = "#1f2328"
"""The colour of plain text on a light background."""
