"""Cost of a capture in processor instructions, which does not depend on the machine's load.

    python benchmarks/instructions.py [--layers N] [--wave] [--sides capture torch stages]

A capture of a GPT-2 shape of ``N`` layers (or of sin²+cos²) with everything recorded, against torch's own Dynamo and
lowering with the same room on the stack, and against a capture with the stages only; counted by Valgrind (``apt
install valgrind``). Each count is of a process that does it three times, minus one that does it once, halved, so that
imports and torch's one-time initialization are not included. Takes about ten minutes a side.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


SIDES = ("capture", "torch", "stages")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--layers", type=int, default=2, help="layers of the transformer (default 2)")
    parser.add_argument("--wave", action="store_true", help="sin²+cos² instead of the transformer")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES, help="what is counted")
    parser.add_argument("--run", nargs=2, metavar=("SIDE", "COUNT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    layers = 0 if given.wave else given.layers
    if given.run:
        run(given.run[0], int(given.run[1]), layers)
        return
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not on PATH: it counts the instructions (apt install valgrind)")
    kinds = [(side, count) for count in (3, 1) for side in given.sides]
    with ThreadPoolExecutor(2) as pool:
        counts = dict(zip(kinds, pool.map(lambda kind: counted(*kind, layers), kinds)))
    each = {side: (counts[side, 3] - counts[side, 1]) / 2 for side in given.sides}
    for side, count in each.items():
        print(f"{side:8} {count / 1e9:.3f} thousand million instructions")
    for side in given.sides:
        if side != "capture" and "capture" in each:
            print(f"capture / {side}: {each['capture'] / each[side]:.3f}")


def counted(side: str, count: int, layers: int) -> int:
    """Return the instructions of a process that does ``side`` ``count`` times."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    size = ["--layers", str(layers)] if layers else ["--wave"]
    command = [*tool, sys.executable, __file__, "--run", side, str(count), *size]
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}  # the iteration order of sets affects the amount of work
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=fixed)
    match = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or match is None:
        raise SystemExit(f"{side} {count} failed:\n{done.stderr[-2000:]}")
    return int(match[1].replace(",", ""))


def run(side: str, count: int, layers: int) -> None:
    """Run the code that is counted."""
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests" / "helpers")]
    import capture as benchmark
    import torch
    from gpt2 import Size, example
    from reasons import stages_only

    torch.set_num_threads(1)
    small = Size(layers, heads=2, width=32, tokens=16, vocabulary=64)
    fn, inputs = example(small) if layers else (benchmark.wave, (benchmark.leaf(),))
    work = benchmark.with_room if side == "torch" else benchmark.capture
    with stages_only() if side == "stages" else contextlib.nullcontext():
        for _ in range(count):
            work(fn, *inputs)


if __name__ == "__main__":
    main()
