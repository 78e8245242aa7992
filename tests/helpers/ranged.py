"""Programs whose sizes and numbers become symbols with range guards; as a script it runs all of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch


def branches(x: torch.Tensor, step: int) -> torch.Tensor:
    y = x * step if step < 100 else x + 1
    y = y + 1 if x.size(0) <= 1024 else y
    return y * 2 if x.size(0) > 3 else y


def even(x: torch.Tensor, step: int) -> torch.Tensor:
    return x * 2 if x.size(0) * 2 < 100 and x.size(0) % 2 == 0 else x + 1


def added(x: torch.Tensor, step: int) -> torch.Tensor:
    return x + torch.ones(x.size(0))


def marked(x: torch.Tensor, step: int) -> torch.Tensor:
    return x.cos()


def other(x: torch.Tensor, step: int) -> torch.Tensor:
    return x * step if x.size(0) != 7 else x


PROGRAMS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    f.__name__: f for f in (branches, even, added, marked, other)
}
CALLS = {name: [(8, 5), (10, 6)] for name in PROGRAMS}
TRIED = [(n, 6) for n in (0, 1, 2, 3, 4, 5, 7, 48, 49, 50, 51, 63, 64, 65, 1024, 1025)]
TRIED += [(10, step) for step in (-3, 0, 99, 100)]


def given(name: str, rows: int, step: int) -> tuple[torch.Tensor, int]:
    """Return the arguments of a call; one program declares its sizes itself."""
    x = torch.ones(rows)
    if name == "marked":
        torch._dynamo.mark_dynamic(x, 0, min=4, max=64)
    return x, step


def run(name: str) -> Any:
    """Run a program's two calls, with nothing compiled before."""
    torch._dynamo.reset()
    call = torch.compile(PROGRAMS[name], backend="eager")
    for rows, step in CALLS[name]:
        call(*given(name, rows, step))
    return call


def fits(name: str) -> list[bool]:
    """Return for each tried call whether torch has a variant for it, by torch's own check of its guards."""
    run(name)
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(PROGRAMS[name].__code__)
    tried = [{"x": torch.ones(rows), "step": step} for rows, step in TRIED]
    return [any(entry.guard_manager.check(names) for entry in entries) for names in tried]


if __name__ == "__main__":
    if sys.argv[1:] == ["fits"]:
        json.dump({name: fits(name) for name in PROGRAMS}, sys.stdout)
    else:
        for name in PROGRAMS:
            run(name)
