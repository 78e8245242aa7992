"""Cost of a comparison: ``divergence`` of a model that agrees, against the runs that it cannot do without.

    python benchmarks/divergence.py [--quick] [--layers N]

Seconds and peak memory of four child processes, each with a cold cache: one eager run with its gradients, one cold
compile with its run, the same in float64, and ``divergence``. Nothing here fails on a figure. A model that agrees has
no attempts; the number of attempts for one that differs is in ``result.attempts``.
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


def run(name: str, layers: int, quick: bool) -> dict[str, Any]:
    """Return seconds, peak memory in MiB and attempts of one run in this process."""
    size = Size(layers=layers, heads=2, width=64) if quick else Size(layers=layers)
    torch.manual_seed(0)
    model: Any = GPT2(size).eval()
    ids = torch.randint(0, size.vocabulary, (1, size.tokens))
    attempts = 0
    started = time.perf_counter()
    if name == "divergence":
        import compile_lens

        result = compile_lens.divergence(model, ids)
        attempts = len(result.attempts)
        assert result.agrees, str(result)
    else:
        if name == "float64":
            model = model.double()
        call = torch.compile(model) if name == "compile" else model
        call(ids).sum().backward()
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak": peak, "attempts": attempts}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a narrow model")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(given.run, given.layers, given.quick)))
        return
    rows = {}
    for name in RUNS:
        options = ["--layers", str(given.layers), *(["--quick"] if given.quick else [])]
        with tempfile.TemporaryDirectory() as cache:
            child = subprocess.run(
                [sys.executable, __file__, "--run", name, *options],
                env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": cache},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        rows[name] = json.loads(child.stdout.splitlines()[-1])
        print(f"{name:<10} {rows[name]['seconds']:8.1f} s   peak {rows[name]['peak']:8.0f} MiB")
    needed = sum(rows[name]["seconds"] for name in RUNS[:-1])
    ratio, memory = (
        rows["divergence"]["seconds"] / needed,
        rows["divergence"]["peak"] / rows["eager"]["peak"],
    )
    print(f"divergence over eager + compile + float64: {ratio:.2f}   (aim: 3 at most)")
    print(f"its peak memory over eager's: {memory:.2f}   (aim: 5 at most)")
    print(f"attempts: {rows['divergence']['attempts']}")


if __name__ == "__main__":
    main()
