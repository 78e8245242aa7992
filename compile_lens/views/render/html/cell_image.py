"""A drawing as an image in a notebook's cell, with a text in its place."""

from __future__ import annotations

from typing import Protocol
from xml.etree import ElementTree

from .markup import picture


class Drawn(Protocol):
    """An object with a drawing for a cell."""

    def _repr_svg_(self) -> str: ...


def cell_image(drawn: Drawn) -> str:
    """An ``<img>`` of a drawing; what stands in its place is the label that the drawing has itself."""
    svg = drawn._repr_svg_()
    return picture(svg, ElementTree.fromstring(svg).get("aria-label", ""))
