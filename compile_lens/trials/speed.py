"""Clocks of devices, and how fast this machine copies and multiplies: the roof under which its kernels run."""

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
COPIED = {"cpu": 64 * MEBIBYTE, "cuda": 1024 * MEBIBYTE, "mps": 256 * MEBIBYTE}
"""Bytes of the tensor that is copied: far more than a cache holds."""

SIDES = {"cpu": 768, "cuda": 8192, "mps": 4096}
"""Rows and columns of the matrices that are multiplied."""


def measure_speed(
    device: str | torch.device = "cpu", dtype: str = "float32", seconds: float = 0.2
) -> DeviceSpeed:
    """Measure the speed of ``device`` now: bandwidth of a large copy, and rate of a large matrix product.

    Each is repeated for about ``seconds`` (and at least three times), after a warm-up, and the fastest counts:
    the figures are a roof, and what disturbs a machine only ever slows it down. The copy reads and writes
    64 MiB on a CPU, 1 GiB on CUDA and 256 MiB on MPS; twice that much memory is used meanwhile. No seed of
    the program's is touched. The rate of all other arithmetic is that of a product in ``float32``, which runs
    on the same units; where TF32 is allowed it does not, and that rate is not known.

    Args:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``.
        dtype: the type of the matrices, such as ``"float32"`` or ``"bfloat16"``.

    Raises:
        UsageError: there is no such device in the machine, or no such floating-point type.
    """
    place = _device(device)
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype) or not kind.is_floating_point:
        raise UsageError(f"{dtype!r} is no floating-point type; give one such as 'float32' or 'bfloat16'")
    size, side = COPIED[place.type], SIDES[place.type]
    with torch.no_grad():
        copy = _copies(size, place, seconds)
        multiply = _products(side, kind, place, seconds)
        # A product in float32 runs on the units that do all other arithmetic, unless TF32 is allowed.
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
    here = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if place is None or not here.get(place.type, False):
        raise UsageError(
            f"device {device!r} cannot be measured here; what can be measured is cpu, cuda (cuda:1 is the second one) "
            f"and mps, of which this machine has {_names(here)}"
        )
    if place.type == "cuda" and place.index is not None and place.index >= torch.cuda.device_count():
        raise UsageError(f"there is no {place}; there are {torch.cuda.device_count()} CUDA devices")
    return place


def _names(here: dict[str, bool]) -> str:
    return ", ".join(name for name, there in here.items() if there)


def _name(place: torch.device) -> str:
    return str(torch.cuda.get_device_name(place)) if place.type == "cuda" else place.type


def _fastest(run: Callable[[], object], place: torch.device, seconds: float) -> float:
    """The least time of one run, in seconds of the device's own clock where it has one."""
    run()  # the first one pays for pages, plans and clocks
    _wait(place)
    best, begun, runs = float("inf"), time.perf_counter(), 0
    while runs < 3 or time.perf_counter() - begun < seconds:
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
    """Nothing is known of the kernels of a call."""


@dataclass(frozen=True)
class Clock:
    """``time(call, count)`` is the time of one call in seconds, the mean of ``count`` calls one after another;
    ``kernels(call)`` are those that one call starts on the device, ``None`` where they are not seen."""

    name: str
    time: Callable[[Callable[[], Any], int], float]
    kernels: Callable[[Callable[[], Any]], int | None] = _none


def clock_of(device: str) -> Clock:
    """The clock for a device type (``"cpu"``, ``"cuda"``, ``"mps"``, …)."""
    if device == "cuda":
        return Clock("CUDA events", _by_events(torch.cuda), profiled)
    if device == "mps":
        return Clock("Metal events (torch.mps)", _by_events(torch.mps, torch.mps.event.Event))
    if device == "cpu":
        return Clock("monotonic clock", _by_wall)
    return Clock(f"monotonic clock, {device} synchronised before and after", _by_wall_in_step)


def _by_wall(call: Callable[[], Any], count: int) -> float:
    calls = itertools.repeat(None, count)
    begin = time.perf_counter()
    for _ in calls:
        call()
    return (time.perf_counter() - begin) / count


def _by_wall_in_step(call: Callable[[], Any], count: int) -> float:
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
        device.synchronize()  # nothing of the call before may still run
        start.record()
        for _ in calls:
            call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / count

    return measure


def profiled(call: Callable[[], Any]) -> int | None:
    """The kernels that one call starts on an NVIDIA GPU, by torch's profiler; ``None`` in a machine without one.

    Copies and fills by the driver are no kernels. The call runs twice: once so that nothing is set up in the
    call that counts.
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
