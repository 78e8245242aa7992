"""What the reasons cost in instructions of the processor: as many on a busy machine as on a quiet one.

    python benchmarks/instructions.py [--wave]

A capture of a two-layer GPT-2 shape (or of sin²+cos²) with everything recorded, against one with the stages only,
counted by Valgrind (``apt install valgrind``). Each count is of a process with two captures, less one with one, so
that imports and what torch sets up once are not in it. Takes about ten minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--wave", action="store_true", help="sin²+cos² instead of the transformer")
    parser.add_argument("--run", nargs=2, metavar=("MODE", "COUNT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        run(given.run[0], int(given.run[1]), given.wave)
        return
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not on PATH: it counts the instructions (apt install valgrind)")
    kinds = [(mode, count) for count in (1, 2) for mode in ("all", "stages")]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(kinds, pool.map(lambda kind: counted(*kind, given.wave), kinds)))
    both = {mode: found[mode, 2] - found[mode, 1] for mode in ("all", "stages")}
    for mode, count in both.items():
        print(f"{mode:7} {count / 1e9:.3f} thousand million instructions for a capture")
    print(f"ratio   {both['all'] / both['stages']:.3f}")


def counted(mode: str, count: int, wave: bool) -> int:
    """Instructions of a process that captures ``count`` times."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command = [*tool, sys.executable, __file__, "--run", mode, str(count), *(["--wave"] if wave else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or said is None:
        raise SystemExit(f"{mode} {count} failed:\n{done.stderr[-2000:]}")
    return int(said[1].replace(",", ""))


def run(mode: str, count: int, wave: bool) -> None:
    """What is counted."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "torch")]
    import torch
    from gpt2 import TINY, example
    from reasons import stages_only
    from suite import rand
    from suite import wave as line

    from compile_lens import capture

    torch.set_num_threads(1)
    fn, inputs = (line, (rand(1000),)) if wave else example(TINY)
    with contextlib.nullcontext() if mode == "all" else stages_only():
        for _ in range(count):
            capture(fn, *inputs)


if __name__ == "__main__":
    main()
