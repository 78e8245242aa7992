"""Torch's counters and timers over all compiles of the process, from which captures are excluded.

Dynamo compiles one frame at a time, under a lock. So everything counted while it compiles a capture's frame belongs to
that frame, and can be subtracted without affecting the counts of other threads.
"""

from __future__ import annotations

import collections
import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import hook_points
from .recorder import Recorder
from .undo import Undo as Steps

COUNTERS = (
    "torch._dynamo.eval_frame:dynamo_tls.traced_frame_infos",
    "torch._dynamo.output_graph:graph_break_reasons",
    "torch._dynamo.utils:_compilation_metrics",
    "torch._dynamo.utils:compilation_time_metrics",
    "torch._dynamo.utils:counters",
    "torch._dynamo.utils:cumulative_time_spent_ns",
    "torch._dynamo.utils:curr_frame",
    "torch._dynamo.utils:op_count",
    "torch._functorch._aot_autograd.logging_utils:nth_graph",
    "torch._inductor.compile_fx:FxCompile._compile_stats",
    "torch._logging._internal:structured_logging_overhead",
    "torch.utils._stats:simple_call_counter",
)
"""Torch's counters and lists outside of ``torch._inductor.metrics``."""

Undo = Callable[[], None]


@contextlib.contextmanager
def without_counting(recorder: Recorder) -> Iterator[None]:
    """Restore all counters on exit; the caller holds Dynamo's lock."""
    undo = snapshot()
    with Steps() as steps, steps:
        steps.add(restore, recorder, undo)
        recorder.leftovers.counters.append(undo)
        yield


def restore(recorder: Recorder, undo: Undo) -> None:
    """Restore counters with ``undo``; may be called again after an interrupt."""
    undo()
    if undo in recorder.leftovers.counters:
        recorder.leftovers.counters.remove(undo)


def snapshot() -> Undo:
    """Return a function that restores every counter to its present value."""
    import torch._inductor.metrics as metrics

    counters = [f for f in map(hook_points.find, COUNTERS) if f is not None]
    counters += [
        (metrics, name) for name, value in vars(metrics).items() if type(value) in (int, float, list)
    ]
    restorers = [_restorer(owner, name) for owner, name in counters]

    def undo() -> None:
        for one in restorers:
            one()

    return undo


def _restorer(owner: Any, name: str) -> Undo:
    value = getattr(owner, name)
    inside = _content_restorer(value)

    def undo() -> None:
        if getattr(owner, name, None) is not value:
            setattr(owner, name, value)
        if inside is not None:
            inside()

    return undo


def _content_restorer(value: Any) -> Undo | None:
    """Return a function that restores the content of a container; None for a plain value."""
    if isinstance(value, dict):
        return _dict_restorer(value)
    if isinstance(value, list):
        length = len(value)  # torch only appends to them
        return lambda: value.__delitem__(slice(length, None))
    if isinstance(value, collections.deque):
        kept = tuple(value)  # of bounded length: appending drops the oldest
        return lambda: _refill(value, kept)
    if hasattr(value, "__dict__") and not isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return _dict_restorer(vars(value))
    return None


def _dict_restorer(value: dict[Any, Any]) -> Undo:
    before = dict(value)
    inner = [one for item in before.values() if (one := _content_restorer(item)) is not None]

    def undo() -> None:
        for key in [k for k in value if k not in before]:
            del value[key]
        dict.update(value, before)  # Counter.update would add
        for one in inner:
            one()

    return undo


def _refill(value: collections.deque[Any], kept: tuple[Any, ...]) -> None:
    if tuple(value) != kept:
        value.clear()
        value.extend(kept)
