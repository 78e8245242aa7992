"""A trace that ``torch.profiler`` exported, read for the runs of compiled graphs and what ran directly in each.

Torch marks each run (``## Call CompiledFxGraph … ##``). It stands in a ``Torch-Compiled Region`` with the compile id; a
backward, which autograd calls outside of it, bears the sequence number of the forward that it is of. Kernels of a GPU
bear the number (``correlation``) of the call on the host that launched them.
"""

from __future__ import annotations

import gzip
import math
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import RecordError, UsageError
from .json_stream import JsonStreamError, elements
from .missing import Missing

_RUN = re.compile(r"## Call CompiledFxGraph (\S+) ##")
_REGION = re.compile(r"Torch-Compiled Region: (\S+)")
_FORWARD = "CompiledFunction"
_BACKWARD = re.compile(r"CompiledFunctionBackward\d*")
_OPERATOR = "cpu_op"
_ON_HOST = (_OPERATOR, "user_annotation")
_LAUNCHING = re.compile(r"(?:(\w+?)_)?(?:runtime|driver)")
"""Categories of calls of a driver, by device: ``cuda_runtime`` (of ROCm too), ``xpu_runtime``, ``mtia_runtime``."""
_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events")


@dataclass
class TracedOperation:
    """Something that ran directly in a compiled graph: its name, seconds on the host, and of each thing that it
    launched on a GPU the name and seconds there."""

    name: str
    seconds: float
    device_kernels: list[tuple[str, float]] = field(default_factory=list)
    launches_on_device: bool = False
    """It called the driver to launch something, whether or not the trace holds what ran then."""


@dataclass
class GraphRun:
    """One run of a compiled graph. ``id`` and ``phase`` are ``""`` where the trace does not say them."""

    id: str
    phase: str
    key: str
    seconds: float
    sequence: int | None = None
    operations: list[TracedOperation] = field(default_factory=list)


Times = dict[str, list[float]]
"""Seconds of each event, by name."""


@dataclass(frozen=True)
class ProfilerTrace:
    """The runs of compiled graphs in a trace, by thread and time, and what else ran.

    ``device`` is torch's name of the device of its kernels (``cuda`` of ROCm too), ``cpu`` where there are none.
    ``kernels`` has the seconds on the device of all that ran there, ``regions`` those of compiled regions on the host
    by compile id, ``region_kernels`` those of what they launched, None for a launch of which they are not known;
    ``operators`` those that no other called. ``missing`` is what the trace holds and is not here, or only mixed.
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
        return path.suffix == ".gz"  # no log is packed; reading it says what is wrong
    except JsonStreamError:
        pass  # a trace all the same if it says so: reading it says which limit it passes, or what is damaged
    return b'"traceEvents"' in head


def read_trace(path: Path) -> ProfilerTrace:
    """The trace in a file, which may be packed (``.gz``).

    Raises:
        UsageError: there is no such file, or it cannot be read.
        RecordError: it is no trace of the profiler.
    """
    events: list[_Event] = []
    untimed = 0
    try:
        for raw in elements(path, "traceEvents"):
            if (event := _event(raw)) is not None:
                if event["ts"] is None:
                    untimed += 1
                    continue
                events.append(event)
                if len(events) > MOST:
                    raise JsonStreamError(f"it has more than {MOST:,} events of the host and of kernels")
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
    return _trace(path.name, events, untimed)


MOST = 3_000_000
"""Most events of a trace that are held, about 2 GB. A shorter profile has fewer."""

_Event = dict[str, Any]

_KEPT = ("correlation", "Sequence number", "Ev Idx")


def _event(raw: Any) -> _Event | None:
    """Return the parts of an event that are read, each of the type that the profiler writes; ``ts`` is None if it has
    no time. None for other events."""
    if not isinstance(raw, dict) or raw.get("ph") not in ("X", "B"):
        return None
    category, name, start, duration = (raw.get(key) for key in ("cat", "name", "ts", "dur"))
    category = category.lower() if isinstance(category, str) else ""
    known = category in (*_ON_HOST, *_ON_DEVICE) or _LAUNCHING.fullmatch(category)
    if not (known and isinstance(name, str)):
        return None
    if raw["ph"] == "B" or not (_is_time(start) and _is_time(duration, least=0)):
        return {"ts": None}
    args = raw.get("args")
    numbers = {k: args[k] for k in _KEPT if type(args.get(k)) is int} if isinstance(args, dict) else {}
    thread = {k: raw[k] for k in ("pid", "tid") if type(raw.get(k)) in (int, str)}
    return {
        "cat": sys.intern(str(category)),
        "name": sys.intern(name),
        "ts": start,
        "dur": duration,
        "args": numbers,
    } | thread


def _is_time(value: Any, least: float = -math.inf) -> bool:
    return type(value) in (int, float) and least <= value < _MOST_TIME


_MOST_TIME = 1e18
"""Microseconds: more than the time since 1970, from which some traces count."""


def _trace(source: str, events: list[dict[str, Any]], untimed: int = 0) -> ProfilerTrace:
    launched: dict[Any, list[tuple[str, float]]] = {}
    threads: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    own = ProfilerTrace(source, "", ())
    devices: dict[str, None] = {}
    launching: set[Any] = set()
    shared: set[Any] = set()
    for event in events:
        if event["cat"] in _ON_DEVICE:
            seconds = event["dur"] / 1e6
            own.kernels.setdefault(event["name"], []).append(seconds)
            launched.setdefault(_args(event).get("correlation"), []).append((event["name"], seconds))
        else:
            threads.setdefault((event.get("pid"), event.get("tid")), []).append(event)
            calls = _LAUNCHING.fullmatch(event["cat"])
            devices |= {calls[1]: None} if calls and calls[1] else {}
            if calls and (number := _args(event).get("correlation")) in launching:
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
    return bool(_RUN.fullmatch(event["name"]) or _REGION.fullmatch(event["name"]))


def _missing(untimed: int, shared: set[Any], processes: int) -> tuple[Missing, ...]:
    counts = (
        (
            untimed,
            "events",
            f"{untimed:,} have no start and duration that can be read: counts and times are at least these",
        ),
        (
            len(shared),
            "launches on the device",
            "several calls bear the same number (correlation): what those launched is not known",
        ),
        (
            processes > 1,
            "processes",
            f"compiled graphs of {processes} processes are in the trace: those of the same id are counted as one",
        ),
    )
    return tuple(Missing(what, why) for count, what, why in counts if count)


def _args(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _runs(
    events: list[dict[str, Any]],
    launched: dict[Any, list[tuple[str, float]]],
    forwards: dict[int, set[str]],
    whole: ProfilerTrace,
) -> Iterator[tuple[float, GraphRun]]:
    """The runs on one thread; ``forwards`` gets the compile ids by the sequence number of autograd, ``whole`` compiled
    regions and the outermost operators."""
    events.sort(key=lambda e: (e["ts"], -e["dur"], _args(e).get("Ev Idx", 0)))
    stack: list[
        tuple[dict[str, Any], GraphRun | None, TracedOperation | None]
    ] = []  # with the run and its part that they stand in
    for event in events:
        while stack and event["ts"] >= stack[-1][0]["ts"] + stack[-1][0]["dur"]:
            stack.pop()
        _, run, part = stack[-1] if stack else (None, None, None)
        if region := _REGION.fullmatch(event["name"]):
            whole.regions.setdefault(region[1], []).append(event["dur"] / 1e6)
        elif event["cat"] == _OPERATOR and not any(outer["cat"] == _OPERATOR for outer, *_ in stack):
            whole.operators.setdefault(event["name"], []).append(event["dur"] / 1e6)
        if _LAUNCHING.fullmatch(event["cat"]):
            ids = (_REGION.fullmatch(outer["name"]) for outer, *_ in reversed(stack))
            if inside := next(filter(None, ids), None):
                there = launched.get(_args(event).get("correlation"), [])
                unknown = [None] if not there and "Launch" in event["name"] else []
                whole.region_kernels.setdefault(inside[1], []).extend([s for _, s in there] or unknown)
        begun = _RUN.fullmatch(event["name"])
        if begun is not None:
            run, part = _run(event, begun[1], [e for e, _, _ in stack], forwards), None
            yield event["ts"], run
        elif run is not None:
            calls = _LAUNCHING.fullmatch(event["cat"]) is not None
            there = launched.get(_args(event).get("correlation"), []) if calls else []
            if part is None and not (calls and not there):
                # A launch that no operator stands around bears the name of its kernel.
                part = TracedOperation(there[0][0] if there else event["name"], event["dur"] / 1e6)
                run.operations.append(part)
            if part is not None:
                part.device_kernels += there
                part.launches_on_device |= "Launch" in event["name"] and calls
        stack.append((event, run, part))


def _run(
    event: dict[str, Any], key: str, around: list[dict[str, Any]], forwards: dict[int, set[str]]
) -> GraphRun:
    run = GraphRun("", "", key, event["dur"] / 1e6)
    for outer in reversed(around):
        sequence = _args(outer).get("Sequence number")
        region = _REGION.fullmatch(outer["name"])
        if region is not None:
            run.id, run.phase = region[1], run.phase or "inference"
            break
        if _BACKWARD.fullmatch(outer["name"]):
            run.phase, run.sequence = "backward", sequence
            break
        if outer["name"] == _FORWARD:
            run.phase, run.sequence = "forward", sequence
    if run.phase == "forward" and run.id and run.sequence is not None:
        forwards.setdefault(run.sequence, set()).add(run.id)
    return run
