"""Distances between two tensors and from each to a float64 reference, computed in one pass over small pieces."""

from __future__ import annotations

import dataclasses
import math

import torch

from .snapshot import alike, pieces, widest

EXPONENT_MASK = 0x7FF0000000000000
"""Mask of the exponent bits of a float64; it rounds a number down to a power of two."""


@dataclasses.dataclass
class Error:
    """The error of a tensor against float64.

    Attributes:
        largest: the largest absolute error of an element; infinite if only one side has a NaN or an infinity there.
        norm: the 2-norm of the errors.
        ulps: the largest error in units in the last place of the tensor's dtype; 0 if not requested.
    """

    largest: float = 0.0
    norm: float = 0.0
    ulps: float = 0.0

    def add(self, value: torch.Tensor, truth: torch.Tensor, spacing: torch.Tensor | None) -> None:
        """Include one piece of the tensor."""
        difference, largest = gap(value, truth)
        self.largest = max(self.largest, largest)
        self.norm = math.hypot(self.norm, float(torch.linalg.vector_norm(difference)))
        if spacing is not None:
            self.ulps = max(self.ulps, float((difference / spacing).max()))


@dataclasses.dataclass
class Distances:
    """Distances of a tensor from eager's, and of both from float64.

    Attributes:
        apart: the largest absolute difference from eager; infinite if only one side has a NaN or an infinity there.
        close: True if every element is within the tolerance of eager's.
        scale: the largest finite magnitude in eager's tensor.
        special, special_of_eager: number of elements that are NaN or infinite.
        error, error_of_eager: errors against float64; zero without a reference.
        norm: the 2-norm of the finite float64 values.
    """

    apart: float = 0.0
    close: bool = True
    scale: float = 0.0
    special: int = 0
    special_of_eager: int = 0
    error: Error = dataclasses.field(default_factory=Error)
    error_of_eager: Error = dataclasses.field(default_factory=Error)
    norm: float = 0.0

    def relative(self, error: Error) -> float:
        """Return the norm of an error, divided by the norm of the float64 values."""
        return error.norm / self.norm if self.norm else error.norm


def distances(
    value: torch.Tensor | None,
    eager: torch.Tensor,
    truth: torch.Tensor | None,
    tolerance: tuple[float, float],
    ulps: bool = False,
) -> Distances:
    """Return the distances of tensors of one shape. ``tolerance`` is (relative, absolute); ``ulps`` needs a floating
    dtype."""
    total = Distances()
    if not eager.numel():
        return total
    relative, absolute = tolerance
    for parts in pieces(eager, *(x for x in (value, truth) if x is not None)):
        its, *others = map(widest, parts)
        sizes = its.abs()
        largest = float(sizes.max())
        if not math.isfinite(largest):
            total.special_of_eager += int((~its.isfinite()).sum())
            sizes = sizes.masked_fill(~its.isfinite(), 0.0)
            largest = float(sizes.max())
        total.scale = max(total.scale, largest)
        if value is not None:
            mine = others.pop(0)
            total.special += _special(mine)
            difference, largest = gap(mine, its)
            total.apart = max(total.apart, largest)
            if largest > absolute:
                total.close &= float((difference - relative * sizes).max()) <= absolute
        if truth is not None:
            exact = others.pop()
            finite = exact.masked_fill(~exact.isfinite(), 0.0) if _special(exact) else exact
            total.norm = math.hypot(total.norm, float(torch.linalg.vector_norm(finite)))
            spacing = _spacing(finite, eager.dtype) if ulps else None
            total.error_of_eager.add(its, exact, spacing)
            if value is not None:
                total.error.add(mine, exact, spacing)
    return total


def gap(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the absolute differences, infinite where only one side is a NaN or an infinity, and the largest of
    them."""
    difference = (a - b).abs()
    largest = float(difference.max())
    if math.isfinite(largest):
        return difference, largest
    difference = difference.masked_fill(alike(a, b), 0.0)
    difference = difference.masked_fill(difference.isnan(), math.inf)
    return difference, float(difference.max())


def _special(part: torch.Tensor) -> int:
    return 0 if math.isfinite(float(part.abs().max())) else int((~part.isfinite()).sum())


def _spacing(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the spacing of ``dtype`` at each finite number."""
    info = torch.finfo(dtype)
    powers = exact.view(torch.int64).bitwise_and(EXPONENT_MASK).view(torch.float64)
    return powers.mul_(info.eps).clamp_min_(info.tiny * info.eps)
