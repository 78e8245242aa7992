"""Measurements of ``benchmark``: times from one interleaved run, and the device of the measurement.

Also times of compiled code from torch's profiler, with their kernels, lines and modules.
"""

from __future__ import annotations

from dataclasses import dataclass

from .delegates import delegate
from .graph import Frame
from .missing import Missing

FORWARD, BOTH = "forward", "forward+backward"
"""Values of ``Series.phases``: one call; one call and the gradients of its results."""


@dataclass(frozen=True)
class Series:
    """Times of one way to run the function, in seconds per call, in measurement order.

    Attributes:
        name: ``eager``, a step of ``ABLATIONS`` or ``compiled`` (the last step: plain ``torch.compile``).
        phases: ``forward`` or ``forward+backward``; if gradients are needed, ``forward`` also saves their inputs.
        seconds: one figure for each round, the mean of ``calls`` calls. Series with the same ``phases`` alternate: the
            n-th figures of all of them belong to the same round.
        nbytes: modelled traffic of one call, in bytes: of eager's operators, else of the groups.
        launches: the ledger's launches; for ``eager`` the operators that it dispatches.
        profiled_kernels: kernels that the profiler saw in one call on an NVIDIA GPU; ``None`` elsewhere.
    """

    name: str
    phases: str
    seconds: tuple[float, ...]
    nbytes: int | None = None
    launches: int | None = None
    profiled_kernels: int | None = None
    calls: int = 1


@dataclass(frozen=True)
class DeviceSpeed:
    """Speed at which a device copies and multiplies: ``measured`` on the spot, or from a table.

    ``bandwidth`` is bytes per second (read plus written) of a large copy, ``flops`` floating-point operations
    per second of a large matrix product in ``dtype``. ``vector`` is the rate of all other arithmetic by its type;
    empty if not known.
    """

    device: str
    bandwidth: float
    flops: float
    dtype: str
    measured: bool
    source: str = ""
    vector: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """Times of a function: eager, ablated and compiled, taken in turns.

    Attributes:
        device: the device, with the number of threads on a CPU.
        clock: how time was measured.
        warm_up: calls of each series before the first that counts, at least.
        compile_seconds: wall time of each stage of the compile, without caches, while it was recorded. The
            stages of ablated steps are not included.
        speed: the device's speed, if it was measured.
        notes: caveats for reading the times.
    """

    series: tuple[Series, ...]
    device: str
    clock: str
    warm_up: int
    compile_seconds: tuple[tuple[str, float], ...] = ()
    speed: DeviceSpeed | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        words: tuple[str, ...] = delegate("Benchmark.__str__")(self)
        return "\n".join(words)


BY_NAME = "by name"
BY_ORDER = "by the order of launches"
BY_LINE = "by the line of the launch"
"""Values of ``MeasuredKernel.matched_by``."""


@dataclass(frozen=True)
class MeasuredKernel:
    """Times of one kernel of the generated code, in seconds.

    Attributes:
        kernel: its name in the code, unique there.
        matched_by: ``by name``: the trace has the code's name. ``by the line of the launch``: it was timed there.
            ``by the order of launches``: several launches may share the name of a library operator, so they were
            matched by code order.
        name: its name in the trace.
        launches: number of launches in the trace.
        seconds: total time of these launches, on the device if that is a GPU.
        min_seconds, median_seconds, max_seconds: times of one launch.
        host_seconds: time of the calls on the host, if the device is a GPU.
        lines: the program's lines that it came from.
        nodes: names of the ATen nodes that it computes.
        modules: paths of the modules of these nodes.
    """

    kernel: str
    matched_by: str
    name: str
    launches: int
    seconds: float
    min_seconds: float
    median_seconds: float
    max_seconds: float
    host_seconds: float | None = None
    lines: tuple[Frame, ...] = ()
    nodes: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasuredEvents:
    """Events of one name in a compiled graph that are not joined to a kernel: their number and total seconds."""

    name: str
    count: int
    seconds: float


@dataclass(frozen=True)
class MeasuredRegion:
    """Calls of one compile's code, the graph and the code around it, without the backward.

    Attributes:
        id: compile id in the trace.
        calls: number of calls.
        seconds: total wall time of these calls on the host.
        launches: number of launches on the device.
        device_seconds: total time of these launches; ``None`` if the trace lacks it for some launches.
    """

    id: str
    calls: int
    seconds: float
    launches: int = 0
    device_seconds: float | None = 0.0


@dataclass(frozen=True)
class MeasuredGraph:
    """The runs of one compiled graph in a trace.

    Attributes:
        id: compile id in the trace; ``""`` if the trace lacks it.
        phase: ``forward``, ``backward`` or ``inference``; ``""`` if the trace lacks it.
        compilation: compile id in the record; ``""`` if none is joined.
        calls: number of runs.
        seconds: total wall time of these runs on the host.
        kernels: kernels in code order.
        unmatched_events: other events in it, by name.
        missing: kernels that could not be joined, and why.
        launches: number of launches on the device over all runs.
    """

    id: str
    phase: str
    compilation: str
    calls: int
    seconds: float
    kernels: tuple[MeasuredKernel, ...] = ()
    unmatched_events: tuple[MeasuredEvents, ...] = ()
    missing: tuple[Missing, ...] = ()
    launches: int = 0


UNTIMED = "events"
"""Stage of what ``Profile.missing`` says of events of a trace without readable times."""


@dataclass(frozen=True)
class Profile:
    """Times of kernels, measured by torch's profiler and read from a trace that it exported, or by a clock at each
    launch.

    Attributes:
        source: name of the file; for a clock, how it measures.
        device: torch's name of the device whose kernels are in the trace (``cuda``), ``cpu`` if there are none.
        graphs: each compiled graph that ran, in order of its first run.
        missing: parts of the record without times, and why.
        regions: compiled regions, in order of the first call.
        kernels: all kernels that ran on the device, by name, longest first.
        operators: outermost operators with their seconds on the host, longest first; for a clock, those of eager
            PyTorch.
        calls: for a clock, the number of timed calls of the function; 0 for a trace.
        seconds: total wall time of these calls.
    """

    source: str
    device: str
    graphs: tuple[MeasuredGraph, ...] = ()
    missing: tuple[Missing, ...] = ()
    regions: tuple[MeasuredRegion, ...] = ()
    kernels: tuple[MeasuredEvents, ...] = ()
    operators: tuple[MeasuredEvents, ...] = ()
    calls: int = 0
    seconds: float = 0.0
