"""Cost of watching a program: a training loop with and without ``compile_lens.watch``, alternating.

    python benchmarks/watch.py [--rounds N] [--backend NAME] [--json]

Each iteration recompiles everything (``torch._dynamo.reset``), trains and runs the optimizer compiled, so that
compiles, which are all that a watch records, have the largest possible share. A watch lets Dynamo work with room on
Python's stack (``compile_lens/_torch/ground/python_runtime.py``), which plain torch lacks: the loop alone runs as it
is, which a user compares, and with the same room, which isolates the cost of watching. Ratios of medians and of minima
are printed, with the time that the hooks measured themselves. The order within a round changes from round to round.
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
from compile_lens._torch.ground.python_runtime import with_stack_room  # noqa: E402

PLAIN, ROOM, WATCHED = "plain", "plain with room", "watched"
with_room = with_stack_room(watched.run)


def turn(side: str) -> tuple[float, float, float, object]:
    """Return wall and processor seconds of one iteration, wall seconds of its hooks, and the program's result."""
    gc.collect()
    began, used = time.perf_counter(), time.process_time()
    program = None
    if side == WATCHED:
        with compile_lens.watch() as program:
            result = watched.run("training")
    else:
        result = (with_room if side == ROOM else watched.run)("training")
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    return seconds, processor, 0.0 if program is None else program.record.overhead_seconds, result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--backend", default="aot_eager", help="of the model; the optimizer's is eager")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    watched.BACKEND = args.backend
    sides = [PLAIN, WATCHED, ROOM]
    for side in sides:
        turn(side)  # one-time imports and caches count as no run's cost
    times: dict[str, list[float]] = {side: [] for side in sides}
    processor: dict[str, list[float]] = {side: [] for side in sides}
    hooks = []
    for number in range(args.rounds):
        results = {}
        for side in sides if number % 2 else sides[::-1]:
            seconds, used, spent, results[side] = turn(side)
            times[side].append(seconds)
            processor[side].append(used)
            if side == WATCHED:
                hooks.append(spent / seconds)
        assert results[WATCHED] == results[PLAIN] == results[ROOM], "a watch changed the program"
    figures = {"rounds": args.rounds, "plain, median seconds": statistics.median(times[PLAIN])}
    for side in (PLAIN, ROOM):
        name = f"watched / {side}"
        figures |= {
            f"{name}, medians (aim: at most 1.05)": statistics.median(times[WATCHED])
            / statistics.median(times[side]),
            f"{name}, minima": min(times[WATCHED]) / min(times[side]),
            f"{name}, median of the ratios in turns": statistics.median(
                ours / theirs for ours, theirs in zip(times[WATCHED], times[side])
            ),
            f"{name}, medians of processor seconds": statistics.median(processor[WATCHED])
            / statistics.median(processor[side]),
        }
    figures["share that the hooks measured, median"] = statistics.median(hooks)
    if args.json:
        print(json.dumps(figures, indent=2))
    else:
        print(f"torch {torch.__version__}, backend {args.backend}")
        for name, value in figures.items():
            print(f"{name:<62} {value:.4g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
