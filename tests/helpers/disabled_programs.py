"""Functions marked with ``torch.compiler.disable``, none of which has a name to import it by."""

from __future__ import annotations

import functools
from typing import Any

import torch


def programs() -> dict[str, Any]:
    """Return new functions on each call, by name; all take one tensor."""

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    @torch.compiler.disable
    def bare(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @torch.compiler.disable(recursive=False)
    def alone(x: torch.Tensor) -> torch.Tensor:
        return inner(x) * 2

    @torch.compiler.disable
    def again(x: torch.Tensor, n: int = 2) -> Any:
        return x if n == 0 else again(x + 1, n - 1)

    @functools.wraps(bare)
    def over(x: torch.Tensor) -> Any:
        return bare(x * 3) * 2

    class Holds:
        @torch.compiler.disable
        def method(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        @torch.compiler.disable(recursive=False)
        def method_alone(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        @torch.compiler.disable(recursive=False)
        def calls(self, x: torch.Tensor) -> torch.Tensor:
            return inner(x) * 2

    class Module(torch.nn.Module):
        @torch.compiler.disable
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    class ModuleAlone(torch.nn.Module):
        @torch.compiler.disable(recursive=False)
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    return {
        "bare": bare,
        "alone": alone,
        "again": again,
        "over": over,
        "around": lambda x: alone(x.cos()) + 1,
        "method": Holds().method,
        "method_alone": Holds().method_alone,
        "calls": Holds().calls,
        "module": Module(),
        "module_alone": ModuleAlone(),
    }


if __name__ == "__main__":  # plain torch: its own counter reports how many graphs it makes of each
    for name, fn in programs().items():
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.compile(fn, backend="eager")(torch.ones(64))
        print(name, torch._dynamo.utils.counters["stats"]["unique_graphs"])
