"""Functions called with one number after another. As a script this runs them without compile_lens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Number = float


def printed(x: torch.Tensor, step: Number) -> torch.Tensor:
    y = x * 2
    print("step", step)
    return y + 1


def branched(x: torch.Tensor, step: Number) -> torch.Tensor:
    y = x * 2
    return y if step < 100 else x * 3


PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[Number]]] = {
    "a number that is printed": (printed, (0, 1, 2, 3)),
    "a number by which a line branches": (branched, (0, 1, 2, 3)),
    "a float that is printed": (printed, (2.0, 3.0, 4.0)),
}


def run(name: str) -> None:
    function, numbers = PROGRAMS[name]
    torch._dynamo.reset()
    call = torch.compile(function, backend="eager")
    for number in numbers:
        call(torch.ones(3), number)


if __name__ == "__main__":
    for name in PROGRAMS:
        run(name)
        torch._dynamo.reset()
