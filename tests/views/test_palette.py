"""The colours of units are distinguishable by every eye, and legible on light and on dark pages."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest
from contrast import contrast

from compile_lens.views import live
from compile_lens.views.words.palette import COLOURS, UNITS

PAPER = {"light": "#ffffff", "dark": "#14171c"}
INK = {"light": "#16191d", "dark": "#ffffff"}
ROW_INK = {"light": "#16191d", "dark": "#f1f3f5"}

# G. Machado, M. Oliveira, L. Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency (2009),
# severity 1, on linear RGB.
SIGHTS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def fills(theme: str) -> list[str]:
    return [unit.fill if theme == "light" else unit.dark_fill for unit in UNITS]


def bars(theme: str) -> list[str]:
    return [unit.bar if theme == "light" else unit.dark_bar for unit in UNITS]


def channels(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def linear(colour: str) -> list[float]:
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour)]


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    """Return CIE L*a*b* (D65) of a colour as an eye sees it."""
    light = linear(colour)
    r, g, b = (
        min(1.0, max(0.0, sum(m * c for m, c in zip(row, light, strict=True)))) for row in SIGHTS[sight]
    )
    x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047
    y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b
    z = (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def mixed(colour: str, ground: str, share: float) -> str:
    parts = zip(channels(colour), channels(ground), strict=True)
    return "#" + "".join(f"{round(255 * (share * a + (1 - share) * b)):02x}" for a, b in parts)


@pytest.mark.parametrize("theme", PAPER)
@pytest.mark.parametrize("sight", SIGHTS)
def test_every_eye_tells_the_colours_apart(theme: str, sight: str) -> None:
    seen = [lab(colour, sight) for colour in fills(theme)]
    apart = [
        sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5
        for one, other in combinations(seen, 2)
    ]
    assert min(apart) >= (22 if theme == "light" else 19)


@pytest.mark.parametrize("theme", PAPER)
def test_texts_on_the_colours_and_bars_on_the_page_stand_out(theme: str) -> None:
    assert min(contrast(INK[theme], fill) for fill in fills(theme)) >= 4.5
    rows = [mixed(fill, PAPER[theme], 0.55) for fill in fills(theme)]
    assert min(contrast(ROW_INK[theme], row) for row in rows) >= 7
    assert min(contrast(bar, PAPER[theme]) for bar in bars(theme)) >= 3
    tags = fills("light") if theme == "light" else bars("dark")
    assert min(contrast("#16191d" if theme == "light" else "#14171c", tag) for tag in tags) >= 4.5


def test_the_page_has_the_same_colours_as_what_python_draws() -> None:
    """The style sheet is packed when it is built, and contains them too."""
    sheet = (VIEWER / "web" / "shell" / "palette.css").read_text(encoding="utf-8")
    of = {name: (light, dark) for name, light, dark in _RULE.findall(sheet)}
    units = {f"unit-{n}-fill": (unit.fill, unit.dark_fill) for n, unit in enumerate(UNITS)}
    units |= {f"unit-{n}-bar": (unit.bar, unit.dark_bar) for n, unit in enumerate(UNITS)}
    kinds = {f"kind-{kind}-fill": (one.fill, one.dark_fill) for kind, one in COLOURS.items()}
    kinds |= {f"kind-{kind}-line": (one.line, one.dark_line) for kind, one in COLOURS.items()}
    assert of == {**kinds, **units}


VIEWER = Path(live.__file__).parent
_RULE = re.compile(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);")
