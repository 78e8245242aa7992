"""Number of image elements that an interpolation reads: the neighbours of each computed point.

The distance of points follows from ``align_corners`` or a given scale; neighbours coincide at the border of the image.
An element counts once, however many points it is next to.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from . import fx_values


class Points(NamedTuple):
    """The points along one dimension: ``total`` points over ``size`` elements, ``step`` elements apart. Point *i* is at
    ``step * (i + start) - start``."""

    size: int
    total: int
    step: float
    start: float


Neighbours = Callable[[float], "tuple[int, int]"]
"""A function that returns the first and last element read by a point at a position, ignoring borders."""


def _nearest(at: float) -> tuple[int, int]:
    return math.floor(at), math.floor(at)


def _nearest_exact(at: float) -> tuple[int, int]:
    return math.floor(at + 0.5), math.floor(at + 0.5)


def _linear(at: float) -> tuple[int, int]:
    first = math.floor(max(at, 0.0))
    return first, first + 1


def _cubic(at: float) -> tuple[int, int]:
    return math.floor(at) - 1, math.floor(at) + 2


def _single(number: float) -> float:
    """Return a number rounded to single precision, in which torch computes positions for all dtypes but float64."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


@functools.lru_cache(maxsize=1024)
def _along(neighbours: Neighbours, points: Points, double: bool) -> int:
    """Return the number of elements of a dimension that are neighbours of a point."""
    size, total, step, start = points
    if size == total and neighbours is _linear:
        return size  # torch copies, regardless of the scale
    rounded = float if double else _single
    step = rounded(step)

    def around(point: int) -> tuple[int, int]:
        first, last = neighbours(rounded(step * (point + start) - start))
        return min(max(first, 0), size - 1), min(max(last, 0), size - 1)

    if step <= 1:  # no gaps
        return around(total - 1)[1] + 1
    count = end = 0
    for first, last in map(around, range(total)):
        count += max(0, last + 1 - max(first, end))
        end = last + 1
    return count


def _step(size: int, total: int, corners: bool, scale: float | None) -> float:
    if corners:
        return (size - 1) / (total - 1) if total > 1 else 0.0
    return 1 / scale if scale is not None and scale > 0 else size / total if total else 0.0


def elements(kind: str, named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of elements of an image that an interpolation reads; None if a size is unknown."""
    image = named["input"] if "input" in named else named["self"]
    corners = bool(named.get("align_corners"))
    start = 0.0 if corners or kind == "nearest" else 0.5
    shapes = [[fx_values.hint(n) for n in shape] for shape in (image.shape, results[0].shape)]
    counts = shapes[0][:2]
    for size, total, scale in zip(*(shape[2:] for shape in shapes), _scales(named, len(shapes[0]) - 2)):
        if size is None or total is None or isinstance(scale, torch.SymFloat):
            return None
        points = Points(size, total, _step(size, total, corners, scale), start)
        counts.append(_along(NEIGHBOURS[kind], points, image.dtype == torch.float64))
    return None if None in counts else math.prod(n for n in counts if n is not None)


def _scales(named: dict[str, Any], dims: int) -> list[Any]:
    """Return the given scale of each dimension, or None."""
    scales = named.get("scale_factors")
    if scales is None:
        scales = [named.get(f"scales_{name}") for name in "dhw"[-dims:]]
        scales = [named["scales"]] if "scales" in named else scales
    return list(scales)


NEIGHBOURS: dict[str, Neighbours] = {
    "nearest": _nearest,
    "nearest_exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
}
"""The elements read by a point, by kind of interpolation."""
