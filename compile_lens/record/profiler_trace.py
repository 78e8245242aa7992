"""Reader of a trace that ``torch.profiler`` exported: runs of compiled graphs, and the operations directly in each.

Torch marks each run (``## Call CompiledFxGraph … ##``). It is inside a ``Torch-Compiled Region`` with the compile id; a
backward, which autograd calls outside it, has the sequence number of its forward. GPU kernels have the number
(``correlation``) of the host call that launched them.
"""

from __future__ import annotations

import gzip
import math
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..errors import RecordError, UsageError
from .benchmark import UNTIMED
from .json_stream import JsonStreamError, elements
from .missing import Missing

_RUN = re.compile(r"## Call CompiledFxGraph (\S+) ##")
_REGION = re.compile(r"Torch-Compiled Region: (\S+)")
_FORWARD = "CompiledFunction"
_BACKWARD = re.compile(r"CompiledFunctionBackward\d*")
_OPERATOR = "cpu_op"
_ON_HOST = (_OPERATOR, "user_annotation")
_LAUNCHING = re.compile(r"(?:(\w+?)_)?(?:runtime|driver)")
"""Categories of driver calls, by device: ``cuda_runtime`` (also ROCm), ``xpu_runtime``, ``mtia_runtime``."""
_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events")


@dataclass
class TracedOperation:
    """An operation directly in a compiled graph: its name, seconds on the host, and the names and seconds of the GPU
    kernels that it launched."""

    name: str
    seconds: float
    device_kernels: list[tuple[str, float]] = field(default_factory=list)
    launches_on_device: bool = False
    """True if it called the driver to launch a kernel, even if the trace lacks that kernel."""


@dataclass
class GraphRun:
    """One run of a compiled graph. ``id`` and ``phase`` are ``""`` if the trace lacks them."""

    id: str
    phase: str
    key: str
    seconds: float
    sequence: int | None = None
    operations: list[TracedOperation] = field(default_factory=list)


Times = dict[str, list[float]]
"""Seconds of each event by name."""


@dataclass(frozen=True)
class ProfilerTrace:
    """The runs of compiled graphs in a trace, in order of time, and the other events.

    ``device`` is torch's name for the device of the kernels (``cuda`` also for ROCm), ``cpu`` if there are none.
    ``kernels`` has the device seconds of all kernels, ``regions`` the host seconds of compiled regions by compile id,
    ``region_kernels`` the device seconds of their launches (None if unknown), ``operators`` the host seconds of
    outermost operators. ``missing`` lists events that were left out or could not be separated.
    """

    source: str
    device: str
    runs: tuple[GraphRun, ...]
    kernels: Times = field(default_factory=dict)
    regions: Times = field(default_factory=dict)
    region_kernels: dict[str, list[float | None]] = field(default_factory=dict)
    operators: Times = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()


def is_profiler_trace(path: Path) -> bool:
    """Return True if a file is a profiler trace by its first event, rather than a record or a log."""
    try:
        if path.is_dir():
            return False
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            head = file.read(4000).removeprefix(b"\xef\xbb\xbf").lstrip()
        if head[:1] not in (b"{", b"[") or head.startswith(b'{"format":"compile_lens'):
            return False
        for event in elements(path, "traceEvents"):
            return isinstance(event, dict) and "ph" in event
    except (OSError, EOFError, zlib.error):
        return path.suffix == ".gz"  # logs are never compressed; reading the file will report the error
    except JsonStreamError:
        pass  # decide by the key below; reading the file will report the error
    return b'"traceEvents"' in head


def read_trace(path: Path) -> ProfilerTrace:
    """Return the trace in a file, which may be compressed (``.gz``).

    Raises:
        UsageError: if there is no such file, or it cannot be read.
        RecordError: if it is no trace of the profiler.
    """
    events_read = _TraceEvents()
    try:
        for raw in elements(path, "traceEvents"):
            events_read.add(raw)
    except FileNotFoundError:
        raise UsageError(
            f"there is no file {str(path)!r}; give what profiler.export_chrome_trace(path) wrote"
        ) from None
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error}") from None
    except JsonStreamError as error:
        raise RecordError(
            f"{str(path)!r} is not a trace of torch.profiler ({error}): give what "
            "profiler.export_chrome_trace(path) wrote"
        ) from None
    except _TooLarge:
        raise RecordError(
            f"{str(path)!r} has more events of the host and of kernels than fit into memory at a time "
            f"({MAX_BYTES >> 20} MiB; {len(events_read.events):,} fit): profile fewer steps "
            "(torch.profiler.schedule)"
        ) from None
    return _trace(path.name, events_read.events, events_read.untimed)


MAX_BYTES = 3 << 28
"""Most bytes of memory for the events of a trace and their texts."""

EVENT_BYTES = 320
"""Bytes of memory for a host event while reading, without its texts; a kernel and a run take twice as much."""


class _TooLarge(Exception):
    pass


@dataclass(slots=True)
class _Event:
    """The fields of an event that are used, with the profiler's types."""

    category: str
    name: str
    start: float
    duration: float
    thread: tuple[Any, Any]
    """Process and thread."""
    correlation: int | None
    sequence: int | None
    index: int


class _TraceEvents:
    """The events in use, and the number of others without times. Equal texts and threads are stored once."""

    def __init__(self) -> None:
        self.events: list[_Event] = []
        self.untimed = 0
        self._bytes = 0
        self._shared: dict[Any, Any] = {}

    def add(self, raw: Any) -> None:
        """Store an event if its category is in use.

        Raises:
            _TooLarge: if the events exceed ``MAX_BYTES``.
        """
        if not isinstance(raw, dict) or raw.get("ph") not in ("X", "B"):
            return
        category, name = raw.get("cat"), raw.get("name")
        start: Any = raw.get("ts")
        duration: Any = raw.get("dur")
        category = category.lower() if isinstance(category, str) else ""
        known = category in (*_ON_HOST, *_ON_DEVICE) or _LAUNCHING.fullmatch(category)
        if not (known and isinstance(name, str)):
            return
        if raw["ph"] == "B" or not (_is_time(start) and _is_time(duration, least=0)):
            self.untimed += 1
            return
        args = raw.get("args")
        numbers = [args.get(k) if isinstance(args, dict) else None for k in _NUMBERS]
        correlation, sequence, index = (n if type(n) is int and abs(n) < 1 << 63 else None for n in numbers)
        thread = tuple(raw[k] if type(raw.get(k)) in (int, str) else None for k in ("pid", "tid"))
        needs_double = category in _ON_DEVICE or _RUN.fullmatch(name)
        self._bytes += EVENT_BYTES * (2 if needs_double else 1)
        category, name, thread = self._once(category), self._once(name), self._once(thread)
        if self._bytes > MAX_BYTES:
            raise _TooLarge
        self.events.append(_Event(category, name, start, duration, thread, correlation, sequence, index or 0))

    def _once(self, value: Any) -> Any:
        if value not in self._shared:
            parts = (value, *value) if isinstance(value, tuple) else (value,)
            self._bytes += sum(map(sys.getsizeof, parts)) + EVENT_BYTES // 2
            self._shared[value] = value
        return self._shared[value]


_NUMBERS = ("correlation", "Sequence number", "Ev Idx")


def _is_time(value: Any, least: float = -math.inf) -> bool:
    return type(value) in (int, float) and least <= value < _MAX_TIME


_MAX_TIME = 1e18
"""Upper limit of times in microseconds, above the time since 1970, from which some traces count."""


def _trace(source: str, events: list[_Event], untimed: int = 0) -> ProfilerTrace:
    launched: dict[Any, list[tuple[str, float]]] = {}
    threads: dict[tuple[Any, Any], list[_Event]] = {}
    own = ProfilerTrace(source, "", ())
    devices: dict[str, None] = {}
    launching: set[Any] = set()
    shared: set[Any] = set()
    for event in events:
        if event.category in _ON_DEVICE:
            seconds = event.duration / 1e6
            own.kernels.setdefault(event.name, []).append(seconds)
            launched.setdefault(event.correlation, []).append((event.name, seconds))
        else:
            threads.setdefault(event.thread, []).append(event)
            calls = _LAUNCHING.fullmatch(event.category)
            devices |= {calls[1]: None} if calls and calls[1] else {}
            if calls and (number := event.correlation) in launching:
                shared.add(number)
            elif calls:
                launching.add(number)
    for number in (None, *shared):
        launched.pop(number, None)
    runs: list[tuple[float, GraphRun]] = []
    forwards: dict[int, set[str]] = {}
    for events_of_thread in threads.values():
        runs += _runs(events_of_thread, launched, forwards, own)
    runs.sort(key=lambda one: one[0])
    for _, run in runs:
        if run.phase == "backward" and run.sequence is not None:
            ids = forwards.get(run.sequence, set())
            run.id = next(iter(ids)) if len(ids) == 1 else ""  # sequence numbers are counted by thread
    device = next(iter(devices), "cuda") if own.kernels else "cpu"
    processes = {pid for (pid, _), own_events in threads.items() if any(map(_is_of_graph, own_events))}
    missing = _missing(untimed, shared - {None}, len(processes))
    return replace(own, device=device, runs=tuple(run for _, run in runs), missing=missing)


def _is_of_graph(event: _Event) -> bool:
    return bool(_RUN.fullmatch(event.name) or _REGION.fullmatch(event.name))


def _missing(untimed: int, shared: set[Any], processes: int) -> tuple[Missing, ...]:
    counts = (
        (
            untimed,
            UNTIMED,
            f"{untimed:,} have no start and duration that can be read: counts and times are at least these",
        ),
        (
            len(shared),
            "launches on the device",
            "several calls have the same correlation number: what those launched is not known",
        ),
        (
            processes > 1,
            "processes",
            f"compiled graphs of {processes} processes are in the trace: those of the same id are counted as one",
        ),
    )
    return tuple(Missing(what, why) for count, what, why in counts if count)


def _runs(
    events: list[_Event],
    launched: dict[Any, list[tuple[str, float]]],
    forwards: dict[int, set[str]],
    whole: ProfilerTrace,
) -> Iterator[tuple[float, GraphRun]]:
    """Yield the runs on one thread; add compile ids by autograd's sequence number to ``forwards``, and compiled regions
    and outermost operators to ``whole``."""
    # By start, longest first, then by number: three stable sorts need no key tuple for each event.
    events.sort(key=attrgetter("index"))
    events.sort(key=attrgetter("duration"), reverse=True)
    events.sort(key=attrgetter("start"))
    stack: list[_Open] = []
    for event in events:
        while stack and event.start >= stack[-1].end:
            stack.pop()
        outer = stack[-1] if stack else _Open(0)
        run, operation = outer.run, outer.operation
        region = _REGION.fullmatch(event.name)
        if region:
            whole.regions.setdefault(region[1], []).append(event.duration / 1e6)
        elif event.category == _OPERATOR and not outer.in_operator:
            whole.operators.setdefault(event.name, []).append(event.duration / 1e6)
        calls = _LAUNCHING.fullmatch(event.category) is not None
        device_kernels = launched.get(event.correlation, []) if calls else []
        if calls and outer.region is not None:
            unknown = [None] if not device_kernels and "Launch" in event.name else []
            whole.region_kernels.setdefault(outer.region, []).extend(
                [s for _, s in device_kernels] or unknown
            )
        run_match = _RUN.fullmatch(event.name)
        if run_match is not None:
            run = GraphRun(outer.id, outer.phase, run_match[1], event.duration / 1e6, outer.sequence)
            operation = None
            if run.phase == "forward" and run.id and run.sequence is not None:
                forwards.setdefault(run.sequence, set()).add(run.id)
            yield event.start, run
        elif run is not None:
            if operation is None and not (calls and not device_kernels):
                # A launch outside any operator gets the name of its kernel.
                operation = TracedOperation(
                    device_kernels[0][0] if device_kernels else event.name, event.duration / 1e6
                )
                run.operations.append(operation)
            if operation is not None:
                operation.device_kernels += device_kernels
                operation.launches_on_device |= "Launch" in event.name and calls
        stack.append(outer.with_event(event, region[1] if region else None, run, operation))


@dataclass(slots=True)
class _Open:
    """An event that has not ended, with the context of the next one: a run and its operation, an operator, a compiled
    region, and the id, phase and sequence number of a run that begins there."""

    end: float
    run: GraphRun | None = None
    operation: TracedOperation | None = None
    in_operator: bool = False
    region: str | None = None
    id: str = ""
    phase: str = ""
    sequence: int | None = None

    def with_event(
        self, event: _Event, region: str | None, run: GraphRun | None, operation: TracedOperation | None
    ) -> _Open:
        """Return the context of an event that begins inside this one."""
        inner = replace(self, end=event.start + event.duration, run=run, operation=operation)
        inner.in_operator |= event.category == _OPERATOR
        if region is not None:
            inner.region = inner.id = region
            inner.phase, inner.sequence = "inference", None
        elif _BACKWARD.fullmatch(event.name):
            inner.id, inner.phase, inner.sequence = "", "backward", event.sequence
        elif event.name == _FORWARD and inner.phase in ("", "inference"):
            inner.phase, inner.sequence = "forward", event.sequence
        return inner
