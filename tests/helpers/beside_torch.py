"""Ratio of a capture's function calls to those of torch's Dynamo and lowering: ``beside_torch.py SHAPE N``.

It runs in its own process, because earlier work in a process (other captures, a logger's handlers) adds calls.
"""

from __future__ import annotations

import cProfile
import pstats
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def beside_torch(shape: str, count: int) -> float:
    """Return the ratio for a program of ``benchmarks/capture.py``, given by its maker there and its number of parts."""
    command = [sys.executable, __file__, shape, str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def calls(fn: Any, args: tuple[Any, ...], work: Callable[..., Any]) -> int:
    """Return the number of function calls, which does not depend on the speed or load of the machine."""
    profile = cProfile.Profile()
    profile.runcall(work, fn, *args)
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return total


def main() -> None:
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
    import capture as benchmark

    fn, args = getattr(benchmark, sys.argv[1])(int(sys.argv[2]))
    works = (benchmark.capture, benchmark.with_room)
    for work in works:
        work(fn, *args)  # warms up values that are computed once per process
    ours, theirs = (calls(fn, args, work) for work in works)
    print(ours / theirs)


if __name__ == "__main__":
    main()
