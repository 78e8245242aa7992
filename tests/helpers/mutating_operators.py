"""Custom operators that write to their arguments, registered on import, also in a child process."""

from __future__ import annotations

import torch


@torch.library.custom_op("mutating_operators::add_to", mutates_args=("out",))
def add_to(out: torch.Tensor, x: torch.Tensor) -> None:
    out.add_(x)


@torch.library.custom_op("mutating_operators::add_to_both", mutates_args=("low", "high"))
def add_to_both(low: torch.Tensor, high: torch.Tensor, x: torch.Tensor) -> None:
    low.add_(x)
    high.sub_(x)
