"""Honest measurement: eager, ablated and compiled code of one function, timed in turns."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from ..engine.call import Call, WeakCall
from ..engine.entry import outside_dynamo, separates_keywords
from ..engine.local import perform
from ..engine.options import CaptureOptions
from ..engine.record import with_steps
from ..errors import BuildError, UsageError
from ..measures.ledger import ledger
from ..measures.steps import at_step
from ..record.benchmark import BOTH, FORWARD, Benchmark, DeviceSpeed, Series
from ..record.capture import ABLATIONS
from ..record.figures import Figure, summed
from ..results.capture import Capture
from . import kernel_times
from .agreement import TOLERANCES
from .copies import copied
from .progress import bar, progress, watched
from .restoration import SavedState
from .result_gradients import ResultGradients
from .speed import Clock, clock_of
from .trial import draws

if TYPE_CHECKING:
    from .._torch.ablation import Switch
    from .._torch.session import Outcome

EAGER, COMPILED = "eager", "compiled"
WARM_UP = 3
"""Calls of each series before the first that counts."""
SAMPLE = 1e-3
"""Seconds that a sample lasts at least: a clock's resolution and a call's overhead are small beside it."""
ROUNDS = (5, 200)
"""The fewest and the most rounds."""
CALLS = 100_000
"""The most calls of a sample."""
OURS = ("run", "eager count")
"""Parts of a capture's time that are no part of the compile."""


@outside_dynamo
@separates_keywords()
def benchmark(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    backward: bool | str = "auto",
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    fullgraph: bool = False,
    ablations: bool = True,
    seconds: float = 3.0,
    by: str | None = None,
    show_progress: bool | None = None,
    **named: Any,
) -> Capture:
    """Time ``fn(*args, **kwargs)`` in eager PyTorch, in each step of ``ablate``, and compiled, in one run.

    Every way is built, checked against eager's results, warmed up, and then they take turns, a sample each in
    every round, so that what disturbs the machine disturbs all of them. Where an output needs a gradient, the
    forward alone and forward with gradients are timed, each call with a graph of its own. A sample is one or more
    calls (the same number for all, at least a millisecond), timed by the device's own events on CUDA and MPS and
    by a monotonic clock on the CPU.

    The function runs many times, on copies of its tensors and of its module; what else it reaches (tensors in
    closures and globals, gradients) is put back, as are random states. Other side effects (prints, lists that
    grow) happen with every call.

    Args:
        fn, args, kwargs, backward, dynamic, mode, options, fullgraph: as in ``capture``.
        ablations: also build and time the steps of ``ablate`` (more to build: a kernel for each loop).
        seconds: about how long to measure. Building takes longer, and is not counted in.
        by: ``"kernel"`` builds the code once more, with a clock around each launch (on a CPU), and
            ``capture.profile`` has the time of each kernel, with its lines and modules.
        show_progress: a progress bar on stderr; by default in a terminal and in a notebook.

    Returns:
        The capture (as ``capture`` with ``build=True``) with ``capture.benchmark`` and ``capture.ablations``.

    Raises:
        UsageError: an argument is not usable, or ``by="kernel"`` for a device that is no CPU.
        BuildError: there is no C++ compiler, and the code is for the CPU.
        CaptureError: the function raised, or a stage of the compiler rejected it.
    """
    from .._torch.frames import code_copies

    if by not in (None, "kernel"):
        raise UsageError(f"by={by!r} is not one of None, 'kernel'")
    checked = CaptureOptions(backward, dynamic, mode, options, fullgraph, build=True)
    call = Call.read(fn, args, kwargs, checked)
    if by is not None:
        kernel_times.check_device(call.kind)
    quiet = not (watched() if show_progress is None else show_progress)
    run = call.of(*copied(code_copies.uncompiled_function(fn)[0], call.args, call.kwargs))
    device = run.kind
    kind = device.partition(":")[0]
    _needs_compiler(kind)
    measuring = _Measuring(run.args, run.kwargs, clock_of(kind), seconds, backward is not False, quiet)
    held = SavedState(run.fn, run.args, run.kwargs)
    measuring.held = held
    busy = _busy(kind)
    names = ABLATIONS if ablations else ()
    with contextlib.ExitStack() as stack:
        stack.callback(held.reset)
        waiting = stack.enter_context(contextlib.ExitStack())
        what = f"building {call.name}" + (f" in {len(names)} steps" if names else "")
        waiting.enter_context(progress(what, quiet=quiet))
        measuring.built = waiting.close
        capture, outcome = perform(run, steps=names, then=measuring, launch_backward=False)
        outcome.result = None
    done = with_steps(capture, outcome) if names else capture
    if by is not None:
        gradients = _after_gradients if backward is not False else lambda result: None
        done = dataclasses.replace(done, profile=kernel_times.kernel_times(run, seconds, gradients))
    speed, reason = _speed(device, run.args, run.kwargs)
    measured = measuring.result(done, device, [note for note in (busy, reason) if note])
    done = dataclasses.replace(done, benchmark=dataclasses.replace(measured, speed=speed))
    object.__setattr__(done, "_live", WeakCall(fn, call.args, call.kwargs))
    return done


class _Measuring:
    """Called while the compiled code is there; holds what it measured."""

    def __init__(
        self, args: Any, kwargs: Any, clock: Clock, seconds: float, backward: bool, quiet: bool
    ) -> None:
        self.args, self.kwargs, self.clock = args, kwargs, clock
        self.seconds, self.backward, self.quiet = seconds, backward, quiet
        self.held = SavedState()
        self.built: Callable[[], None] = lambda: None
        self.taken: list[Series] = []
        self.notes: list[str] = []
        self.mutates = False
        self.recompiles = 0

    def __call__(self, outcome: Outcome, compiled: Any, eager: Any, switch: Switch) -> None:
        outcome.result = None
        self.built()
        self.held.reset()
        ways: dict[str, Callable[[], Any]] = {EAGER: lambda: eager(*self.args, **self.kwargs)}
        for step in outcome.steps:
            if step.error is None:
                ways[step.name] = self._stepped(compiled, switch, step.name)
        ways[COMPILED] = self._stepped(compiled, switch, ABLATIONS[-1])
        compiles = len(outcome.recorder.drafts)
        gradients = self.check(ways)
        ran = [outcome.recorder, *(s.recorder for s in outcome.steps if s.name in ways)]
        for recorder in ran:
            for phase in ("inference", "forward", *(["backward"] if gradients is not None else [])):
                recorder.stamp(phase, "ran")
        whats = {FORWARD: ways}
        if gradients is not None:
            whats[BOTH] = {name: gradients.after(call) for name, call in ways.items()}
        with bar("measuring", quiet=self.quiet) as tell:
            for what, calls in whats.items():
                self._take(what, calls, self.seconds / len(whats), tell)
        self.recompiles = len(outcome.recorder.drafts) - compiles

    def _stepped(self, compiled: Any, switch: Switch, step: str) -> Callable[[], Any]:
        def call() -> Any:
            switch.step = step
            return compiled(*self.args, **self.kwargs)

        return call

    # Results: what is timed must compute the same.
    def check(self, ways: dict[str, Callable[[], Any]]) -> ResultGradients | None:
        """Compare each way with eager, and drop a step that fails. Returns how to take gradients, if any."""
        from .._torch.isolation import random_state

        with random_state():
            result = ways[EAGER]()
        gradients = ResultGradients.of(result) if self.backward else None
        wanted = _values(result, gradients)
        self.mutates = self.held.changed()
        self.held.reset()
        for name, call in list(ways.items())[1:]:
            try:
                with random_state():
                    self.notes += _differences(name, _values(call(), gradients), wanted)
            except Exception as error:  # of whatever kind: a step that cannot run is lost, with its reason
                if name == COMPILED:
                    raise
                del ways[name]
                self.notes.append(f"{name} could not be run: {type(error).__name__}: {str(error)[:200]}")
            self.held.reset()
        return gradients

    # Times.
    def _take(
        self, what: str, ways: dict[str, Callable[[], Any]], budget: float, tell: Callable[..., None]
    ) -> None:
        launched = {name: self.clock.kernels(call) for name, call in ways.items()}
        once = {}
        for name, call in ways.items():
            self.clock.time(call, WARM_UP)
            once[name] = self.clock.time(call, 1)
            if once[name] < SAMPLE:  # one call is too short to tell how short
                once[name] = self.clock.time(call, min(CALLS, math.ceil(SAMPLE / max(once[name], 1e-7))))
            self._put_back()
        calls = min(CALLS, max(1, math.ceil(SAMPLE / max(min(once.values()), 1e-8))))
        rounds = max(ROUNDS[0], min(ROUNDS[1], int(budget / (sum(once.values()) * calls))))
        samples: dict[str, list[float]] = {name: [] for name in ways}
        order = list(ways)
        with _no_garbage():
            for turn in range(rounds):
                for name in order[turn % len(order) :] + order[: turn % len(order)]:
                    samples[name].append(self.clock.time(ways[name], calls))
                    self._put_back()
                tell(what, turn + 1, rounds)
        self.taken += [
            Series(name, what, tuple(times), profiled_kernels=launched[name], calls=calls)
            for name, times in samples.items()
        ]

    def _put_back(self) -> None:
        if self.mutates:
            self.held.reset()

    def result(self, capture: Capture, device: str, more: list[str]) -> Benchmark:
        """The record of it, beside the ledger's figures."""
        notes = [*self.notes, *more]
        if draws(capture):
            notes = [n for n in notes if "differs from eager" not in n]
            notes.append(
                "the function draws random numbers, and compiled code draws others than eager: "
                "results were not compared"
            )
        if self.mutates:
            notes.append(
                "the function changes its inputs or its state in place: values drift from call to call within "
                "a sample, and are put back after it"
            )
        if self.recompiles:
            notes.append(
                f"Dynamo compiled {self.recompiles} more graph(s) while it was measured, as the function met other "
                "conditions than in the first call: times are not those of one code, and no bytes stand beside them"
            )
        kind = device.partition(":")[0]
        threads = torch.get_num_threads()
        where = f"{device}, {threads} thread{'' if threads == 1 else 's'}" if kind == "cpu" else device
        return Benchmark(
            series=tuple(s if self.recompiles else _beside_the_ledger(s, capture) for s in self.taken),
            device=where,
            clock=self.clock.name,
            warm_up=WARM_UP,
            compile_seconds=tuple(
                (t.stage, t.seconds) for t in capture.timings if not t.stage.endswith(OURS)
            ),
            notes=tuple(notes),
        )


def _after_gradients(result: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]] | None:
    """Return what makes of a call one that takes the gradients of its result; None where there are none."""
    gradients = ResultGradients.of(result)
    return None if gradients is None else gradients.after


def _values(result: Any, gradients: ResultGradients | None) -> list[torch.Tensor]:
    """Return the results of a call, and its gradients, as tensors that nothing changes later."""
    from .._torch.session import result_tensors

    values = [t.detach().clone() for t in result_tensors(result)]
    if gradients is not None:
        gradients.observe(result)
        values += [g.detach().clone() for g in gradients.take(result) if g is not None]
    return values


def _beside_the_ledger(series: Series, capture: Capture) -> Series:
    if series.name == EAGER:
        phases = (
            ("forward", "inference") if series.phases == FORWARD else ("forward", "inference", "backward")
        )
        counted = [c.eager for c in capture.compilations]
        if None in counted or len(capture.breaks):
            return series  # what runs between graphs is not counted
        ops = [op for eager_ops in counted for op in eager_ops or () if op.phase in phases]
        unknown = any(op.nbytes is None for op in ops)
        nbytes = None if unknown else sum(op.nbytes or 0 for op in ops)
        return dataclasses.replace(series, nbytes=nbytes, launches=sum(op.count for op in ops))
    step = ABLATIONS[-1] if series.name == COMPILED else series.name
    counts = ledger(at_step(capture, step) if capture.ablations else capture)
    rows = [counts.total] if series.phases == BOTH else [counts.forward, counts.inference]
    rows = [r for r in rows if r.exists]
    launched, moved = summed(r.launches for r in rows), summed(r.bytes_after for r in rows)
    # A series holds a number or none: what depends on the way that a call takes is in the ledger.
    return dataclasses.replace(
        series,
        launches=int(launched) if rows and isinstance(launched, Figure) else None,
        nbytes=int(moved) if rows and isinstance(moved, Figure) else None,
    )


def _differences(name: str, values: list[torch.Tensor], wanted: list[torch.Tensor]) -> list[str]:
    worst = 0.0
    if len(values) != len(wanted):
        return [f"{name} differs from eager: it returns {len(values)} tensors, eager {len(wanted)}"]
    for actual, want in zip(values, wanted, strict=True):
        if actual.shape != want.shape or actual.dtype != want.dtype:
            return [f"{name} differs from eager: {_kind(actual)} where eager has {_kind(want)}"]
        rtol, atol = TOLERANCES.get(want.dtype, (1.3e-5, 1e-5))
        if not torch.allclose(actual, want, rtol=rtol, atol=atol, equal_nan=True):
            wide = torch.complex128 if want.is_complex() else torch.float64
            gap = (actual.cpu().to(wide) - want.cpu().to(wide)).abs().nan_to_num(math.inf)
            worst = max(worst, float(gap.max()))
    return [f"{name} differs from eager by up to {worst:.2e}"] if worst else []


def _kind(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """The garbage collector runs before, not in the middle of a sample."""
    gc.collect()
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _needs_compiler(kind: str) -> None:
    """Raise ``BuildError`` where code for the CPU is to be built and no C++ compiler is there."""
    from .._torch.session import missing_compiler

    if kind != "cpu" or not (reason := missing_compiler()):
        return
    from . import doctor

    advice = next((c.advice for c in doctor.checks() if c.name == "C++ compiler"), "")
    raise BuildError(
        f"benchmark builds C++ code for the CPU, and there is no compiler: {reason}. "
        f"{advice or 'Install g++ or clang++, or set CXX'}. capture and ablate need none without build=True"
    )


def _busy(kind: str) -> str:
    """Return a note on a CPU that other processes use too; ``""`` for an idle one."""
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0] if kind == "cpu" and hasattr(os, "getloadavg") else 0.0
    if load <= cores:
        return ""
    return (
        f"the machine was busy with other work (load {load:.1f} on {cores} cores): threads of parallel code wait for "
        "a core, and each launch of such code may take far longer than on a free machine"
    )


def _speed(device: str, args: Any, kwargs: Any) -> tuple[DeviceSpeed | None, str]:
    """Return the device's measured speed in the dtype of the inputs; None and the reason where there is none."""
    from .._torch.ground.values import tensors
    from .speed import measure_speed

    dtypes = [t.dtype for t in tensors((args, kwargs)) if t.is_floating_point()]
    dtype = str(dtypes[0]).removeprefix("torch.") if dtypes else "float32"
    try:
        return measure_speed(device, dtype), ""
    except (UsageError, RuntimeError) as error:  # a device without a measure, a type without a matrix product
        return None, f"the speed of {device} was not measured: {str(error).splitlines()[0]}"
