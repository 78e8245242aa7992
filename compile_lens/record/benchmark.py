"""Measurements of ``benchmark``: times, in one interleaved run, and the device that they were measured on.

And times that torch's profiler measured of compiled code, with the kernels, lines and modules that they are of.
"""

from __future__ import annotations

from dataclasses import dataclass

from .delegates import delegate
from .graph import Frame
from .missing import Missing

FORWARD, BOTH = "forward", "forward+backward"
"""Phases that a series times: one call; one call and the gradients of its results."""


@dataclass(frozen=True)
class Series:
    """Times of one way to run the function, in seconds per call, in the order in which they were taken.

    Attributes:
        name: ``eager``, a step of ``ABLATIONS`` or ``compiled`` (the last step: what ``torch.compile`` does).
        phases: ``forward`` or ``forward+backward``; where a gradient is needed, ``forward`` keeps what it needs.
        seconds: one figure for each round, the mean of ``calls`` calls. Series of one ``phases`` took turns: the
            n-th figures of all of them are of the same round.
        nbytes: modelled traffic of one call, in bytes: of eager's operators, else of the groups.
        launches: the ledger's; of ``eager`` the operators that it dispatches.
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
    """Speed at which a device copies and multiplies: ``measured`` here and now, or from a table.

    ``bandwidth`` is bytes per second (read plus written) of a large copy, ``flops`` floating-point operations
    per second of a large matrix product in ``dtype``. ``vector`` is the rate of all other arithmetic, by the type
    in which it is done; empty where that is not known.
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
        device: what it ran on, with the number of threads on a CPU.
        clock: how time was taken.
        warm_up: calls of each series before the first that counts, at least.
        compile_seconds: wall time of each stage of the compile, without caches, while it was recorded. The
            stages of ablated steps are not among them.
        speed: what the device can do, where it was measured.
        notes: what a reader must know to read the times right.
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
        matched_by: ``by name``: the trace names it as the code does. ``by the line of the launch``: it was timed
            there. ``by the order of launches``: operators of
            libraries bear the name of what they do, which several launches may share; they ran in the order of the
            code.
        name: what the trace calls it.
        launches: how often the trace holds it.
        seconds: of all of them together: on the device, where that is a GPU.
        min_seconds, median_seconds, max_seconds: of one launch.
        host_seconds: seconds that the calls took on the host, where the device is a GPU.
        lines: the lines of the program that it came from.
        nodes: names of the ATen nodes that it computes.
        modules: paths of the modules that they are of.
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
    """Events of one name in a compiled graph that are not joined to a kernel: how many, and their seconds together."""

    name: str
    count: int
    seconds: float


@dataclass(frozen=True)
class MeasuredRegion:
    """Calls of what one compile made, with the graph and the code around it; the backward is outside.

    Attributes:
        id: compile id in the trace.
        calls: how often it ran.
        seconds: wall time of them on the host, together.
        launches: how much it launched on the device.
        device_seconds: of that, together; ``None`` where the trace does not say it of each launch.
    """

    id: str
    calls: int
    seconds: float
    launches: int = 0
    device_seconds: float | None = 0.0


@dataclass(frozen=True)
class MeasuredGraph:
    """The runs of one compiled graph that a trace holds.

    Attributes:
        id: compile id in the trace; ``""`` where the trace does not say it.
        phase: ``forward``, ``backward`` or ``inference``; ``""`` where the trace does not say it.
        compilation: compile id in the record; ``""`` where none is joined.
        calls: how often it ran.
        seconds: wall time of them on the host, together.
        kernels: in the order of the code.
        unmatched_events: what else ran in it, by name.
        missing: what could not be joined, and why.
        launches: how often something was launched on the device in it, all calls together.
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


@dataclass(frozen=True)
class Profile:
    """Times of kernels, measured by torch's profiler and read from a trace that it exported, or by a clock at each
    launch.

    Attributes:
        source: name of the file; of a clock, how it measures.
        device: torch's name of the device whose kernels the trace holds (``cuda``), ``cpu`` where it holds none.
        graphs: each compiled graph that ran, in the order of its first run.
        missing: what of the record has no times, and why.
        regions: compiled regions, in the order of the first call.
        kernels: all that ran on the device, by name, what took most first.
        operators: operators that no other operator called, with their seconds on the host, what took most first; of a
            clock, those of eager PyTorch.
        calls: of a clock, how many calls of the function were timed; 0 for a trace.
        seconds: wall time of these calls, together.
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
