"""Compares captures for an absent device with the device itself, on a machine with an NVIDIA GPU.

    python benchmarks/real_device.py [--groups NAME …] [--only TEXT] [--jobs N] [--model NAME] [--output TABLE.md]
    python benchmarks/real_device.py --record FOLDER; python benchmarks/real_device.py --against FOLDER

For each program of ``tests/helpers/device_programs.py``: whether the capture for the device's model has the graphs,
the code, the counts and the memory of a capture on the device itself; generated kernels of the ledger and of
torch.profiler; and the predicted peak beside the allocator's. Then, alone on the device, how fast kernels that move
large tensors move the modelled bytes. Results saved by ``--record`` on the device can be compared elsewhere, with the
same torch. Prints Markdown. Without an NVIDIA GPU it reports this and exits with 3; with
a GPU that has no device model, with 4.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import multiprocessing
import re
import signal
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HELPERS = ROOT / "tests" / "helpers"  # before benchmarks: both have a file lessons.py
sys.path[:0] = [str(ROOT), str(HELPERS), str(ROOT / "benchmarks")]

from device_table import Row, Speed, of_speed, table  # noqa: E402

NO_DEVICE, NO_MODEL = 3, 4
SECONDS = 120
"""Limit for one program; one that takes longer is reported."""


# Equal or different ------------------------------------------------------------------------------------------------


def unplaced(text: str) -> str:
    """Return a text without data of the process and of the installation: addresses, and the folders of files."""
    return re.sub(r"0x[0-9a-f]+|/[^\s`]*/", "", text)


def same(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Return True if the kernels of two captures are equal, except for data of an installation."""
    from device_programs import told

    return told(one) == told(other)


def apart(one: Any, other: Any) -> tuple[str, ...]:
    """Return the differences between two captures, in the record's words."""

    def graphs(capture: Any, stages: tuple[str, ...], whole: bool) -> Any:
        return [
            {
                key: [(n.target, n.outputs) for n in graph.calls]
                for key, graph in c.graphs.items()
                if (key.rpartition(".")[2] in stages) == whole
            }
            for c in capture.compilations
        ]

    traced = ("dynamo", "pre_grad")
    looks: dict[str, Callable[[Any], Any]] = {
        "Dynamo's graphs": lambda c: graphs(c, traced, True),
        "ATen graphs, loops and groups": lambda c: graphs(c, traced, False),
        "eager operators": lambda c: [compiled.eager for compiled in c.compilations],
        "counts": lambda c: c.ledger.rows if c.compilations else (),
        "memory": lambda c: [[(m.phase, m.peak) for m in compiled.memory] for compiled in c.compilations],
        "CUDA graphs": lambda c: [compiled.cuda_graphs for compiled in c.compilations],
        "breaks": lambda c: [unplaced(b.reason) for b in c.breaks],
    }
    differences = [what for what, look in looks.items() if look(one) != look(other)]
    return tuple(([] if same(one.kernels, other.kernels) else ["code"]) + differences)


def foreseen(capture: Any) -> tuple[str, ...]:
    """Return the facts that a capture predicts may differ on the device itself."""
    code = [text for c in capture.compilations for code in c.code.values() for text in code.may_differ]
    queries = [] if capture.target is None else [q.asked for q in capture.target.queries]
    return tuple(dict.fromkeys((*code, *queries)))


def peak_of(capture: Any) -> int | None:
    """Return the most live bytes of one call, of inputs and allocations; ``None`` if one is not known.

    The caller keeps the forward's results alive during the backward, unless the backward reads them itself.
    """
    from compile_lens.measures.memory_budget import memory_budget

    rows: list[int] = []
    for compilation in capture.compilations:
        results = 0
        read = {b.name for m in compilation.memory for b in m.buffers if b.kind == "input"}
        for held in compilation.memory:
            there = memory_budget(capture, held)
            if there is None:
                return None
            rows.append(there.needed_bytes + results)
            results = sum(
                b.nbytes or 0
                for b in held.buffers
                if b.kind == "output" and not b.base and not read & set(b.origins)
            )
    return max(rows, default=None)


# On the device -----------------------------------------------------------------------------------------------


def on_device(program: Any) -> dict[str, Any]:
    """Run one program on the first GPU: its capture, the error if it has one, and plain ``torch.compile``.

    A failure is reported, and the next program goes on.
    """
    result: dict[str, Any] = {"program": str(program), "notes": []}
    try:
        with limited(SECONDS):
            capture, result["error"] = captured(program, "cuda")
            result["capture"] = capture.to_json()
            if not result["error"]:
                result |= run(program, capture)
    except Exception as error:  # a table with this line in it is better than none
        lines = str(error).splitlines()
        result["notes"].append(f"{type(error).__name__}: {lines[0] if lines else ''}")
    return result


def beside(program: Any, found: dict[str, Any], model: str) -> Row:
    """Compare the capture of one program with the results of ``on_device``."""
    import compile_lens

    generated, error = captured(program, "cpu", target=model)
    more: dict[str, Any] = {key: found.get(key) for key in ("launches", "profiled", "allocated")}
    if "capture" in found:
        differ = apart(generated, compile_lens.Capture.from_json(found["capture"]))
        more["apart"] = differ + (("the error",) if error != found["error"] else ())
        more["predicted"] = peak_of(generated)
    return Row(program.group, program.name, said=foreseen(generated), notes=tuple(found["notes"]), **more)


def captured(program: Any, device: str, **options: Any) -> tuple[Any, str]:
    """Return a capture, and its exception, without data of the process or of the installation."""
    import torch

    import compile_lens

    torch._dynamo.reset()
    fn, args = program.make(device)
    with switches():
        try:
            return compile_lens.capture(fn, *args, **options), ""
        except compile_lens.CaptureError as error:
            return error.capture, unplaced(str(error))


def run(program: Any, real: Any) -> dict[str, int]:
    """Run plain ``torch.compile`` on the device: kernels that the profiler recorded, and the allocator's peak."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch._dynamo.reset()
    with switches():
        fn, args = program.make("cuda")
        compiled, held = torch.compile(fn), tensors_of(fn, args)

        def step() -> None:
            results = compiled(*args)
            leaves = [
                t for t in torch.utils._pytree.tree_leaves(results) if getattr(t, "requires_grad", False)
            ]
            torch.autograd.backward(leaves, [torch.ones_like(t) for t in leaves])
            for one in held if leaves else ():
                one.grad = None

        step()  # compiles, and initializes what is created once
        step()
        torch.cuda.synchronize(0)
        before = torch.cuda.memory_allocated(0)
        torch.cuda.reset_peak_memory_stats(0)
        step()
        torch.cuda.synchronize(0)
        allocated = torch.cuda.max_memory_allocated(0) - before
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            step()
            torch.cuda.synchronize(0)
    kernels = [k for k in real.kernels if k.language == "triton"]
    # Inductor names its own kernels like this; a kernel of the program is compiled under its own name.
    labels = {k.name.partition("#")[0] for k in kernels}
    names = {name if name.startswith("triton_") else name.rpartition("_")[0] for name in labels}
    on_device = [e.name for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in held if t.is_cuda}
    return {
        "launches": sum(k.launches for k in kernels),
        "profiled": sum(name in names for name in on_device),
        "allocated": allocated + sum(storages.values()),
    }


def tensors_of(fn: Any, args: Sequence[Any]) -> list[Any]:
    """Return a program's input tensors: its arguments, and those in a module, an optimizer or a closure."""
    import torch

    flat: list[Any] = [t for t in torch.utils._pytree.tree_leaves(list(args)) if isinstance(t, torch.Tensor)]
    owners = [
        getattr(fn, "__self__", fn),
        *(cell.cell_contents for cell in getattr(fn, "__closure__", None) or ()),
    ]
    for owner in owners:
        if isinstance(owner, torch.nn.Module):
            flat += [*owner.parameters(), *owner.buffers()]
        elif isinstance(owner, torch.optim.Optimizer):
            given = [p for group in owner.param_groups for p in group["params"]]
            states = [
                v for state in owner.state.values() for v in state.values() if isinstance(v, torch.Tensor)
            ]
            flat += [*given, *(p.grad for p in given if p.grad is not None), *states]
        elif isinstance(owner, torch.Tensor):
            flat.append(owner)
    return flat


@contextlib.contextmanager
def switches() -> Iterator[None]:
    """Restore the process-wide choice of attention afterwards, which programs may set."""
    import torch

    cuda = torch.backends.cuda
    names = ("math_sdp", "mem_efficient_sdp", "cudnn_sdp", "flash_sdp")
    before = {name: getattr(cuda, f"{name}_enabled")() for name in names}
    try:
        yield
    finally:
        for name, on in before.items():
            getattr(cuda, f"enable_{name}")(on)


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError(f"it took longer than {seconds} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def speeds() -> list[Speed]:
    """Measure memory-bound functions of large tensors, forward alone, beside a copy."""
    import torch
    import torch.nn.functional as F

    import compile_lens

    flat, rows = torch.rand(2**27, device="cuda"), torch.rand(2**15, 2**12, device="cuda")
    weight, target = torch.rand(2**12, device="cuda"), torch.empty_like(flat)
    copied = 2 * flat.nbytes / seconds(lambda: target.copy_(flat))
    large: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "sin² + cos²": (lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, (flat,)),
        "sum": (lambda x: x.sum(), (flat,)),
        "softmax": (lambda x: torch.softmax(x, -1), (rows,)),
        "layer norm": (lambda x, w: F.layer_norm(x, x.shape[-1:], w, w), (rows, weight)),
        "GELU and a sum of columns": (lambda x: F.gelu(x).sum(0), (rows,)),
        "to bfloat16": (lambda x: x.to(torch.bfloat16), (flat,)),
    }
    found = []
    for name, (fn, args) in large.items():
        compiled, nbytes = torch.compile(fn), compile_lens.capture(fn, *args).ledger.total.bytes_after
        found.append(Speed(name, nbytes, seconds(lambda f=compiled, a=args: f(*a)), copied))
    return found


def seconds(call: Callable[[], Any]) -> float:
    """Return the median of twenty calls by the device's own events, after three that are not counted."""
    import torch

    took = []
    for _ in range(23):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "se")
        start.record()
        call()
        end.record()
        torch.cuda.synchronize(0)
        took.append(start.elapsed_time(end) / 1e3)
    return statistics.median(took[3:])


# Many of them ------------------------------------------------------------------------------------------------------


def _chosen(groups: tuple[str, ...], only: str) -> list[Any]:
    from device_programs import programs

    return [p for p in programs(groups) if only in str(p)]


def _on_device(groups: tuple[str, ...], only: str, number: int) -> dict[str, Any]:
    return on_device(_chosen(groups, only)[number])


def record(groups: tuple[str, ...], only: str, jobs: int) -> Iterator[dict[str, Any]]:
    """Return the results on the device, from this many processes; a program whose process ended is reported."""
    programs = _chosen(groups, only)
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_on_device, groups, only, i): program for i, program in enumerate(programs)}
        for one in concurrent.futures.as_completed(futures):
            error = one.exception()
            yield one.result() if error is None else {"program": str(futures[one]), "notes": [repr(error)]}


def kept(folder: Path, name: str, found: Any) -> None:
    """Write the results to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}.json"
    part = file.with_name(f"{file.name}.part")
    part.write_text(json.dumps(found), encoding="utf-8")
    part.replace(file)


def main(arguments: Sequence[str] | None = None) -> int:
    import torch
    from device_programs import GROUPS

    from compile_lens.devices import models

    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--groups", nargs="+", metavar="NAME", choices=list(GROUPS), default=[], help="default: all"
    )
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="programs with this in their group or name"
    )
    parser.add_argument("--jobs", type=int, metavar="N", default=1, help="processes that share the device")
    parser.add_argument("--model", help="device model (default: the one of this GPU)")
    parser.add_argument(
        "--record", type=Path, metavar="FOLDER", help="only keep what the device does, in a folder"
    )
    parser.add_argument(
        "--against", type=Path, metavar="FOLDER", help="beside what --record kept, without the device"
    )
    parser.add_argument("--output", type=Path, help="also write the tables to this file")
    args = parser.parse_args(arguments)
    groups = tuple(args.groups)
    if args.against:
        about = json.loads((args.against / "about.json").read_text(encoding="utf-8"))
    elif not torch.cuda.is_available():
        print("no NVIDIA GPU in this machine: nothing was compared", file=sys.stderr)
        return NO_DEVICE
    else:
        about = {"program": "about", "device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    model = models.resolve(args.model) if args.model else models.find(about["device"])
    if model is None:
        print(
            f"no device model is of {about['device']}: pass one with --model (a name or a file)",
            file=sys.stderr,
        )
        return NO_MODEL
    if args.against:
        files = [json.loads(file.read_text(encoding="utf-8")) for file in args.against.glob("*.json")]
        results = {one["program"]: one for one in files}
    else:
        about["speeds"] = [dataclasses.asdict(one) for one in speeds()]  # before others share the device
        if args.record:
            kept(args.record, "about", about)
        results = {}
        for one in record(groups, args.only, args.jobs):
            results[one["program"]] = one
            if args.record:
                kept(args.record, one["program"], one)
    if args.record:
        return 0
    rows = [beside(p, results[str(p)], model.name) for p in _chosen(groups, args.only) if str(p) in results]
    moved = of_speed([Speed(**one) for one in about["speeds"]], model.bandwidth)
    text = f"{about['device']}, model {model.name}, torch {about['torch']}\n\n{table(rows)}\n{moved}"
    print(text)
    if args.output:
        part = args.output.with_name(f"{args.output.name}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
