"""Times of each kernel of a call, from another build of the code with a clock around each launch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from ..engine.call import Call
from ..engine.local import perform
from ..errors import UsageError
from ..measures.chain import Chain
from ..measures.profile import measured_kernel, modules_of
from ..record.benchmark import BY_LINE, MeasuredEvents, MeasuredGraph, Profile
from ..record.kernel import Code, Kernel
from ..record.missing import Missing
from ..results.capture import Capture
from .restoration import SavedState

if TYPE_CHECKING:
    from .._torch.code.launch_times import GraphTimes, LaunchTimes

WARM_UP_CALLS = 3
CALL_LIMITS = (7, 200)
"""Minimum and maximum number of timed calls."""

NOT_LAUNCHED = "no call launched it"
NO_CLOCK = "its launch has no line of its own in the wrapper, where a clock could stand"

Gradients = Callable[[Any], Callable[[Callable[[], Any]], Callable[[], Any]] | None]
"""Function that returns, for a result, a wrapper that adds its gradients to a call; None if it has none."""


def check_device(kind: str) -> None:
    """Raise ``UsageError`` for a device whose launches a host clock cannot time."""
    if kind.partition(":")[0] != "cpu":
        raise UsageError(
            f'by="kernel" times launches on a CPU, and the call runs on {kind}: profile it with torch.profiler, and '
            "capture.join(trace) has the times of its kernels"
        )


def kernel_times(call: Call, seconds: float, gradients: Gradients) -> Profile:
    """Build a call again with a clock around each launch, and time its kernels for about ``seconds``."""
    from .._torch.code.launch_times import LaunchTimes

    times = LaunchTimes()
    saved_state = SavedState(call.fn, call.args, call.kwargs)
    walls: list[float] = []
    eager: list[MeasuredEvents] = []

    def measure(outcome: Any, compiled: Any, plain: Any, switch: Any) -> None:
        outcome.result = None
        saved_state.reset()
        with_gradients = gradients(compiled(*call.args, **call.kwargs))
        mutates = saved_state.changed()
        saved_state.reset()
        calls = [lambda: compiled(*call.args, **call.kwargs), lambda: plain(*call.args, **call.kwargs)]
        if with_gradients is not None:
            calls = [with_gradients(run) for run in calls]
        for _ in _rounds(calls[0], WARM_UP_CALLS, 0.0, saved_state, mutates):
            pass
        times.reset()
        walls.extend(_rounds(calls[0], CALL_LIMITS[1], seconds, saved_state, mutates))
        eager.extend(_operators(calls[1]))
        saved_state.reset()

    capture, outcome = perform(call, then=measure, launch_probe=times)
    outcome.result = None
    graphs = [
        _graph(capture, compilation.id, code, times)
        for compilation in capture.compilations
        for code in compilation.stages
        if isinstance(code, Code)
    ]
    saved_state.reset()
    source = f"a monotonic clock around each launch, whose own {times.cost * 1e9:.0f} ns are subtracted"
    return Profile(source, "cpu", tuple(graphs), operators=tuple(eager), calls=len(walls), seconds=sum(walls))


def _rounds(
    run: Callable[[], Any], most: int, seconds: float, saved_state: SavedState, mutates: bool
) -> Iterator[float]:
    """Call repeatedly for about ``seconds``; yield the wall time of each call."""
    end = time.perf_counter() + seconds
    for number in range(most):
        if seconds and number >= CALL_LIMITS[0] and time.perf_counter() > end:
            return
        begin = time.perf_counter()
        run()
        yield time.perf_counter() - begin
        if mutates:
            saved_state.reset()


def _operators(run: Callable[[], Any]) -> list[MeasuredEvents]:
    """Return the outermost operators of an eager call, by torch's profiler."""
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run()
    seconds: dict[str, list[float]] = {}
    for event in profile.events():
        if event.cpu_parent is None and event.name.startswith("aten::"):
            seconds.setdefault(event.name, []).append(event.cpu_time_total / 1e6)
    events = [MeasuredEvents(name, len(own), sum(own)) for name, own in seconds.items()]
    return sorted(events, key=lambda one: -one.seconds)


def _graph(capture: Capture, compile_id: str, code: Code, times: LaunchTimes) -> MeasuredGraph:
    graph = times.graphs.get((compile_id, code.phase))
    if graph is None or not graph.calls:
        why = "no call ran it" if graph is not None else "its code has no clock"
        return MeasuredGraph(compile_id, code.phase, compile_id, 0, 0.0, missing=(Missing("kernels", why),))
    chain = Chain(capture)
    modules = modules_of(capture, compile_id, code)
    kernels, missing = [], []
    for kernel in code.kernels:
        seconds = [s for line in kernel.launch_lines for s in graph.launches.get(line, ())]
        if not seconds:
            missing.append(Missing(kernel.name, _why(kernel, graph)))
            continue
        kernels.append(measured_kernel(chain, modules, kernel, BY_LINE, kernel.name, seconds))
    return MeasuredGraph(
        compile_id,
        code.phase,
        compile_id,
        len(graph.calls),
        sum(graph.calls),
        tuple(kernels),
        missing=tuple(missing),
    )


def _why(kernel: Kernel, graph: GraphTimes) -> str:
    return NOT_LAUNCHED if graph.lines.intersection(kernel.launch_lines) else NO_CLOCK
