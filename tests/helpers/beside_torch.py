"""Calls of functions that a capture makes, by those of torch's own Dynamo and lowering: ``beside_torch.py SHAPE N``.

A process of its own, since what ran before in one (other captures, a logger's handlers) makes calls too.
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
    """The ratio for a program of ``benchmarks/capture.py``: a maker of programs there, and how many parts it has."""
    command = [sys.executable, __file__, shape, str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def calls(fn: Any, args: tuple[Any, ...], work: Callable[..., Any]) -> int:
    """Calls of functions that are made: as many on a slow or busy machine as on any other."""
    profile = cProfile.Profile()
    profile.runcall(work, fn, *args)
    made: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return made


def main() -> None:
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
    import capture as benchmark

    fn, args = getattr(benchmark, sys.argv[1])(int(sys.argv[2]))
    works = (benchmark.capture, benchmark.with_room)
    for work in works:
        work(fn, *args)  # what is made once in a process is made here
    ours, theirs = (calls(fn, args, work) for work in works)
    print(ours / theirs)


if __name__ == "__main__":
    main()
