"""Device clocks, and this machine's copy bandwidth and matmul rate: the roofline of its kernels."""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import UsageError
from ..record.benchmark import DeviceSpeed

MEBIBYTE = 1 << 20
COPY_BYTES = {"cpu": 64 * MEBIBYTE, "cuda": 1024 * MEBIBYTE, "mps": 256 * MEBIBYTE}
"""Size of the copied tensor in bytes, by kind of device; far larger than a cache."""

MATRIX_SIDES = {"cpu": 768, "cuda": 8192, "mps": 4096}
"""Rows and columns of the multiplied matrices, by kind of device."""


def measure_speed(
    device: str | torch.device = "cpu", dtype: str = "float32", seconds: float = 0.2
) -> DeviceSpeed:
    """Measure the bandwidth of a large copy and the rate of a large matrix product on ``device``.

    Each is repeated for about ``seconds`` (at least three times) after a warm-up, and the fastest counts: the figures
    are upper bounds, and disturbances only slow a machine down. The copy reads and writes 64 MiB on a CPU, 1 GiB on
    CUDA and 256 MiB on MPS, and uses twice that memory. Random state is not changed. The rate for other arithmetic is
    that of a ``float32`` product, which uses the same units, except if TF32 is allowed; then that rate is unknown.

    Args:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``.
        dtype: dtype of the matrices, such as ``"float32"`` or ``"bfloat16"``.

    Raises:
        UsageError: the machine has no such device, or there is no such floating-point dtype.
    """
    place = _device(device)
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype) or not kind.is_floating_point:
        raise UsageError(f"{dtype!r} is not a floating-point type; give one such as 'float32' or 'bfloat16'")
    size, side = COPY_BYTES[place.type], MATRIX_SIDES[place.type]
    with torch.no_grad():
        copy = _copies(size, place, seconds)
        multiply = _products(side, kind, place, seconds)
        # A float32 product uses the same units as other arithmetic, unless TF32 is allowed.
        other = multiply if dtype == "float32" else _products(side, torch.float32, place, seconds)
    about = (
        f"the fastest of several copies of {size // MEBIBYTE} MiB and products of {side} × {side}, {dtype}"
    )
    rates = () if _tf32(place) else (("float32", 2 * side**3 / other),)
    return DeviceSpeed(_name(place), 2 * size / copy, 2 * side**3 / multiply, dtype, True, about, rates)


def _tf32(place: torch.device) -> bool:
    """Return True if float32 products run on tensor cores."""
    return place.type == "cuda" and str(torch.backends.cuda.matmul.fp32_precision) == "tf32"


def _copies(size: int, place: torch.device, seconds: float) -> float:
    source = torch.ones(size // 4, dtype=torch.float32, device=place)
    target = torch.zeros_like(source)
    return _fastest(lambda: target.copy_(source), place, seconds)


def _products(side: int, kind: torch.dtype, place: torch.device, seconds: float) -> float:
    left = torch.full((side, side), 0.5, device=place).to(kind)
    right, product = left.clone(), torch.empty_like(left)
    return _fastest(lambda: torch.mm(left, right, out=product), place, seconds)


def _device(device: str | torch.device) -> torch.device:
    try:
        place: torch.device | None = torch.device(device)
    except (RuntimeError, TypeError):  # torch's own message lists devices that have no clock here
        place = None
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if place is None or not available.get(place.type, False):
        raise UsageError(
            f"device {device!r} cannot be measured here; what can be measured is cpu, cuda (cuda:1 is the second one) "
            f"and mps, of which this machine has {_names(available)}"
        )
    if place.type == "cuda" and place.index is not None and place.index >= torch.cuda.device_count():
        raise UsageError(f"there is no {place}; there are {torch.cuda.device_count()} CUDA devices")
    return place


def _names(available: dict[str, bool]) -> str:
    return ", ".join(name for name, there in available.items() if there)


def _name(place: torch.device) -> str:
    return str(torch.cuda.get_device_name(place)) if place.type == "cuda" else place.type


def _fastest(run: Callable[[], object], place: torch.device, seconds: float) -> float:
    """Return the shortest time of one run in seconds, by the device's clock if it has one."""
    run()  # warm-up: page faults, plans, clock frequencies
    _wait(place)
    best, start, runs = float("inf"), time.perf_counter(), 0
    while runs < 3 or time.perf_counter() - start < seconds:
        best = min(best, _once(run, place))
        runs += 1
    return best


def _once(run: Callable[[], object], place: torch.device) -> float:
    if place.type == "cuda":
        with torch.cuda.device(place):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) / 1e3
    start_time = time.perf_counter()
    run()
    _wait(place)
    return time.perf_counter() - start_time


def _wait(place: torch.device) -> None:
    if place.type == "cuda":
        torch.cuda.synchronize(place)
    elif place.type == "mps":
        torch.mps.synchronize()


def _none(call: Callable[[], Any]) -> None:
    """Return None: the kernels of a call are not counted."""


@dataclass(frozen=True)
class Clock:
    """A clock. ``time(call, count)`` returns the mean time of ``count`` successive calls, in seconds; ``kernels(call)``
    the number of kernels that one call launches, None if unknown."""

    name: str
    time: Callable[[Callable[[], Any], int], float]
    kernels: Callable[[Callable[[], Any]], int | None] = _none


def clock_of(device: str) -> Clock:
    """Return the clock for a kind of device (``"cpu"``, ``"cuda"``, ``"mps"``, …)."""
    if device == "cuda":
        return Clock("CUDA events", _by_events(torch.cuda), profiled)
    if device == "mps":
        return Clock("Metal events (torch.mps)", _by_events(torch.mps, torch.mps.event.Event))
    if device == "cpu":
        return Clock("monotonic clock", _by_wall)
    return Clock(f"monotonic clock, {device} synchronised before and after", _by_synchronized_wall)


def _by_wall(call: Callable[[], Any], count: int) -> float:
    calls = itertools.repeat(None, count)
    begin = time.perf_counter()
    for _ in calls:
        call()
    return (time.perf_counter() - begin) / count


def _by_synchronized_wall(call: Callable[[], Any], count: int) -> float:
    torch.accelerator.synchronize()
    begin = time.perf_counter()
    for _ in itertools.repeat(None, count):
        call()
    torch.accelerator.synchronize()
    return (time.perf_counter() - begin) / count


def _by_events(device: Any, event: Any = None) -> Callable[[Callable[[], Any], int], float]:
    make = event or device.Event

    def measure(call: Callable[[], Any], count: int) -> float:
        calls = itertools.repeat(None, count)
        start, end = make(enable_timing=True), make(enable_timing=True)
        device.synchronize()  # wait for earlier work
        start.record()
        for _ in calls:
            call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / count

    return measure


def profiled(call: Callable[[], Any]) -> int | None:
    """Return the number of kernels that one call launches on an NVIDIA GPU, by torch's profiler; None without a GPU.

    The driver's copies and fills are not counted. The call runs twice, the first time as a warm-up.
    """
    if not torch.cuda.is_available():
        return None
    call()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(file))
        events = json.loads(file.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    return sum(1 for event in events if event.get("cat") == "kernel")
