"""Programs of a line or two, each with one property to test."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def one(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


def around_a_sort(x: torch.Tensor) -> torch.Tensor:
    y = F.gelu(x)
    return torch.sort(y)[0] + 1


def over_the_wrong_dimension(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum(0).softmax(0)


def broken(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    torch._dynamo.graph_break()
    return torch.cos(y)
