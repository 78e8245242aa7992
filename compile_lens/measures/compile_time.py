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
"""The parts that time is booked to, in the order in which a graph comes to them."""

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
"""Torch's names of events with which another part begins; an event of another name is of the part that it stands in."""


@dataclass(frozen=True)
class Spent:
    """The time that the compiles of one code took.

    Attributes:
        frame: the code; ``None`` for what is of no frame evaluation that was seen.
        ids: the compiles.
        seconds: wall time by part, each in its own: what a part hands on is booked to the next one. Of threads that
            build kernels at the same time each counts.
    """

    frame: ProgramFrame | None
    ids: tuple[str, ...]
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        """All parts together, in seconds."""
        return sum(self.seconds.values())


def own_times(program: ProgramRecord) -> Iterator[tuple[CompileEvent, str, float]]:
    """Each event that takes time, the part that it is of, and the microseconds that no event inside of it took."""
    for thread in sorted({e.thread for e in program.events}):
        events = [e for e in program.events if e.thread == thread and e.duration]
        stack: list[list[object]] = []  # the event, its part, what is left of it
        for event in sorted(events, key=lambda e: (e.start, -e.duration, e.depth)):
            while stack and not _holds(stack[-1][0], event):
                yield _closed(stack.pop())
            outer = stack[-1] if stack else None
            part = _PART_OF.get(event.name) or (str(outer[1]) if outer else DYNAMO)
            if outer is not None:
                assert isinstance(outer[2], float)
                outer[2] -= event.duration
            stack.append([event, part, event.duration])
        while stack:
            yield _closed(stack.pop())


def _holds(outer: object, inner: CompileEvent) -> bool:
    assert isinstance(outer, CompileEvent)
    return outer.depth < inner.depth and inner.start < outer.start + outer.duration


def _closed(one: list[object]) -> tuple[CompileEvent, str, float]:
    event, part, left = one
    assert isinstance(event, CompileEvent) and isinstance(left, float)
    return event, str(part), max(left, 0.0)


def compile_time(program: ProgramRecord) -> tuple[Spent, ...]:
    """The time by code, the one that took most first."""
    whose = _frames(program)
    spent: dict[int, dict[str, float]] = {}
    ids: dict[int, dict[str, None]] = {}
    for event, part, own in own_times(program):
        number = whose(event)
        parts = spent.setdefault(number, dict.fromkeys(PARTS, 0.0))
        parts[part] += own / 1e6
        if event.id:
            ids.setdefault(number, {})[event.id] = None
    parts_by_function = [
        Spent(program.frames[number] if number >= 0 else None, tuple(ids.get(number, ())), parts)
        for number, parts in spent.items()
    ]
    return tuple(sorted(parts_by_function, key=lambda one: -one.total))


_BEGINS = "dynamo"
"""Torch's name of the event with which each compile of a code begins."""


def _frames(program: ProgramRecord) -> Callable[[CompileEvent], int]:
    """The number of the frame that an event is of, -1: of none. Ids begin again where the program resets Dynamo: the
    compiles of one id are told apart by their order, and what comes later (a backward) is of the last that began."""
    frames: dict[str, list[int]] = {}
    evaluations = (
        (v.number, v.id, v.count, n) for n, f in enumerate(program.frames) for v in f.evaluations if v.id
    )
    for _, id, times, number in sorted(evaluations):
        frames.setdefault(id, []).extend([number] * times)
    begun: dict[str, list[float]] = {}
    for event in program.events:
        if event.name == _BEGINS and event.duration:
            begun.setdefault(event.id, []).append(event.start)

    by_visit = {v.number: n for n, f in enumerate(program.frames) for v in f.evaluations}

    def of(event: CompileEvent) -> int:
        if event.evaluation >= 0:
            return by_visit.get(event.evaluation, -1)
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
"""In words, of those that torch's events name; another is told by its own name."""

_EVENT = re.compile(r"(?P<cache>\w+_cache)_(?P<what>hit|miss|bypass|disabled)")


def bypasses(program: ProgramRecord) -> Iterator[tuple[int, str, str]]:
    """Each graph that a cache was not asked for: the number of its frame (-1: none), the cache, and torch's reason."""
    whose = _frames(program)
    for event in program.events:
        match = _EVENT.fullmatch(event.name)
        if match is not None and match["what"] == "bypass":
            why = dict(event.detail).get("cache_bypass_reason", "")
            yield whose(event), NAMES.get(match["cache"], match["cache"]), without_addresses(why).strip()


@dataclass(frozen=True)
class Cache:
    """Lookups of one cache, by torch's own counters. AOTAutograd's cache stands in part for that of Inductor's graphs,
    which is then looked up for each of its own misses.

    Attributes:
        name: in words, or as torch names it.
        hits, misses: graphs that it had, and had not.
        bypassed: graphs that it was not asked for.
        why: torch's reasons for that, and what it says of misses, each once.
        disabled: graphs for which it was switched off.
    """

    name: str
    hits: int
    misses: int
    bypassed: int
    why: tuple[str, ...] = ()
    disabled: int = 0


def caches(program: ProgramRecord) -> tuple[Cache, ...]:
    """The caches of which torch reported anything, in the order of the first report."""
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
