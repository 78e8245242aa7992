"""Measurements of ``benchmark``: times, in one interleaved run, and the device that they were measured on."""

from __future__ import annotations

from dataclasses import dataclass

from .delegates import delegate

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
