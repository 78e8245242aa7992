"""Operators of a program's own that write to their arguments: registered where they are imported, in a child too."""

from __future__ import annotations

import torch


@torch.library.custom_op("mutating_operators::add_to", mutates_args=("out",))
def add_to(out: torch.Tensor, x: torch.Tensor) -> None:
    out.add_(x)


@torch.library.custom_op("mutating_operators::add_to_both", mutates_args=("low", "high"))
def add_to_both(low: torch.Tensor, high: torch.Tensor, x: torch.Tensor) -> None:
    low.add_(x)
    high.sub_(x)
