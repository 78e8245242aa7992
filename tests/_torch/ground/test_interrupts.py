"""An interrupt at any line that sets up or tears down a capture leaves nothing behind.

A trace function raises ``KeyboardInterrupt`` when one of our lines is reached for the n-th time. Python itself would
raise at these points or at fewer: it checks for signals only at calls, at backward jumps and when a function
begins.
"""

from __future__ import annotations

import gc
import linecache
import sys
import threading
import types
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from state import diff, snapshot
from torch import nn

import compile_lens
from compile_lens import ablate, capture
from compile_lens._torch import isolation
from compile_lens._torch.code import compiler_probe
from compile_lens._torch.ground import hook_points, hooks, placement, python_runtime
from compile_lens._torch.ground.placement import DISGUISE

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

ROOM = Path(compile_lens.__file__).parent / "_torch"
FILES = {
    str(ROOM / f"{name}.py")
    for name in (
        *("session", "isolation", "ablation", "backend"),
        *("frames/code_copies", "frames/skipped_frames", "code/compiler_probe", "graphs/eager_count"),
        *(f"ground/{name}" for name in ("cache_entries", "hooks", "placement", "counters", "program_hooks")),
        *("ground/python_runtime", "ground/undo"),
    )
}
assert all(Path(file).is_file() for file in FILES), FILES

LEFT_IN_C = ("with lock:", "with placement.lock:", "with torch._C.DisableTorchFunction():")
"""Blocks that are left by a function in C: Python looks for no signal between their last line and that call, though a
trace function is called there."""

NO_WAY_OUT = torch.ops.prim.device.default
"""Asked of a fake tensor by C++ that lets no exception through: an interrupt in any mode, also in torch's own, ends the
process there."""

Position = tuple[str, int, int]
"""File, line, how often it was reached."""


class Tracer:
    """Counts how often our lines are reached, and interrupts at one of them."""

    def __init__(self, at: Position | None = None) -> None:
        self.at = at
        self.seen: Counter[tuple[str, int]] = Counter()
        self.interrupted = False

    def __call__(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if _file(frame) not in FILES or frame.f_locals.get("func") is NO_WAY_OUT:
            return None
        return self.line

    def line(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "line" and not self.interrupted:
            where = _file(frame), frame.f_lineno
            self.seen[where] += 1
            if self.at == (*where, self.seen[where]):
                self.interrupted = True
                raise KeyboardInterrupt
        return self.line


def _file(frame: types.FrameType) -> str:
    return frame.f_code.co_filename.removesuffix(DISGUISE)


def traced(call: Callable[[], object], at: Position | None = None) -> Tracer:
    tracer = Tracer(at)
    sys.settrace(tracer)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        left = sys.gettrace()
        sys.settrace(None)
    assert left is None or left is tracer, f"a trace function is left: {left}"
    return tracer


def positions(call: Callable[[], object]) -> list[Position]:
    """Each line that a call reaches, at its first and at its last pass."""
    found = traced(call).seen
    both = {(*where, n) for where, count in found.items() for n in (1, count)}
    return sorted(p for p in both if not linecache.getline(*p[:2]).strip().startswith(LEFT_IN_C))


def state(functions: list[Any]) -> dict[str, Any]:
    found = snapshot()
    for function in functions:  # a restored entry is another object, with the same code and guards
        entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(function.__code__)
        found[f"cache entries of {function.__qualname__}"] = [
            (id(e.code), id(e.guard_manager), id(e.backend)) for e in entries
        ]
    for path in (*hooks._registry, *hooks._free):
        if (place := hook_points.find(path)) is not None:
            found[f"hook {path}"] = id(vars(place[0]).get(place[1]))
    found["torch functions"] = torch._C._is_torch_function_enabled()
    found["drafts"] = len(hooks._local.stack or ())
    found["capturing"] = {k: v for k, v in vars(isolation._capturing).items() if v}
    found["no compiler"] = {k: v for k, v in vars(compiler_probe._local).items() if v}
    found["captures without a compiler"] = len(compiler_probe._active)
    locks = (placement.lock, python_runtime._lock, isolation._CAPTURE_LOCK, compiler_probe.lock)
    found["lock"] = tuple(_free(lock) for lock in locks)
    return found


def _free(lock: Any) -> bool:
    """Return True if another thread can take the lock."""
    got: list[bool] = []

    def take() -> None:
        got.append(lock.acquire(timeout=1))
        if got[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return got[0]


# The calls. --------------------------------------------------------------------------------------------------


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


def inner(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    torch._dynamo.graph_break()
    return torch.cos(y)


def outer(x: torch.Tensor) -> torch.Tensor:
    return inner(x) + 1


class Hooked(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


def leaf() -> torch.Tensor:
    return torch.linspace(0, 1, 4).requires_grad_()


def hooked() -> Callable[[], object]:
    module = Hooked()
    module.register_forward_hook(lambda *args: None)
    return lambda: (capture(module, leaf()), "forward" not in vars(module) or 1 / 0)


def beside_its_own() -> Callable[[], object]:
    torch._dynamo.reset()
    torch.compile(outer, backend="eager")(leaf())
    return lambda: capture(outer, leaf())


CALLS: dict[str, Callable[[], Callable[[], object]]] = {
    "a function": lambda: lambda: capture(wave, leaf()),
    "a function that the program compiled": beside_its_own,
    "a module with hooks": hooked,
    "steps": lambda: lambda: ablate(wave, leaf()),
}


def check(name: str, chosen: Callable[[list[Position]], list[Position]]) -> None:
    call = CALLS[name]()
    call()
    functions = [wave, inner, outer, Hooked.forward]
    every = positions(call)
    left, reached = [], 0
    wanted = chosen(every)
    gc.collect()
    before = state(functions)
    for at in wanted:
        reached += traced(call, at).interrupted
        after = state(functions)
        changed = diff(before, after) + [k for k in before if k not in after]
        if changed:
            text = linecache.getline(*at[:2]).strip()
            left.append((f"{Path(at[0]).name}:{at[1]} ({text}), time {at[2]}", changed))
            before = after
    call()
    assert left == []
    assert diff(before, state(functions)) == []
    assert reached >= 0.9 * len(wanted), (reached, len(wanted))


def sample(every: list[Position]) -> list[Position]:
    """Thirty positions, chosen by the text of their line, so that an edit elsewhere in the file keeps the choice."""

    def rank(at: Position) -> int:
        file, line, time = at
        text = linecache.getline(file, line).strip()
        return zlib.crc32(f"{Path(file).name}: {text} {min(time, 2)}".encode())

    return sorted(sorted(every, key=rank)[:30])


@pytest.mark.full
@pytest.mark.cases(full=1)
@pytest.mark.parametrize("name", CALLS)
def test_interrupts(name: str) -> None:
    check(name, sample)


@pytest.mark.exhaustive
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("name", CALLS)
def test_interrupts_at_every_line(name: str) -> None:
    check(name, lambda every: every)
