"""Bytes that a compiled forward saves for its backward besides inputs and results, measured from autograd's tensors.

Run as a script, in its own process, it uses plain torch only and prints a line of JSON for the named
programs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from unbuilt import unbuilt

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def convolution() -> Program:
    """Return a convolution; Inductor keeps channels-last copies of both inputs."""
    x, w = torch.randn(2, 16, 8, 8), torch.randn(16, 16, 3, 3, requires_grad=True)
    return (lambda x, w: F.conv2d(x, w, padding=1).relu()), (x, w)


def residual() -> Program:
    """Return a ResNet block whose running statistics are updated in place."""
    block = torch.nn.Sequential(
        torch.nn.Conv2d(8, 8, 3, padding=1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 3, padding=1, bias=False), torch.nn.BatchNorm2d(8),
    )  # fmt: skip
    return (lambda x: F.relu(x + block(x))), (torch.randn(2, 8, 8, 8, requires_grad=True),)


def grouped() -> Program:
    """Return a UNet block with a group norm and a concatenated skip connection."""
    first, norm = torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.GroupNorm(4, 8)
    down, up = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1), torch.nn.ConvTranspose2d(16, 8, 2, stride=2)
    last = torch.nn.Conv2d(16, 4, 1)

    def block(x: Any) -> Any:
        skip = F.silu(norm(first(x)))
        return last(torch.cat([skip, up(F.silu(down(skip)))], 1))

    return block, (torch.randn(2, 8, 8, 8),)


def transformer() -> Program:
    """Return an encoder layer, which has no convolution."""
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return layer, (torch.randn(2, 8, 32),)


def column() -> Program:
    """Return a function that saves a view of a value, and with it the whole storage."""

    def one(x: Any, y: Any) -> Any:
        return (x @ x)[0] * y

    return one, (torch.randn(16, 16, requires_grad=True), torch.randn(16, requires_grad=True))


def same() -> Program:
    """Return a function that saves one value both as it is and transposed."""

    def both(x: Any, y: Any) -> Any:
        z = x @ x
        return (z @ y) @ (z.t() @ y)

    return both, (torch.randn(16, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True))


def cloned() -> Program:
    """Return a function with a copy that Inductor optimizes away."""

    def copied(x: Any, w: Any) -> Any:
        return x.clone() @ w

    return copied, (torch.randn(16, 16), torch.randn(16, 16, requires_grad=True))


PROGRAMS = (convolution, residual, grouped, transformer, column, same, cloned)


def plain(names: list[str]) -> dict[str, int]:
    """Return the bytes that plain torch saves, by program, measured in another process."""
    command = [sys.executable, __file__, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    sizes: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return sizes


def _asked(program: Program) -> int:
    f, args = program
    kept: list[Any] = []

    def keep(tensor: Any) -> Any:
        kept.append(tensor.detach())
        return tensor

    run = torch.compile(f, fullgraph=True)
    with unbuilt(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        results = run(*args)
    modules = [f] if isinstance(f, torch.nn.Module) else []
    for cell in getattr(f, "__closure__", None) or ():
        modules += [cell.cell_contents] if isinstance(cell.cell_contents, torch.nn.Module) else []
    others = [*args, results, *(t for m in modules for t in (*m.parameters(), *m.buffers()))]
    known = {tensor.untyped_storage().data_ptr() for tensor in others}
    own = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in kept}
    return sum(size for place, size in own.items() if place not in known)


def main() -> None:
    """Print the bytes saved for each named program as JSON."""
    sizes = {}
    for program in PROGRAMS:
        if program.__name__ in sys.argv[1:]:
            torch._dynamo.reset()
            sizes[program.__name__] = _asked(program())
    print(json.dumps(sizes))


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
    main()
