"""Timing of eager, ablated and compiled code of one function, in alternating samples."""

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
WARM_UP_CALLS = 3
"""Untimed calls of each variant before its first sample."""
MIN_SAMPLE_SECONDS = 1e-3
"""Minimum duration of a sample, in seconds; clock resolution and call overhead are small in comparison."""
ROUND_LIMITS = (5, 200)
"""Minimum and maximum number of rounds."""
MAX_CALLS = 100_000
"""Maximum number of calls in a sample."""
NOT_COMPILE_STAGES = ("run", "eager count")
"""Ends of the names of timed stages that are not part of compilation."""


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

    Each variant is built, checked against eager's results and warmed up. Each round then takes one sample of every
    variant, so that a disturbance of the machine affects all. If an output requires grad, the forward alone and the
    forward with gradients are timed, each call with its own autograd graph. A sample is one or more calls (the same
    number for all, at least a millisecond), timed by device events on CUDA and MPS and by a monotonic clock on the CPU.

    The function runs many times, on copies of its tensors and of its module. Other tensors that it reaches (in closures
    and globals, gradients) and random states are restored. Other side effects (prints, lists that grow) happen with
    every call.

    Args:
        fn, args, kwargs, backward, dynamic, mode, options, fullgraph: as in ``capture``.
        ablations: also build and time the steps of ``ablate``, which takes longer: one kernel per loop.
        seconds: approximate measuring time, without building, which takes longer.
        by: ``"kernel"`` builds the code again with a clock around each launch (CPU only); ``capture.profile`` then has
            the time of each kernel, with its lines and modules.
        show_progress: True for a progress bar on stderr; by default in a terminal or a notebook.

    Returns:
        The capture (as ``capture`` with ``build=True``) with ``capture.benchmark`` and ``capture.ablations``.

    Raises:
        UsageError: an argument is invalid, or ``by="kernel"`` is given for a device other than the CPU.
        BuildError: the code is for the CPU and there is no C++ compiler.
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
    saved_state = SavedState(run.fn, run.args, run.kwargs)
    measuring.saved_state = saved_state
    busy = _load_note(kind)
    names = ABLATIONS if ablations else ()
    with contextlib.ExitStack() as stack:
        stack.callback(saved_state.reset)
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
    """Callback of the session that times the variants while the compiled code exists, and stores the samples."""

    def __init__(
        self, args: Any, kwargs: Any, clock: Clock, seconds: float, backward: bool, quiet: bool
    ) -> None:
        self.args, self.kwargs, self.clock = args, kwargs, clock
        self.seconds, self.backward, self.quiet = seconds, backward, quiet
        self.saved_state = SavedState()
        self.built: Callable[[], None] = lambda: None
        self.series: list[Series] = []
        self.notes: list[str] = []
        self.mutates = False
        self.recompiles = 0

    def __call__(self, outcome: Outcome, compiled: Any, eager: Any, switch: Switch) -> None:
        outcome.result = None
        self.built()
        self.saved_state.reset()
        variants: dict[str, Callable[[], Any]] = {EAGER: lambda: eager(*self.args, **self.kwargs)}
        for step in outcome.steps:
            if step.error is None:
                variants[step.name] = self._call_in_step(compiled, switch, step.name)
        variants[COMPILED] = self._call_in_step(compiled, switch, ABLATIONS[-1])
        compiles = len(outcome.recorder.drafts)
        gradients = self.check(variants)
        ran = [outcome.recorder, *(s.recorder for s in outcome.steps if s.name in variants)]
        for recorder in ran:
            for phase in ("inference", "forward", *(["backward"] if gradients is not None else [])):
                recorder.stamp(phase, "ran")
        measurements = {FORWARD: variants}
        if gradients is not None:
            measurements[BOTH] = {name: gradients.after(call) for name, call in variants.items()}
        with bar("measuring", quiet=self.quiet) as tell:
            for what, calls in measurements.items():
                self._take(what, calls, self.seconds / len(measurements), tell)
        self.recompiles = len(outcome.recorder.drafts) - compiles

    def _call_in_step(self, compiled: Any, switch: Switch, step: str) -> Callable[[], Any]:
        def call() -> Any:
            switch.step = step
            return compiled(*self.args, **self.kwargs)

        return call

    # Results: all timed variants must compute the same.
    def check(self, variants: dict[str, Callable[[], Any]]) -> ResultGradients | None:
        """Compare each variant with eager and drop steps that fail. Return the gradients to take; None if there are
        none."""
        from .._torch.isolation import random_state

        with random_state():
            result = variants[EAGER]()
        gradients = ResultGradients.of(result) if self.backward else None
        wanted = _values(result, gradients)
        self.mutates = self.saved_state.changed()
        self.saved_state.reset()
        for name, call in list(variants.items())[1:]:
            try:
                with random_state():
                    self.notes += _differences(name, _values(call(), gradients), wanted)
            except Exception as error:  # any error: the step is dropped, with a note
                if name == COMPILED:
                    raise
                del variants[name]
                self.notes.append(f"{name} could not be run: {type(error).__name__}: {str(error)[:200]}")
            self.saved_state.reset()
        return gradients

    # Times.
    def _take(
        self, what: str, variants: dict[str, Callable[[], Any]], budget: float, tell: Callable[..., None]
    ) -> None:
        launched = {name: self.clock.kernels(call) for name, call in variants.items()}
        once = {}
        for name, call in variants.items():
            self.clock.time(call, WARM_UP_CALLS)
            once[name] = self.clock.time(call, 1)
            if once[name] < MIN_SAMPLE_SECONDS:  # too short to time with one call
                once[name] = self.clock.time(
                    call, min(MAX_CALLS, math.ceil(MIN_SAMPLE_SECONDS / max(once[name], 1e-7)))
                )
            self._restore()
        calls = min(MAX_CALLS, max(1, math.ceil(MIN_SAMPLE_SECONDS / max(min(once.values()), 1e-8))))
        rounds = max(ROUND_LIMITS[0], min(ROUND_LIMITS[1], int(budget / (sum(once.values()) * calls))))
        samples: dict[str, list[float]] = {name: [] for name in variants}
        order = list(variants)
        with _no_garbage_collection():
            for turn in range(rounds):
                for name in order[turn % len(order) :] + order[: turn % len(order)]:
                    samples[name].append(self.clock.time(variants[name], calls))
                    self._restore()
                tell(what, turn + 1, rounds)
        self.series += [
            Series(name, what, tuple(times), profiled_kernels=launched[name], calls=calls)
            for name, times in samples.items()
        ]

    def _restore(self) -> None:
        if self.mutates:
            self.saved_state.reset()

    def result(self, capture: Capture, device: str, more: list[str]) -> Benchmark:
        """Return the record of the measurement, with the ledger's figures for each series."""
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
                "conditions than in the first call: times are of more than one code, and no bytes are given with them"
            )
        kind = device.partition(":")[0]
        threads = torch.get_num_threads()
        where = f"{device}, {threads} thread{'' if threads == 1 else 's'}" if kind == "cpu" else device
        return Benchmark(
            series=tuple(s if self.recompiles else _beside_the_ledger(s, capture) for s in self.series),
            device=where,
            clock=self.clock.name,
            warm_up=WARM_UP_CALLS,
            compile_seconds=tuple(
                (t.stage, t.seconds) for t in capture.timings if not t.stage.endswith(NOT_COMPILE_STAGES)
            ),
            notes=tuple(notes),
        )


def _after_gradients(result: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]] | None:
    """Return a wrapper that adds the gradients of the result to a call; None if there are no gradients."""
    gradients = ResultGradients.of(result)
    return None if gradients is None else gradients.after


def _values(result: Any, gradients: ResultGradients | None) -> list[torch.Tensor]:
    """Return copies of the tensors in a call's results and of its gradients."""
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
            return series  # operators between graphs are not counted
        ops = [op for eager_ops in counted for op in eager_ops or () if op.phase in phases]
        unknown = any(op.nbytes is None for op in ops)
        nbytes = None if unknown else sum(op.nbytes or 0 for op in ops)
        return dataclasses.replace(series, nbytes=nbytes, launches=sum(op.count for op in ops))
    step = ABLATIONS[-1] if series.name == COMPILED else series.name
    counts = ledger(at_step(capture, step) if capture.ablations else capture)
    rows = [counts.total] if series.phases == BOTH else [counts.forward, counts.inference]
    rows = [r for r in rows if r.exists]
    launched, moved = summed(r.launches for r in rows), summed(r.bytes_after for r in rows)
    # A series has a number or None; counts that depend on the branch taken are in the ledger only.
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
def _no_garbage_collection() -> Iterator[None]:
    """Collect garbage now and turn the collector off for the duration."""
    gc.collect()
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _needs_compiler(kind: str) -> None:
    """Raise ``BuildError`` if code for the CPU must be built and there is no C++ compiler."""
    from .._torch.session import missing_compiler

    if kind != "cpu" or not (reason := missing_compiler()):
        return
    from . import doctor

    advice = next((c.advice for c in doctor.checks() if c.name == "C++ compiler"), "")
    raise BuildError(
        f"benchmark builds C++ code for the CPU, and there is no compiler: {reason}. "
        f"{advice or 'Install g++ or clang++, or set CXX'}. capture and ablate need none without build=True"
    )


def _load_note(kind: str) -> str:
    """Return a note if the load average exceeds the number of CPU cores; else ``""``."""
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0] if kind == "cpu" and hasattr(os, "getloadavg") else 0.0
    if load <= cores:
        return ""
    return (
        f"the machine was busy with other work (load {load:.1f} on {cores} cores): threads of parallel code wait for "
        "a core, and each launch of such code may take far longer than on a free machine"
    )


def _speed(device: str, args: Any, kwargs: Any) -> tuple[DeviceSpeed | None, str]:
    """Return the device's measured speed in the dtype of the inputs and ``""``, or None and why it is unknown."""
    from .._torch.ground.values import tensors
    from .speed import measure_speed

    dtypes = [t.dtype for t in tensors((args, kwargs)) if t.is_floating_point()]
    dtype = str(dtypes[0]).removeprefix("torch.") if dtypes else "float32"
    try:
        return measure_speed(device, dtype), ""
    except (UsageError, RuntimeError) as error:  # no measurement for the device, or no matmul in this dtype
        return None, f"the speed of {device} was not measured: {str(error).splitlines()[0]}"
