"""The trial of an assistant on programs that torch.compile breaks, slows or gets wrong, with and without compile_lens.

    python benchmarks/agents/trial.py prepare NAME DIR   a folder with the program and the task
    python benchmarks/agents/trial.py check NAME DIR     whether the edited program meets its limits, as JSON
    python benchmarks/agents/trial.py self-check         each program misses its limits, and each solution keeps them

A check uses torch alone: its counters, the code that it writes, also for a device that is not there
(absent_device.py), the hooks of saved tensors, its profiler of memory, and the eager program. A solution names the
causes of a large program in comments, "# Cause 1: …"; self-check puts each cause back alone, and the limits must be
missed again.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
import torch._dynamo.utils
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.utils import run_and_get_code
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).resolve().parent))
import absent_device

HERE = Path(__file__).resolve().parent
TASKS = sorted(file.stem for file in (HERE / "tasks").glob("*.py"))

EVASIONS = (
    r"compiler\.disable|_dynamo\.disable|set_stance|force_eager|suppress_errors|is_compiling|is_dynamo"
    r"|backend\s*=|allow_in_graph|nonstrict_trace|leaf_function|custom_op|torch\.library|recompile_limit|cache_size_limit"
    r"|(?<![.\w])(?:exec|eval)\(|torch\.jit|graph_break|skip_|_inductor\.config|torch\.compile\b"
)
"""Ways to leave the work to eager PyTorch, or to avoid its being counted."""

PROMPT = """program.py holds `make()`, which returns the callable that is compiled as `torch.compile(make())`,
and `calls(seed)`, the arguments of calls that follow each other. {goal}

Edit program.py so that the compiled callable keeps these limits: {limits}.
Its results must stay those of the program as it is now, run without the compiler, for other seeds and the same shapes.
Do not disable the compiler for any part, do not change how it is configured, and keep `calls` as it is.
"""

ABSENT = """
The program will run on {device} with torch 2.13 and its default settings, without gradients (`torch.no_grad()`),
all parameters and arguments on the device. This machine has no such device. What `make()` computes once, before the
first call, is free.
"""

DEVICE_QUERIES = r"is_cuda|is_mps|device\.type|get_device|is_available|is_built"
"""Ways to run a different program on the device than on the CPU."""

WORDS = {
    "graphs": "at most {} graphs are compiled over all calls",
    "breaks": "at most {} graph breaks",
    "kernels": "the first graph becomes at most {} generated kernels and library calls",
    "launches": "all graphs together, forward and backward, become at most {} generated kernels and library calls",
    "allocated": "the last call, with its backward, allocates at most {} bytes, results and gradients included",
    "saved": "at most {} bytes are saved for the backward beside inputs and parameters",
    "device_launches": "on {device}, at most {} kernels, library calls and copies are launched in a call",
    "device_bytes": "on {device}, a call moves at most {} bytes, as Inductor counts them: what each kernel or library"
    " call reads and writes (`GraphLowering.count_bytes`)",
    "wrong": "the compiled results are as near to eager's as rounding allows, NaN, infinities and signs of zeros alike",
}


def load(file: Path, name: str) -> ModuleType:
    """Return a program as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def prompt(module: ModuleType) -> str:
    """Return the prompt with which an assistant gets a program."""
    target = getattr(module, "TARGET", "")
    device = {"h100": "one NVIDIA H100 (80 GB, SXM)", "mps": "an Apple GPU (mps)"}.get(target, "")
    limits = "; ".join(WORDS[name].format(limit, device=device) for name, limit in module.LIMITS.items())
    words = PROMPT.format(goal=" ".join((module.__doc__ or "").split()), limits=limits)
    return words + (ABSENT.format(device=device) if target else "")


def prepare(name: str, folder: Path) -> None:
    """Write the program and its task into a folder."""
    folder.mkdir(parents=True)
    source = HERE / "tasks" / f"{name}.py"
    (folder / "program.py").write_text(source.read_text(), encoding="utf-8")
    (folder / "TASK.md").write_text(prompt(load(source, "task")), encoding="utf-8")


def tensors(value: Any) -> Iterator[Any]:
    """Yield the tensors and numbers of a nested value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)
    elif value is not None:
        yield value


def run(make: Any, calls: Any, seed: int, memory: dict[str, int] | None = None) -> list[list[Any]]:
    """Return the results of each call, then the gradients of its arguments where it has any.

    With `memory`, the program is compiled, and it gets the bytes that a call saves and that the last call allocates.
    """
    torch.manual_seed(0)
    function = make()
    own = (
        {p.untyped_storage().data_ptr() for p in function.parameters()}
        if hasattr(function, "parameters")
        else set()
    )
    function = function if memory is None else torch.compile(function)
    rows: list[list[Any]] = []
    several = calls(seed)
    for arguments in several:
        leaves = [one for one in tensors(arguments) if isinstance(one, torch.Tensor) and one.requires_grad]
        inputs = {
            one.untyped_storage().data_ptr() for one in tensors(arguments) if isinstance(one, torch.Tensor)
        }
        kept: dict[int, int] = {}

        def pack(tensor: Any, kept: Any = kept, inputs: Any = inputs) -> Any:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in inputs | own:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        watch = memory is not None and len(rows) == len(several) - 1
        profiler = profile(activities=[ProfilerActivity.CPU], profile_memory=True) if watch else None
        torch.manual_seed(seed)
        with profiler or contextlib.nullcontext():
            with (
                torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
                if leaves
                else contextlib.nullcontext()
            ):
                results = list(tensors(function(*arguments)))
            total = sum(
                one.float().sum() for one in results if isinstance(one, torch.Tensor) and one.requires_grad
            )
            gradients = list(torch.autograd.grad(total, leaves)) if leaves else []
        if memory is not None:
            memory["saved"] = max(memory.get("saved", 0), sum(kept.values()))
        if memory is not None and profiler is not None:
            events = profiler.profiler.kineto_results.events()
            memory["allocated"] = sum(max(one.nbytes(), 0) for one in events if one.name() == "[memory]")
        every = [*results, *gradients, *(one for one in tensors(arguments) if isinstance(one, torch.Tensor))]
        rows.append([one.detach().clone() if isinstance(one, torch.Tensor) else one for one in every])
    return rows


def same(expected: Any, value: Any) -> bool:
    """Return True if a compiled value equals eager's except for rounding, with the same NaN and signed zeros."""
    if not isinstance(expected, torch.Tensor):
        return bool(expected == value)
    if not isinstance(value, torch.Tensor) or (expected.shape, expected.dtype) != (value.shape, value.dtype):
        return False
    if not expected.dtype.is_floating_point:
        return torch.equal(expected, value)
    zeros = (expected == 0) & (value == 0)
    if not torch.equal(expected.signbit() & zeros, value.signbit() & zeros):
        return False
    close = {torch.bfloat16: 3e-2, torch.float16: 4e-3}.get(expected.dtype, 2e-4)
    return torch.allclose(expected, value, rtol=close, atol=close, equal_nan=True)


def zeros(size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor of zeros for a buffer of generated code, so that library calls read valid indices."""
    return torch.empty_strided(size, stride, dtype=dtype).zero_()


@contextlib.contextmanager
def counts_alone() -> Iterator[None]:
    """Replace generated kernels by no-ops, which avoids the C++ compiler: figures are right, results are not."""
    with (
        mock.patch.object(AsyncCompile, "cpp_pybinding", lambda *_: lambda *_: None),
        mock.patch.object(torch._C._dynamo.guards, "_empty_strided_cpu", zeros),
        torch._inductor.config.patch(fx_graph_cache=False),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        yield


def measure(name: str, folder: Path, counts: bool = False) -> dict[str, Any]:
    """Return the figures of the edited program, and whether it keeps its limits; with `counts`, without its results."""
    source = (folder / "program.py").read_text(encoding="utf-8")
    task = load(HERE / "tasks" / f"{name}.py", "task")
    target = getattr(task, "TARGET", "")
    evasion = re.search(EVASIONS + (f"|{DEVICE_QUERIES}" if target else ""), re.sub(r"#.*", "", source))
    if evasion:
        return {"name": name, "solved": False, "why": f"the program has {evasion[0]!r}"}
    edited = load(folder / "program.py", "edited")
    if target:
        return measure_absent(name, task, edited, target)
    seed, memory = 20, {}
    expected = run(task.make, task.calls, seed)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with counts_alone() if counts else contextlib.nullcontext():
        values, codes = run_and_get_code(run, edited.make, task.calls, seed, memory)
    counters = torch._dynamo.utils.counters
    kernels = [
        len(
            re.findall(
                r"^\s+(?:\w+ = )?(?:cpp_fused\w*|extern_kernels\.\w+|torch\.ops\.\S+)\(",
                code.partition("def call(")[2],
                re.M,
            )
        )
        for code in codes
    ]
    figures = {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": sum(counters["graph_break"].values()),
        "kernels": kernels[0] if kernels else 0,
        "launches": sum(kernels),
        **memory,
        "wrong": sum(
            not same(a, b)
            for row, own in zip(expected, values, strict=True)
            for a, b in zip(row, own, strict=False)
        ),
    }
    over = {
        key: figures[key] for key, limit in task.LIMITS.items() if key != "wrong" and figures[key] > limit
    }
    why = [f"{key} {value}, limit {task.LIMITS[key]}" for key, value in over.items()]
    if counts:
        figures.pop("wrong")
    elif figures["wrong"] or any(len(a) != len(b) for a, b in zip(expected, values, strict=True)):
        why.append("other results")
    if not figures["graphs"]:
        why.append("nothing was compiled")
    return {"name": name, "solved": not why, "why": "; ".join(why), **figures}


def measure_absent(name: str, task: ModuleType, edited: ModuleType, target: str) -> dict[str, Any]:
    """Return the figures of the edited program on an absent device, and whether it keeps its limits.

    Its values are those of eager PyTorch on the CPU: the code for the device is read, not run.
    """
    seed = 20
    with torch.no_grad():
        expected, values = (run(one.make, task.calls, seed) for one in (task, edited))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    try:
        codes, moves = absent_device.generated(edited.make(), task.calls(seed), target)
    except Exception as problem:  # operations that the device lacks, such as int64 products
        return {"name": name, "solved": False, "why": f"not compiled for {target}: {str(problem)[:300]}"}
    counters = torch._dynamo.utils.counters
    figures = {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": sum(counters["graph_break"].values()),
        "device_launches": sum(len(absent_device.launches(code)) for code in codes),
        "device_bytes": moves,
        "wrong": sum(
            not same(a, b)
            for row, own in zip(expected, values, strict=True)
            for a, b in zip(row, own, strict=False)
        ),
    }
    why = [
        f"{key} {figures[key]}, limit {limit}"
        for key, limit in task.LIMITS.items()
        if key != "wrong" and figures[key] > limit
    ]
    if figures["wrong"] or any(len(a) != len(b) for a, b in zip(expected, values, strict=True)):
        why.append("other results")
    if not codes:
        why.append("nothing was compiled")
    return {"name": name, "solved": not why, "why": "; ".join(why), **figures}


def checked(name: str, folder: Path, seconds: float = 900, counts: bool = False) -> dict[str, Any]:
    """Return the measure of a program, taken in its own process."""
    command = [sys.executable, __file__, "counts" if counts else "measure", name, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"name": name, "solved": False, "why": f"it ran for more than {seconds:.0f} s"}
    except (IndexError, json.JSONDecodeError):
        return {"name": name, "solved": False, "why": done.stderr.strip().splitlines()[-1:] or ["no output"]}


def causes(name: str) -> dict[int, str]:
    """Return, by its number, the solution with one named cause put back as the program has it."""
    before, after = (
        (HERE / kind / f"{name}.py").read_text(encoding="utf-8").splitlines(keepends=True)
        for kind in ("tasks", "solutions")
    )
    changes = []
    cause = 0
    for _, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        alike = before[a:b] == after[c:d]
        named = re.search(r"# Cause (\d+)", "".join(after[c:d]))
        cause = int(named[1]) if named else cause
        changes.append((0 if alike else cause, before[a:b], after[c:d]))
    return {
        number: "".join(line for at, old, new in changes for line in (old if at == number else new))
        for number in sorted({at for at, _, _ in changes if at})
    }


def self_check(names: list[str]) -> int:
    """Print each program and its solution with their figures; return 1 if one is not as expected."""
    status = 0
    for name in names:
        program, solution = (
            (HERE / kind / f"{name}.py").read_text(encoding="utf-8") for kind in ("tasks", "solutions")
        )
        wrong = {"program": program, **{f"cause {number}": text for number, text in causes(name).items()}}
        rows = {}
        for kind, source in {**wrong, "solution": solution}.items():
            with tempfile.TemporaryDirectory() as scratch:
                (Path(scratch) / "program.py").write_text(source, encoding="utf-8")
                row = checked(name, Path(scratch), counts=True) if kind in wrong else {"solved": True}
                rows[kind] = checked(name, Path(scratch)) if row["solved"] else row
        right = all(row["solved"] == (kind == "solution") and "graphs" in row for kind, row in rows.items())
        status |= not right
        print("ok  " if right else "BAD ", json.dumps(rows), flush=True)
    return status


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for action in ("prepare", "check", "measure", "counts"):
        one = actions.add_parser(action)
        one.add_argument("name", choices=TASKS)
        one.add_argument("folder", type=Path)
    actions.add_parser("self-check").add_argument("names", nargs="*", metavar="NAME")
    words = parser.parse_args()
    if words.action == "prepare":
        prepare(words.name, words.folder)
    elif words.action == "self-check":
        return self_check(words.names or TASKS)
    else:
        take = {"check": checked, "measure": measure, "counts": partial(measure, counts=True)}[words.action]
        print(json.dumps(take(words.name, words.folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
