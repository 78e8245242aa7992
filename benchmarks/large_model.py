"""Cost of capturing a model larger than the machine: memory and time, beside torch's own lowering of it.

    python benchmarks/large_model.py [--layers N] [--rounds N]

The model has the shape of a transformer of 70 billion parameters (80 layers of width 8,192) and is on ``meta``; its
forward alone is compiled for an H100. Each side is a new process with the same stand-in for the device: one captures,
the other lets torch trace and lower, with nothing recorded. The memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[1]
TARGET = "h100"
WIDTH, HEADS, GROUPS, INNER, TOKENS = 8192, 64, 8, 28672, 2048


class Layer(torch.nn.Module):
    """Attention with grouped keys and a gated product, each after an RMS norm."""

    def __init__(self) -> None:
        super().__init__()
        size = WIDTH // HEADS
        self.norms = torch.nn.ModuleList(torch.nn.RMSNorm(WIDTH) for _ in range(2))
        self.query = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = torch.nn.Linear(WIDTH, GROUPS * size, bias=False)
        self.value = torch.nn.Linear(WIDTH, GROUPS * size, bias=False)
        self.out = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = torch.nn.Linear(WIDTH, INNER, bias=False)
        self.up = torch.nn.Linear(WIDTH, INNER, bias=False)
        self.down = torch.nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map ``x`` of shape ``[batch, tokens, width]`` to a result of the same shape."""
        shape = (*x.shape[:2], -1, WIDTH // HEADS)
        y = self.norms[0](x)
        q, k, v = (p(y).view(shape).transpose(1, 2) for p in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def model(layers: int) -> tuple[torch.nn.Module, torch.Tensor]:
    """Return the model and an input for it, without data."""
    with torch.device("meta"):
        net = torch.nn.Sequential(*(Layer() for _ in range(layers))).to(torch.bfloat16).requires_grad_(False)
        return net, torch.empty(1, TOKENS, WIDTH, dtype=torch.bfloat16)


def captured(layers: int) -> int:
    """Capture as the child does. Return the number of kernels."""
    from compile_lens.devices.models import resolve
    from compile_lens.engine.call import Call
    from compile_lens.engine.local import perform
    from compile_lens.engine.options import CaptureOptions

    net, x = model(layers)
    return len(
        perform(Call.read(net, (x,), None, CaptureOptions(target=TARGET), model=resolve(TARGET)))[0].kernels
    )


def torchs_own(layers: int) -> int:
    """Run Dynamo, AOTAutograd and Inductor up to the generated code, with torch alone."""
    from capture import not_built
    from torch._inductor.compile_fx import compile_fx

    from compile_lens._torch.targets.stand_in import StandIn
    from compile_lens.devices.models import resolve

    net, x = model(layers)
    stand_in = StandIn(resolve(TARGET))
    patches = {**stand_in.settings({}), "force_disable_caches": True, "compile_threads": 1}
    lowered = []

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        lowered.append(compile_fx(gm, inputs, config_patches=patches))
        return gm.forward

    with stand_in.placed(), not_built():
        torch.compile(net, backend=backend)(x)
    return len(lowered)


SIDES = {"capture": captured, "torch": torchs_own}


def measured(side: str, layers: int) -> dict[str, float]:
    """Run one side here; return CPU seconds, which a busy machine affects little, and this process's peak in GiB."""
    begin = time.process_time()
    SIDES[side](1)  # one-time loading and initialization
    start = time.process_time()
    result = SIDES[side](layers)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "first": start - begin,
        "seconds": time.process_time() - start,
        "gib": peak / 2**30,
        "found": result,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--layers", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--side", choices=tuple(SIDES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(measured(arguments.side, arguments.layers)))
        return
    rows: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for _ in range(arguments.rounds):
        for side, found in rows.items():
            command = [
                sys.executable,
                "-W",
                "ignore",
                __file__,
                "--side",
                side,
                "--layers",
                str(arguments.layers),
            ]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    parameters = sum(p.numel() for p in model(arguments.layers)[0].parameters())
    for side, found in rows.items():
        seconds, peak = (statistics.median(row[key] for row in found) for key in ("seconds", "gib"))
        print(f"{side:8} {seconds:7.1f} s, peak {peak:.2f} GiB")
    ratio = statistics.median(
        one["seconds"] / other["seconds"] for one, other in zip(rows["capture"], rows["torch"])
    )
    print(
        f"{arguments.layers} layers, {parameters / 1e9:.1f} billion parameters: {ratio:.2f} of torch's own lowering"
    )


if __name__ == "__main__":
    main()
