"""What watching a program costs: a training loop with and without ``compile_lens.watch``, in turns.

    python benchmarks/watch.py [--rounds N] [--backend NAME] [--json]

Each turn compiles everything anew (``torch._dynamo.reset``), trains and runs the optimizer compiled, so that compiles,
which are all that a watch sees, weigh as much as they can. The ratio of medians and that of minima are printed, with
the time that the hooks measured themselves to take. The order within a round changes from round to round.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import statistics
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

import torch  # noqa: E402
import watched  # noqa: E402

import compile_lens  # noqa: E402


def turn(watching: bool) -> tuple[float, float, float, object]:
    """Wall and processor seconds of one turn, wall seconds of it that the hooks took, and what the program gave."""
    gc.collect()
    began, used = time.perf_counter(), time.process_time()
    program = None
    if watching:
        with compile_lens.watch() as program:
            result = watched.run("training")
    else:
        result = watched.run("training")
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    return seconds, processor, 0.0 if program is None else program.record.hooks, result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--backend", default="aot_eager", help="of the model; the optimizer's is eager")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    watched.BACKEND = args.backend
    turn(False), turn(True)  # what is imported and cached once is no cost of either
    times: dict[bool, list[float]] = {False: [], True: []}
    processor: dict[bool, list[float]] = {False: [], True: []}
    hooks = []
    for number in range(args.rounds):
        results = {}
        for watching in (False, True) if number % 2 else (True, False):
            seconds, used, spent, results[watching] = turn(watching)
            times[watching].append(seconds)
            processor[watching].append(used)
            if watching:
                hooks.append(spent / seconds)
        assert results[True] == results[False], "a watch changed the program"
    figures = {
        "rounds": args.rounds,
        "plain, median seconds": statistics.median(times[False]),
        "ratio of medians (aim: at most 1.05)": statistics.median(times[True])
        / statistics.median(times[False]),
        "ratio of minima": min(times[True]) / min(times[False]),
        "median of the ratios in turns": statistics.median(w / p for w, p in zip(times[True], times[False])),
        "ratio of medians of processor seconds": statistics.median(processor[True])
        / statistics.median(processor[False]),
        "share that the hooks measured, median": statistics.median(hooks),
    }
    if args.json:
        print(json.dumps(figures, indent=2))
    else:
        print(f"torch {torch.__version__}, backend {args.backend}")
        for name, value in figures.items():
            print(f"{name:<45} {value:.4g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
