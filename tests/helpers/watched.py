"""Programs to watch, and plain torch's counters and ``TORCH_TRACE`` log for comparison.

Run as a script, it runs them without compile_lens and prints what torch counted, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

BACKEND = "aot_eager"


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, **{"backend": BACKEND, **options})


def two_breaks() -> Any:
    def f(x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        print(end="")
        print(end="")
        return x.cos()

    return compiled(f)(torch.rand(3))


def no_graph() -> Any:
    def f(x: torch.Tensor) -> torch.Tensor:
        print(end="")
        return x

    return compiled(f)(torch.rand(3))


def inner_break() -> Any:
    def inner(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        print(end="")
        return x * 2

    def f(x: torch.Tensor) -> torch.Tensor:
        return inner(x.sin()).cos()

    return compiled(f)(torch.rand(3))


def loop() -> Any:
    def f(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x.sin()
            print(end="")
        return x

    return compiled(f)(torch.rand(3))


def in_context() -> Any:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x = x.sin()
            print(end="")
            x = x.cos()
        return x

    return compiled(f)(torch.rand(3))


def disabled() -> Any:
    @torch.compiler.disable
    def left(x: torch.Tensor) -> torch.Tensor:
        return x.tan()

    def f(x: torch.Tensor) -> torch.Tensor:
        return left(x.sin()).cos()

    return compiled(f)(torch.rand(3))


def disabled_alone() -> Any:
    """Call a function that is disabled without its callees, which Dynamo detects from the frames above its own."""

    def called(x: torch.Tensor) -> torch.Tensor:
        return x.tan() + 1

    @torch.compiler.disable(recursive=False)
    def left(x: torch.Tensor) -> torch.Tensor:
        return called(x.tan())

    def f(x: torch.Tensor) -> torch.Tensor:
        return left(x.sin()).cos()

    return compiled(f)(torch.rand(3))


def in_try() -> Any:
    def f(x: torch.Tensor) -> torch.Tensor:
        b = x.sin().cos()
        try:
            z = json.dumps({"v": b.sum().item()})
        except ValueError:
            z = ""
        return b + len(z)

    return compiled(f)(torch.rand(3))


def sizes() -> Any:
    def f(x: torch.Tensor, scale: float) -> torch.Tensor:
        return (x * scale).sum(0)

    g = compiled(f)
    return [g(torch.ones(n, 4), 0.5) for n in (3, 4, 5)] + [g(torch.ones(3, 4, dtype=torch.float64), 0.5)]


def limit() -> Any:
    def f(x: torch.Tensor, s: str) -> torch.Tensor:
        return x.sin() if s == "a" else x.cos() + len(s)

    g = compiled(f)
    return [g(torch.ones(4), "q" * n) for n in range(12)]


def nothing() -> Any:
    def made(x: torch.Tensor) -> Any:
        yield x.sin()

    return list(compiled(made)(torch.rand(3))), compiled(lambda: 1)(), compiled(lambda x: x)(torch.rand(2))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 8)
        self.hidden = nn.Linear(8, 8)
        self.out = nn.Linear(8, 16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = F.gelu(self.hidden(self.table(ids)))
        print(end="")
        if x.mean() > 100:
            x = x * 2
        return self.out(x)


def training() -> Any:
    """Train with AdamW, autocast and gradient accumulation; has two breaks and a recompile."""
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    forward = compiled(net)
    losses = []
    for step in range(4):
        for _ in range(2):
            ids = torch.randint(0, 16, (2, 4 if step < 2 else 5))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(forward(ids).flatten(0, 1).float(), ids.flatten()) / 2
            loss.backward()
        compiled(optimizer.step, backend="eager")()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return losses


PROGRAMS: dict[str, Callable[[], Any]] = {
    f.__name__: f
    for f in (
        two_breaks, no_graph, inner_break, loop, in_context, disabled, disabled_alone, in_try, sizes, limit, nothing,
        training,
    )
}  # fmt: skip


def plain(value: Any) -> Any:
    """Return a result as JSON data that preserves every bit."""
    if isinstance(value, torch.Tensor):
        return [float(x).hex() for x in value.detach().double().flatten()]
    return [plain(x) for x in value] if isinstance(value, (list, tuple)) else value


def run(name: str) -> Any:
    """Return a program's result, from the same random seed each time and with nothing compiled before."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    return plain(PROGRAMS[name]())


def counted() -> dict[str, Any]:
    """Return torch's counts for each program, run in this process."""
    folder = Path(os.environ["TORCH_TRACE"])
    told = {}
    for name in PROGRAMS:
        before = len(_artifacts(folder))
        result = run(name)
        found = _artifacts(folder)[before:]
        counters = torch._dynamo.utils.counters
        told[name] = {
            "result": result,
            "graphs": counters["stats"]["unique_graphs"],
            "breaks": found.count("dynamo_graph_break_reason"),
            "counter": sum(counters["graph_break"].values()),
            "recompiles": found.count("recompile_reasons"),
            "compiled": found.count("dynamo_cpp_guards_str"),
        }
    return told


def _artifacts(folder: Path) -> list[str]:
    names = []
    for file in sorted(folder.iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines():
            start = line.find("{")
            if "artifact" in line and start >= 0 and not line.startswith("\t"):
                try:
                    names.append(json.loads(line[start:]).get("artifact", {}).get("name", ""))
                except ValueError:
                    continue
            elif '"dynamo_cpp_guards_str"' in line and not line.startswith("\t"):
                names.append("dynamo_cpp_guards_str")
    return names


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    json.dump(counted(), sys.stdout)
