"""Roofline: whether memory or arithmetic bounds a kernel, and its least possible time.

A kernel that moves B bytes and does F operations takes at least B/bandwidth and at least F/rate; the larger of
the two bounds it. Comparing its arithmetic intensity F/B with the ridge, rate/bandwidth, tells which. Source:
Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009. B and F are modelled; bandwidth and rate are
measured on the device or published peaks, and the speed says which. Launch overhead is left out; cached data
moves faster than the roof.

Only matrix products, convolutions and attention run at the rate of products (tensor cores). All other arithmetic
runs at the rate of the vector units, in the type in which generated code computes: 16-bit numbers are widened to
``float32`` first. A special function (transcendental, root, division) takes as long there as ``SPECIAL_COST``
operations, and counts as that many in F. Both kinds of units may work at once: the slower one bounds.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from compile_lens.devices import models
from compile_lens.errors import UsageError
from compile_lens.record.benchmark import DeviceSpeed
from compile_lens.record.capture import Record

from .arithmetic import SPECIAL_COST
from .timing import seconds_text
from .traffic import KernelTraffic, traffic

MEMORY = "memory"
COMPUTE = "compute"


@dataclass(frozen=True)
class Bound:
    """Bound of one kernel.

    Attributes:
        kernel: its traffic.
        bound: ``memory``, ``compute``, or ``""`` if unknown.
        seconds: least time of all its launches, in seconds; ``None`` if unknown.
        rate: operations per second at that time, its position under the roof.
        sentence: the verdict for a reader.
    """

    kernel: KernelTraffic
    bound: str = ""
    seconds: float | None = None
    rate: float | None = None
    sentence: str = ""


@dataclass(frozen=True)
class Run:
    """A measured way to run the whole function, placed by its median time.

    ``bandwidth`` is modelled bytes per measured second; ``intensity`` and ``rate`` are ``None`` if the arithmetic is
    unknown.
    """

    name: str
    phases: str
    seconds: float
    bandwidth: float | None = None
    intensity: float | None = None
    rate: float | None = None


@dataclass(frozen=True)
class Roofline:
    """Result of ``capture.roofline()``. ``speed`` is None without a roof, and ``note`` is the reason."""

    speed: DeviceSpeed | None
    bounds: tuple[Bound, ...] = ()
    runs: tuple[Run, ...] = ()
    note: str = ""

    @property
    def ridge(self) -> float | None:
        """Operations per byte above which arithmetic bounds; ``None`` without a roof."""
        return self.rate / self.speed.bandwidth if self.speed is not None and self.rate is not None else None

    @property
    def rate(self) -> float | None:
        """Operations per second of the flat roof: for products if a kernel has any, else for other arithmetic in the
        type of ``speed``; ``None`` without a roof."""
        if self.speed is None or self.products:
            return None if self.speed is None else self.speed.flops
        return dict(self.speed.vector).get(computed(self.speed.dtype), self.speed.flops)

    @property
    def products(self) -> bool:
        """True if a kernel computes matrix products, convolutions or attention."""
        return any(b.kernel.products for b in self.bounds)

    @property
    def seconds(self) -> float | None:
        """Least time of one call in seconds: the sum over kernels, which run in turn; ``None`` if the time of one is
        unknown, or depends on control flow."""
        known = [b.seconds for b in self.bounds if b.seconds is not None and not b.kernel.steered]
        return sum(known) if known and len(known) == len(self.bounds) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON data."""
        speed = self.speed
        return {
            "device": None if speed is None else speed.device,
            "bandwidth": None if speed is None else speed.bandwidth,
            "flops": None if speed is None else speed.flops,
            "vector_flops": None if speed is None else dict(speed.vector),
            "dtype": None if speed is None else speed.dtype,
            "basis": None if speed is None else "measured" if speed.measured else "published peak",
            "ridge": self.ridge,
            "kernels": [
                {
                    "name": b.kernel.name,
                    "phase": b.kernel.phase,
                    "compilation": b.kernel.compilation,
                    "bytes": b.kernel.nbytes,
                    "flops": b.kernel.flops,
                    "work": b.kernel.work,
                    "intensity": b.kernel.intensity,
                    "bound": b.bound or None,
                    "least_seconds": b.seconds,
                }
                for b in self.bounds
            ],
            "note": self.note,
        }

    def to_svg(self, title: str = "") -> str:
        """Return the roof and the kernels as a self-contained SVG document."""
        from compile_lens.record.delegates import delegate

        svg: str = delegate("Roofline.to_svg")(self, title=title)
        return svg

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_html_(self) -> str:
        from compile_lens.record.delegates import delegate

        html: str = delegate("Roofline._repr_html_")(self)
        return html

    def __str__(self) -> str:
        lines = [roof(self)]
        lines += [f"{b.kernel.phase} {b.kernel.name}: {b.sentence}" for b in self.bounds]
        if self.seconds is not None:
            lines.append(
                f"All of them take at least {seconds_text(self.seconds)} (modelled: launches are not counted, and what "
                "stays in a cache moves faster)."
            )
        return "\n".join(line for line in lines if line)


def roofline(capture: Record, speed: DeviceSpeed | None = None) -> Roofline:
    """Return every kernel of a capture under a roof.

    Args:
        speed: the roof; otherwise the one that ``benchmark`` measured, or the model of the capture's device in
            ``compile_lens.devices.models``. Without any of these there are intensities but no verdicts.

    Raises:
        UsageError: if ``speed`` has another type.
    """
    if speed is not None and not isinstance(speed, DeviceSpeed):
        raise UsageError(
            f"speed={speed!r} is {type(speed).__name__}, not a DeviceSpeed: compile_lens.measure_speed() measures one; "
            "without an argument it is that of the benchmark, or of the target's published peaks"
        )
    moved = traffic(capture)
    note = "; ".join(moved.notes) if not moved.kernels else ""
    if speed is None and capture.benchmark is not None:
        speed = capture.benchmark.speed
    if speed is None:
        dtype = _dtype(moved.kernels)
        if capture.target is not None and capture.target.model.device != "cpu":
            speed, reason = models.speed_of(capture.target.model, dtype)
        else:
            speed, reason = models.speed(capture.environment.device, dtype)
        note = note or reason
    return Roofline(
        speed, tuple(_bound(k, speed) for k in moved.kernels), _runs(capture, moved.kernels), note
    )


def roof(roofline: Roofline) -> str:
    """Return the roof in a sentence, or why there is none."""
    speed = roofline.speed
    if speed is None:
        return f"No roof: {roofline.note}." if roofline.note else "No roof."
    basis = "measured" if speed.measured else "published peaks"
    kinds = {computed(b.kernel.dtype) for b in roofline.bounds if b.kernel.work} or {computed(speed.dtype)}
    other = "other " if roofline.products else ""
    vector = [f"{_rate(rate)} in {other}{kind} arithmetic" for kind, rate in speed.vector if kind in kinds]
    if roofline.products:
        slower = ", ".join(vector) or "other arithmetic is slower"
        rates = f"{_rate(speed.flops)} Gflop/s in {speed.dtype} matrix products ({slower})"
    elif vector:
        rates = ", ".join(
            f"{_rate(rate)} Gflop/s in {kind} arithmetic" for kind, rate in speed.vector if kind in kinds
        )
    else:
        rates = (
            f"{_rate(speed.flops)} Gflop/s in {speed.dtype} at most (arithmetic without products is slower)"
        )
    special = any(b.kernel.special for b in roofline.bounds)
    counts = f" (a special function, such as a sine, counts as {SPECIAL_COST})" if special else ""
    return (
        f"{speed.device} ({basis}): {speed.bandwidth / 1e9:,.4g} GB/s, {rates}; "
        f"the ridge is at {roofline.ridge or 0:.3g} operations for each byte{counts}."
    )


def _rate(rate: float) -> str:
    return f"{rate / 1e9:,.0f}" if rate >= 1e12 else f"{rate / 1e9:,.4g}"


def _dtype(kernels: tuple[KernelTraffic, ...]) -> str:
    """Return the type of most products; without products, that of most other arithmetic, or ``float32``."""
    totals: dict[str, int] = {}
    products = any(kernel.products for kernel in kernels)
    for kernel in kernels:
        if kernel.dtype.startswith(("float", "bfloat")):
            kind = kernel.dtype if products else computed(kernel.dtype)
            count = kernel.products if products else kernel.flops or 0
            totals[kind] = totals.get(kind, 0) + count
    return max(totals, key=lambda d: totals[d]) if totals else "float32"


def _bound(kernel: KernelTraffic, speed: DeviceSpeed | None) -> Bound:
    nbytes, flops = kernel.nbytes, kernel.work
    if nbytes is None or flops is None:
        return Bound(
            kernel, sentence="No verdict: " + "; ".join(kernel.notes or ("its figures are unknown",)) + "."
        )
    if not nbytes and not flops:
        return Bound(kernel, sentence="No verdict: it moves no bytes and computes nothing.")
    intensity = f"{kernel.intensity:.3g} operations for each byte" if nbytes else "no bytes moved"
    if speed is None:
        return Bound(kernel, sentence=f"{intensity} (modelled); no roof to compare it with.")
    moving, computing = nbytes / speed.bandwidth, _computing(kernel, flops, speed)
    seconds = max(moving, computing)
    bound = MEMORY if moving >= computing else COMPUTE
    moves = f"to move {_count(nbytes)}B takes {seconds_text(moving)}"
    computes = (
        f"to compute {_count(flops)}flop{_special_text(kernel)} {seconds_text(computing)}"
        if flops
        else "there is nothing to compute"
    )
    verdict = "Memory-bound" if bound == MEMORY else "Compute-bound"
    sentence = f"{verdict}: {moves}, {computes} ({intensity}, modelled).{_caution(kernel, speed)}"
    return Bound(kernel, bound, seconds, flops / seconds, sentence)


def computed(dtype: str) -> str:
    """Return the type in which generated code computes values of a type: ``float32`` for 16-bit and integer types."""
    return "float64" if dtype == "float64" else "float32"


def _vector(kernel: KernelTraffic, speed: DeviceSpeed) -> float | None:
    return dict(speed.vector).get(computed(kernel.dtype))


def _computing(kernel: KernelTraffic, flops: int, speed: DeviceSpeed) -> float:
    """Return the least seconds of the arithmetic: the longer of products and all other operations."""
    rate = _vector(kernel, speed)
    if rate is None:
        return flops / speed.flops
    return max(kernel.products / speed.flops, (flops - kernel.products) / rate)


def _special_text(kernel: KernelTraffic) -> str:
    if not kernel.special:
        return ""
    return f" ({_count(kernel.special).rstrip()} special, as {SPECIAL_COST} each)"


def _caution(kernel: KernelTraffic, speed: DeviceSpeed) -> str:
    """Return what a reader must know before trusting the arithmetic side of a verdict."""
    if kernel.dtype == "":
        return ""
    caution = ""
    if _vector(kernel, speed) is None and kernel.flops != kernel.products:
        caution = " Arithmetic other than products is slower than this roof."
    if kernel.dtype != speed.dtype and (caution or kernel.products):
        caution += f" It computes in {kernel.dtype}, the roof is that of {speed.dtype}."
    return caution


def _runs(capture: Record, kernels: tuple[KernelTraffic, ...]) -> tuple[Run, ...]:
    if capture.benchmark is None:
        return ()
    runs = []
    for series in capture.benchmark.series:
        if not series.seconds:
            continue
        seconds = statistics.median(series.seconds)
        bandwidth = series.nbytes / seconds if series.nbytes is not None else None
        flops: int | None = None
        if series.name == "compiled":
            part = [k.work for k in kernels if series.phases != "forward" or k.phase != "backward"]
            known = [f for f in part if f is not None]
            flops = sum(known) if known and len(known) == len(part) else None
        intensity = flops / series.nbytes if flops and series.nbytes else None
        runs.append(
            Run(series.name, series.phases, seconds, bandwidth, intensity, flops / seconds if flops else None)
        )
    return tuple(runs)


def _count(number: int) -> str:
    for size, name in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number} "
