"""Cost of a capture for an absent device: the first of a process, the next ones, and building a request.

    python benchmarks/targets.py [--rounds N] [--beside FOLDER]

Each round is a new process. The first capture for a target starts the child; it is compared with the first capture
for the CPU of another new process, the next ones with the next for the CPU. Building a request is compared, in CPU
time, with cloudpickle alone for the same function and input, which ignores everything that they reach.

``--beside`` names another checkout of the repository, an older commit's for example: its captures for an H100
alternate with this one's, which alone shows the cost of a change on a machine with other load.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import json, sys, time, torch, compile_lens
def f(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2
x = torch.rand(1000, requires_grad=True)
times = []
for _ in range(6):
    start = time.perf_counter()
    compile_lens.capture(f, x, target=sys.argv[1] or None)
    times.append(time.perf_counter() - start)
print(json.dumps(times))
"""

PACKING = """
import json, time, cloudpickle, torch
from compile_lens._torch.operators.custom_operators import OperatorTransfer
from compile_lens.child import pickling, imports, context
def script(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2
layers = [torch.nn.Sequential(torch.nn.LayerNorm(16), torch.nn.Linear(16, 16), torch.nn.GELU()) for _ in range(200)]
x = torch.rand(4, 16)
def ours(fn):
    context.versions_of_modules()
    pickling.pack((fn, x), OperatorTransfer)
    imports.loaded(), context.current()
def alone(fn):
    cloudpickle.dumps((fn, x))
def spent(how, fn):
    start = time.thread_time()
    how(fn)
    return time.thread_time() - start
found = {}
for name, fn in {"script": script, "200 layers": torch.nn.Sequential(*layers)}.items():
    times = [(spent(ours, fn), spent(alone, fn)) for _ in range(12)]
    found[name] = [min(column) for column in zip(*times)]
print(json.dumps(found))
"""


def packing() -> None:
    """Print the cost of building a request."""
    command = [sys.executable, "-W", "ignore", "-c", PACKING]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    for name, (ours, alone) in json.loads(done.stdout).items():
        print(f"request of {name}: {ours * 1000:.1f} ms of CPU, {ours / alone:.2f} of cloudpickle's alone")


def captures(target: str, root: Path) -> list[float]:
    """Return seconds of captures in a new process, one after another, with the package of a checkout."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, target]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=kept)
    times: list[float] = json.loads(done.stdout)
    return times


def beside(other: Path, rounds: int) -> None:
    """Print the cost of this checkout's captures relative to another's."""
    times_of: dict[Path, list[list[float]]] = {ROOT: [], other: []}
    for number in range(rounds + 1):
        for root, times in times_of.items():
            took = captures("h100", root)
            if number:  # in the first round Python also writes its bytecode
                times.append(took)
    for what, part in (("first", slice(0, 1)), ("next", slice(1, None))):
        for how, figure in (("least", min), ("median", statistics.median)):
            ours, theirs = (figure([x for r in times for x in r[part]]) for times in times_of.values())
            print(f"h100  {what} {ours:.3f} s, {ours / theirs:.2f} of the other's ({how})")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path, help="another checkout")
    given = parser.parse_args()
    rounds = given.rounds
    if given.beside is not None:
        beside(given.beside.resolve(), rounds)
        return
    times: dict[str, list[list[float]]] = {"": [], "h100": [], "mps": []}
    for _ in range(rounds):
        for target, series in times.items():
            series.append(captures(target, ROOT))
    first = {t: statistics.median(r[0] for r in series) for t, series in times.items()}
    later = {t: statistics.median(x for r in series for x in r[1:]) for t, series in times.items()}
    for target in ("h100", "mps"):
        print(
            f"{target:5} first {first[target]:.2f} s, {first[target] / first['']:.2f} of the CPU's first; "
            f"next {later[target]:.3f} s, {later[target] / later['']:.2f} of the CPU's next"
        )
    packing()


if __name__ == "__main__":
    main()
