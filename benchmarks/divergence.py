"""Cost of a comparison: ``divergence`` of a model that agrees, against the runs that it requires.

    python benchmarks/divergence.py [--quick] [--layers N] [--models NAME ...]

Seconds and peak memory of four child processes, each with a cold cache: one eager run with its gradients, one cold
compile with its run, the same in float64, and ``divergence``. The models are a transformer, whose weights are large,
and two with large activations: a perceptron with gradients, and a chain of elementwise operators without. Nothing
here causes a failure. A model that agrees has no attempts; the number of attempts for one that differs is in
``result.attempts``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

import torch  # noqa: E402
from gpt2 import GPT2, Size  # noqa: E402

RUNS = "eager", "compile", "float64", "divergence"
SCALE = 8
"""Divisor of the activations with ``--quick``."""


class Chain(torch.nn.Module):
    """Elementwise operators on one large tensor: in eager three of its size are live at a time, and none is saved."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            x = torch.sin(x) * 1.1 + 0.1
        return x


class Perceptron(torch.nn.Module):
    """Layers whose weights are small compared with the tensors that they save for the backward."""

    def __init__(self, layers: int = 4, width: int = 256) -> None:
        super().__init__()
        self.up = torch.nn.ModuleList(torch.nn.Linear(width, 4 * width) for _ in range(layers))
        self.down = torch.nn.ModuleList(torch.nn.Linear(4 * width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for up, down in zip(self.up, self.down):
            x = x + down(torch.nn.functional.gelu(up(x)))
        return x


def call_of(name: str, quick: bool, layers: int) -> tuple[Any, torch.Tensor]:
    """Return a model and its input."""
    torch.manual_seed(0)
    scale = SCALE if quick else 1
    if name == "chain":
        return Chain(), torch.rand(2**25 // scale)
    if name == "perceptron":
        return Perceptron(), torch.randn(2**14 // scale, 256)
    size = Size(layers=layers, heads=2, width=64) if quick else Size(layers=layers)
    return GPT2(size).eval(), torch.randint(0, size.vocabulary, (1, size.tokens))


MODELS = "transformer", "perceptron", "chain"


def run(name: str, model_name: str, layers: int, quick: bool) -> dict[str, Any]:
    """Return seconds, peak memory in MiB and attempts of one run in this process."""
    model, x = call_of(model_name, quick, layers)
    attempts = 0
    started, used = time.perf_counter(), processor_seconds()
    if name == "divergence":
        import compile_lens

        result = compile_lens.divergence(model, x)
        attempts = len(result.attempts)
        assert result.agrees, str(result)
    else:
        if name == "float64":
            model, x = model.double(), x.double() if x.is_floating_point() else x
        result = (torch.compile(model) if name == "compile" else model)(x)
        if result.requires_grad:
            result.sum().backward()
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "seconds": seconds,
        "processor": processor_seconds() - used,
        "peak": peak,
        "attempts": attempts,
    }


def processor_seconds() -> float:
    """Return the processor time of this process and of its compilers so far."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def rows_of(model: str, options: list[str]) -> dict[str, dict[str, Any]]:
    """Return the figures of each run of a model, each in its own process with a cold cache."""
    rows = {}
    for name in RUNS:
        with tempfile.TemporaryDirectory() as cache:
            child = subprocess.run(
                [sys.executable, __file__, "--run", name, "--models", model, *options],
                env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        rows[name] = json.loads(child.stdout.splitlines()[-1])
        row = rows[name]
        seconds = f"{row['seconds']:8.1f} s (processor {row['processor']:.1f} s)"
        print(f"  {name:<10} {seconds}   peak {row['peak']:8.0f} MiB", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a narrow model, smaller activations")
    parser.add_argument("--layers", type=int, default=12, help="layers of the transformer")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(given.run, given.models[0], given.layers, given.quick)))
        return
    for model in given.models:
        print(f"{model}:")
        rows = rows_of(model, ["--layers", str(given.layers), *(["--quick"] if given.quick else [])])
        seconds, processor = (
            rows["divergence"][unit] / sum(rows[name][unit] for name in RUNS[:-1])
            for unit in ("seconds", "processor")
        )
        memory = rows["divergence"]["peak"] / rows["eager"]["peak"]
        print(f"  divergence over eager + compile + float64: {seconds:.2f}   (aim: 3 at most)")
        print(f"  the same in processor time, which a busy machine changes less: {processor:.2f}")
        print(f"  its peak memory over eager's: {memory:.2f}   (aim: 5 at most)")
        print(f"  attempts: {rows['divergence']['attempts']}")


if __name__ == "__main__":
    main()
