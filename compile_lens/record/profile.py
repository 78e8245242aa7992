"""Times that torch's profiler measured of compiled code, beside the kernels, lines and modules that they are of."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame
from .missing import Missing

BY_NAME = "by name"
BY_ORDER = "by the order of launches"
"""Values of ``MeasuredKernel.matched_by``."""


@dataclass(frozen=True)
class MeasuredKernel:
    """Times of one kernel of the generated code, in seconds.

    Attributes:
        kernel: its name in the code, unique there.
        matched_by: ``by name``: the trace names it as the code does. ``by the order of launches``: operators of
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
    """

    id: str
    phase: str
    compilation: str
    calls: int
    seconds: float
    kernels: tuple[MeasuredKernel, ...] = ()
    unmatched_events: tuple[MeasuredEvents, ...] = ()
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True)
class Profile:
    """Measurements of torch's profiler, read from a trace that it exported.

    Attributes:
        source: name of the file.
        device: ``cpu``, or ``cuda`` where the trace holds kernels of a GPU.
        graphs: each compiled graph that ran, in the order of its first run.
        missing: what of the record has no times, and why.
    """

    source: str
    device: str
    graphs: tuple[MeasuredGraph, ...] = ()
    missing: tuple[Missing, ...] = ()
