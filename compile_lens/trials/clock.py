"""Clocks: how long calls take on a device, with the device's own events where it works beside the program."""

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
