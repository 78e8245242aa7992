"""What ``benchmark`` measured: times, in one interleaved run, and the device that they were measured on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """Times of one way to run the function, in seconds, in the order in which they were taken.

    ``name`` is ``eager``, a step of ``ABLATIONS`` or ``compiled``. ``what`` is ``forward`` or ``forward+backward``.
    ``nbytes`` is the modelled traffic of one call; ``launches`` the ledger's; ``profiled`` those that the
    profiler counted on a GPU, ``None`` elsewhere.
    """

    name: str
    what: str
    seconds: tuple[float, ...]
    nbytes: int | None = None
    launches: int | None = None
    profiled: int | None = None


@dataclass(frozen=True)
class DeviceSpeed:
    """How fast a device copies and multiplies: ``measured`` here and now, or of a table.

    ``bandwidth`` is bytes per second (read plus written) of a large copy, ``flops`` floating-point operations
    per second of a large matrix product in ``dtype``.
    """

    device: str
    bandwidth: float
    flops: float
    dtype: str
    measured: bool
    source: str = ""


@dataclass(frozen=True)
class Benchmark:
    """Times of a function: eager, ablated and compiled, taken in turns.

    ``clock`` says how time was taken. ``compile_seconds`` is the wall time of each stage of the compile.
    """

    series: tuple[Series, ...]
    device: str
    clock: str
    warm_up: int
    compile_seconds: tuple[tuple[str, float], ...] = ()
    speed: DeviceSpeed | None = None
    notes: tuple[str, ...] = ()
