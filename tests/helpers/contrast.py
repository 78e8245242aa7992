"""Contrast ratio of two colours."""

from __future__ import annotations


def contrast(one: str, other: str) -> float:
    """Return the contrast of two ``#rrggbb`` or ``#rgb`` colours (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    if len(colour) == 4:
        colour = "#" + "".join(digit * 2 for digit in colour[1:])
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
