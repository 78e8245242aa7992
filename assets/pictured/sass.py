"""The first function of the README, for a GPU that need not be there, down to its instructions."""

import torch


def f(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


INPUTS = (torch.rand(1000, requires_grad=True),)
OPTIONS = {"target": "h100", "build": True}
