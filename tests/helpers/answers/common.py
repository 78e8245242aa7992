"""Programs shared by the answers to several exercises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Made = Callable[..., Any]
Mistake = tuple[Made, str, str]
"""An answer that many would write, the message for its capture, and the message for the mistake."""


def halved(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x) * 2
    print("so far")
    return torch.cos(y) * 3 + y - x


def loops(x: torch.Tensor) -> torch.Tensor:
    for _ in range(6):
        x = torch.exp(x) - 1
    return x


def spoken(x: torch.Tensor) -> torch.Tensor:
    print("here")
    return x
