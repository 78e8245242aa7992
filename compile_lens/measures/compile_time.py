"""Compile time by function and by part of the compiler, from torch's own events."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compile_lens.record.messages import without_addresses
from compile_lens.record.program import CompileEvent, ProgramFrame, ProgramRecord

DYNAMO, AOT, INDUCTOR, BUILDING, BACKEND = (
    "Dynamo",
    "AOTAutograd",
    "Inductor",
    "building kernels",
    "the backend itself",
)
PARTS = (DYNAMO, AOT, INDUCTOR, BUILDING, BACKEND)
"""Parts of the compiler to which time is assigned, in the order in which a graph passes them."""

_PART_OF = {
    "dynamo": DYNAMO,
    "entire_frame_compile": DYNAMO,
    "backend_compile": BACKEND,
    "create_aot_dispatcher_function": AOT,
    "entire_backward_compile": AOT,
    "inductor_compile": INDUCTOR,
    "compile_fx_inner": INDUCTOR,
    "fx_codegen_and_compile": INDUCTOR,
    "compile_file": BUILDING,
    "async_compile.wait": BUILDING,
    "triton_compile": BUILDING,
    "async_compile.precompile": BUILDING,
}
"""Part that starts with an event, by torch's event name; events of other names belong to the enclosing part."""


@dataclass(frozen=True)
class Spent:
    """Compile time of one code object.

    Attributes:
        frame: the code object; ``None`` for events of no observed frame evaluation.
        ids: the compiles.
        seconds: wall time by part, without the parts that it calls. Threads that build kernels in parallel are summed.
    """

    frame: ProgramFrame | None
    ids: tuple[str, ...]
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        """Sum over all parts, in seconds."""
        return sum(self.seconds.values())


def compiled_without_a_call(program: ProgramRecord) -> bool:
    """Return True if Inductor compiled something that no frame evaluation requested, as AOTInductor does."""
    parts = (event for event in program.events if event.evaluation < 0 and not event.id)
    return any(_PART_OF.get(event.name) == INDUCTOR for event in parts)


def own_times(program: ProgramRecord) -> Iterator[tuple[CompileEvent, str, float]]:
    """Yield each event with a duration, its part, and its own microseconds, without nested events."""
    for thread in sorted({e.thread for e in program.events}):
        events = [e for e in program.events if e.thread == thread and e.duration]
        stack: list[list[object]] = []  # event, part, microseconds outside nested events
        for event in sorted(events, key=lambda e: (e.start, -e.duration, e.depth)):
            while stack and not _encloses(stack[-1][0], event):
                yield _own_time(stack.pop())
            outer = stack[-1] if stack else None
            part = _PART_OF.get(event.name) or (str(outer[1]) if outer else DYNAMO)
            if outer is not None:
                assert isinstance(outer[2], float)
                outer[2] -= event.duration
            stack.append([event, part, event.duration])
        while stack:
            yield _own_time(stack.pop())


def _encloses(outer: object, inner: CompileEvent) -> bool:
    assert isinstance(outer, CompileEvent)
    return outer.depth < inner.depth and inner.start < outer.start + outer.duration


def _own_time(one: list[object]) -> tuple[CompileEvent, str, float]:
    event, part, left = one
    assert isinstance(event, CompileEvent) and isinstance(left, float)
    return event, str(part), max(left, 0.0)


def compile_time(program: ProgramRecord) -> tuple[Spent, ...]:
    """Return the compile time by code object, longest first."""
    frame_number = _frames(program)
    spent: dict[int, dict[str, float]] = {}
    ids: dict[int, dict[str, None]] = {}
    for event, part, own in own_times(program):
        number = frame_number(event)
        parts = spent.setdefault(number, dict.fromkeys(PARTS, 0.0))
        parts[part] += own / 1e6
        if event.id:
            ids.setdefault(number, {})[event.id] = None
    parts_by_function = [
        Spent(program.frames[number] if number >= 0 else None, tuple(ids.get(number, ())), parts)
        for number, parts in spent.items()
    ]
    return tuple(sorted(parts_by_function, key=lambda one: -one.total))


_COMPILE_EVENT = "dynamo"
"""Torch's name for the event that starts each compile of a code object."""


def _frames(program: ProgramRecord) -> Callable[[CompileEvent], int]:
    """Return a function that gives the frame number of an event, -1 for none. Ids restart when the program resets
    Dynamo: compiles of one id are distinguished by order, and a later event (a backward) belongs to the last of them
    that started."""
    frames: dict[str, list[int]] = {}
    evaluations = (
        (v.number, v.id, v.count, n) for n, f in enumerate(program.frames) for v in f.evaluations if v.id
    )
    for _, id, times, number in sorted(evaluations):
        frames.setdefault(id, []).extend([number] * times)
    begun: dict[str, list[float]] = {}
    for event in program.events:
        if event.name == _COMPILE_EVENT and event.duration:
            begun.setdefault(event.id, []).append(event.start)

    by_evaluation = {v.number: n for n, f in enumerate(program.frames) for v in f.evaluations}

    def of(event: CompileEvent) -> int:
        if event.evaluation >= 0:
            return by_evaluation.get(event.evaluation, -1)
        own = frames.get(event.id, [-1])
        if len(set(own)) == 1:
            return own[0]
        starts = sorted(begun.get(event.id, ()))
        at = bisect.bisect_right(starts, event.start) - 1
        return own[at] if at >= 0 and len(starts) == len(own) else -1

    return of


NAMES = {
    "autograd_cache": "AOTAutograd",
    "fx_graph_cache": "Inductor's FX graphs",
}
"""Readable names of the caches in torch's events; other caches keep torch's name."""

_EVENT = re.compile(r"(?P<cache>\w+_cache)_(?P<what>hit|miss|bypass|disabled)")


def bypasses(program: ProgramRecord) -> Iterator[tuple[int, str, str]]:
    """Yield each bypass of a cache: the frame number of the graph (-1: none), the cache, and torch's reason."""
    frame_number = _frames(program)
    for event in program.events:
        match = _EVENT.fullmatch(event.name)
        if match is not None and match["what"] == "bypass":
            why = dict(event.detail).get("cache_bypass_reason", "")
            yield (
                frame_number(event),
                NAMES.get(match["cache"], match["cache"]),
                without_addresses(why).strip(),
            )


@dataclass(frozen=True)
class Cache:
    """Lookups of one cache, from torch's own events. With AOTAutograd's cache on, Inductor's is looked up only for the
    misses of that cache.

    Attributes:
        name: a readable name, or torch's.
        hits, misses: graphs found and not found.
        bypassed: graphs for which the cache was bypassed.
        why: torch's reasons for bypasses, misses and a disabled cache, each once.
        disabled: graphs for which the cache was switched off.
    """

    name: str
    hits: int
    misses: int
    bypassed: int
    why: tuple[str, ...] = ()
    disabled: int = 0


def caches(program: ProgramRecord) -> tuple[Cache, ...]:
    """Return the caches that torch reported on, in order of the first report."""
    counts: dict[str, dict[str, int]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for event in program.events:
        match = _EVENT.fullmatch(event.name)
        if match is None:
            continue
        name = NAMES.get(match["cache"], match["cache"])
        own = counts.setdefault(name, dict.fromkeys(("hit", "miss", "bypass", "disabled"), 0))
        own[match["what"]] += 1
        facts = dict(event.detail)
        why = facts.get("cache_bypass_reason", "") if match["what"] in ("bypass", "disabled") else ""
        if match["what"] == "miss":
            why = facts.get("cache_status_detailed", "").replace("_", " ")
        if why:
            reasons.setdefault(name, {})[why] = None
    return tuple(
        Cache(name, own["hit"], own["miss"], own["bypass"], tuple(reasons.get(name, ())), own["disabled"])
        for name, own in counts.items()
    )
