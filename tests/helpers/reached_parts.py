"""Objects that the programs of ``reached_programs.py`` reach through a module; a test changes them in place."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from typing import Any

import torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.inner(x)).relu()


class Choice:
    act = "cos"

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.cos()


NOTHING_GIVEN = object()
net = Net()
tied = Net()
weight = torch.ones(8)
cfg = types.SimpleNamespace(act="cos")
choice = Choice()
table: dict[str, Any] = {"first": net}
lock = threading.Lock()
flag = True


def step(x: torch.Tensor) -> torch.Tensor:
    return x.cos()


def closing(value: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    def inside(x: torch.Tensor) -> torch.Tensor:
        return x * value

    return inside


closed = closing(weight)


def doubled(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def around(*args: Any) -> Any:
        return fn(*args) * 2

    return around


@torch.no_grad()
def quiet(x: torch.Tensor) -> torch.Tensor:
    return net(x)


def filled(x: torch.Tensor, by: Any = NOTHING_GIVEN) -> torch.Tensor:
    return x.sin() if by is NOTHING_GIVEN else x + by


def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return x * by
