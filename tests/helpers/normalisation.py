"""A function in another file than the model that calls it, with a line that causes a planted error."""

from __future__ import annotations

import torch


def normalised(x: torch.Tensor) -> torch.Tensor:
    """Return the rows of ``x`` with a mean square of one."""
    square = (x * x).mean(-1, keepdim=True)
    return x * torch.rsqrt(square + 1e-6)  # here
