"""Causes that keep a program from being faster: parts that are not compiled, or compiled too often, ranked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compile_lens.record.breaks import NOT_TRACED, Ending
from compile_lens.record.graph import Frame
from compile_lens.record.messages import plain_name
from compile_lens.record.program import (
    CALL_RAISED,
    COMPILED,
    FAILED,
    LIMIT,
    NO_GRAPH,
    OUTCOME_NOT_KNOWN,
    RAISED,
    REST_RUNS_EAGERLY,
    RESUMED,
    SKIPPED,
    Break,
    FrameEvaluation,
    ProgramFrame,
    ProgramRecord,
    Recompilation,
)

from .compile_time import bypasses
from .program import break_line, break_sites, calling_line, compile_seconds, is_permanently_eager

COMPILE_RAISED = "compile that raised"
COMPILE_FAILED = "compile that failed"
RECOMPILE_LIMIT = "recompile limit"
RUNS_EAGERLY = "runs eagerly"
NOT_EVALUATED = "not evaluated"
NOTHING_AT_FIRST = "nothing to compile at first"
EAGER_REST = "rest runs eagerly"
GRAPH_BREAK = "graph break"
RECOMPILED = "recompile"
CACHE_BYPASSED = "cache bypassed"
COMPILE_TIME = "time of compiling"
KINDS = (
    COMPILE_RAISED,
    COMPILE_FAILED,
    RECOMPILE_LIMIT,
    RUNS_EAGERLY,
    NOTHING_AT_FIRST,
    NOT_EVALUATED,
    EAGER_REST,
    GRAPH_BREAK,
    RECOMPILED,
    CACHE_BYPASSED,
    COMPILE_TIME,
)
"""Kinds of a ``Cause``, in the order in which they are reported: first those that end a call, then code that runs
without any compiled code."""


@dataclass(frozen=True)
class Cause:
    """One thing that keeps a program from being faster.

    Attributes:
        kind: one of ``KINDS``.
        place: the line, ``None`` where it is of no line.
        function: the function that it costs.
        count: how often it was seen.
        ending: torch's reason, with its hints and link.
        seconds: compile time that it took, measured; 0 where it took none of its own.
        recompilation: what made a code be compiled again: of what took most compile time, or of the last time.
        other_recompilations: the same of the other times at which something else changed, one of each; at a limit, of
            those at which the forms were made that there are.
        limit: the setting that was reached.
        origin_line: the line that caused it, where that is in another function, which ``function`` calls; ``None``
            where ``place`` is that line, or it is of no line.
        caller: the line of the program from where a line of a library was reached; ``None`` where ``place`` is the
            program's own, or that is not known.
        other_callers: other lines from which it was reached.
        certain: whether it is certain that something ran eagerly for it.
        after_break: whether what it costs is what follows a graph break.
        eager_kind: of what Dynamo was not asked about, ``EagerFrame.kind``.
        torch_caller: ``ProgramFrame.torch_caller`` of what was compiled again, or reached its limit.
        sharing: how many compiled functions, at least, share the code, its cache entries and their limit; 0 where that
            is not known.
        cache: of what is not cached, the cache.
    """

    kind: str
    place: Frame | None
    function: str
    count: int
    ending: Ending | None = None
    seconds: float = 0.0
    recompilation: Recompilation | None = None
    limit: str = ""
    caller: Frame | None = None
    certain: bool = True
    eager_kind: str = ""
    torch_caller: str = ""
    after_break: bool = False
    other_recompilations: tuple[Recompilation, ...] = ()
    origin_line: Frame | None = None
    other_callers: tuple[Frame, ...] = ()
    sharing: int = 0
    cache: str = ""


def causes(program: ProgramRecord) -> tuple[Cause, ...]:
    """The causes by their kind; of one kind the program's own before torch's, then the one that took most compile
    time, or was seen most often. What was compiled again so often that it is near its limit comes before graph breaks.

    How long the eager parts themselves take is not measured, so that it does not enter the order.
    """
    unranked = [*_left(program), *_unasked(program), *_broken(program), *_again(program), *_bypassed(program)]
    spent = compile_seconds(program)
    if spent and program.graphs:
        unranked.append(Cause(COMPILE_TIME, None, "", len(program.graphs), seconds=spent))
    at_limit = {(c.function, c.place) for c in unranked if c.kind == RECOMPILE_LIMIT}
    return tuple(
        sorted(unranked, key=lambda c: (_rank(c, at_limit), _of_torch(c), -c.seconds, -c.count)),
    )


def _rank(cause: Cause, at_limit: set[tuple[str, Frame | None]]) -> float:
    """The place of a cause by its kind. What recompiles at each step soon runs eagerly, if it does not yet."""
    if cause.kind != RECOMPILED or (cause.function, cause.place) in at_limit:
        return KINDS.index(cause.kind)
    again = (cause.recompilation, *cause.other_recompilations)
    near = any(one is not None and one.limit and 2 * (one.cache_entries + 1) > one.limit for one in again)
    return KINDS.index(GRAPH_BREAK) - 0.5 if near else KINDS.index(cause.kind)


def _of_torch(cause: Cause) -> bool:
    return cause.place is not None and cause.place.of_torch


_KIND_OF = {
    RAISED: COMPILE_RAISED,
    FAILED: COMPILE_FAILED,
    LIMIT: RECOMPILE_LIMIT,
    SKIPPED: RUNS_EAGERLY,
}


def _left(program: ProgramRecord) -> list[Cause]:
    causes_of_kind = []
    for frame in program.frames:
        for outcome, kind in _KIND_OF.items():
            ended = [v for v in frame.evaluations if v.outcome == outcome]
            for limit in dict.fromkeys(v.limit for v in ended):
                own = [v for v in ended if v.limit == limit]
                why = own[-1].cause
                times = sum(v.count for v in own)
                place, met = _place(frame, None if outcome == LIMIT else why)
                causes_of_kind.append(
                    Cause(
                        kind,
                        place,
                        frame.function,
                        times,
                        why,
                        0.0,
                        own[-1].recompilation,
                        own[-1].limit,
                        torch_caller=frame.torch_caller,
                        after_break=frame.resume_line is not None,
                        origin_line=met,
                        other_recompilations=_forms_before(frame, own[-1]) if limit else (),
                        sharing=sharing(frame),
                    )
                )
        for_ever = [v for v in frame.evaluations if is_permanently_eager(v)]
        if for_ever:
            place, _ = _place(frame, None)
            rest = frame.resume_line is not None
            causes_of_kind.append(
                Cause(NOTHING_AT_FIRST, place, frame.function, len(for_ever), after_break=rest)
            )
    return causes_of_kind


def _unasked(program: ProgramRecord) -> list[Cause]:
    causes_of_kind = []
    for one in program.eager_frames:
        at = Frame(one.file, one.line, one.function) if one.file else one.caller
        causes_of_kind.append(
            Cause(
                NOT_EVALUATED,
                at,
                one.function,
                one.count,
                one.cause,
                certain=one.certain,
                eager_kind=one.kind,
            )
        )
    return causes_of_kind


def _place(frame: ProgramFrame, why: Ending | None) -> tuple[Frame, Frame | None]:
    """Return the place of the code in which something was met, and the line that was met where it is another one. In a
    function of the program it is the line itself if it lies in it, else the function's first line."""
    own = Frame(frame.file, frame.resume_line or frame.line, frame.function)
    at = why.frames[-1] if why is not None and why.frames else None
    if at is None or (at.file, at.line, plain_name(at.function)) == (own.file, own.line, own.function):
        return own, None
    if frame.torch_caller:  # what begins is torch's
        return at, None
    if not _inside(at, frame):
        return own, at
    return (at, None) if frame.resume_line is None or frame.resume_line == at.line else (own, at)


def _inside(at: Frame, frame: ProgramFrame) -> bool:
    """Return True if a line is one of a code's own, and not of a function that it calls."""
    lines = not frame.code_lines or any(first <= at.line <= last for first, last in frame.code_lines)
    return (at.file, plain_name(at.function)) == (frame.file, frame.function) and lines


_COSTLY = (REST_RUNS_EAGERLY, RESUMED, OUTCOME_NOT_KNOWN, CALL_RAISED)
"""Outcomes of breaks that are causes of their own, the worst first."""


def _broken(program: ProgramRecord) -> list[Cause]:
    causes_of_kind = []
    met = {id(b): (f, v.caller) for f in program.frames for v in f.evaluations for b in v.breaks}
    reported = {id(b) for v in program.evaluations for b in v.breaks if _is_why(b, v)}
    for there in break_sites(program.breaks).values():
        own = [b for b in there if b.outcome in _COSTLY and id(b) not in reported]
        worst = next((b for then in _COSTLY for b in own if b.outcome == then), None)
        if worst is None:  # told as functions that were left to Python, or as calls that raised
            continue
        kind = EAGER_REST if worst.outcome == REST_RUNS_EAGERLY else GRAPH_BREAK
        frame, _ = met[id(worst)]
        place, line = break_line(worst), None
        if kind == EAGER_REST and place is not None and not frame.torch_caller and not _inside(place, frame):
            within = [at for at in worst.ending.frames if _inside(at, frame)]
            place, line = within[-1] if within else _place(frame, None)[0], place
        reached = [calling_line(b.ending, met[id(b)][1]) for b in (worst, *own)]
        known = list(dict.fromkeys(at for at in reached if at is not None))
        one = Cause(kind, place, frame.function, len(own), worst.ending, origin_line=line)
        causes_of_kind.append(replace(one, caller=next(iter(known), None), other_callers=tuple(known[1:])))
    return causes_of_kind


def _is_why(found: Break, visit: FrameEvaluation) -> bool:
    """Return True if a compile raised for the break itself, and not for what it could not do about it."""
    return (
        found.outcome == CALL_RAISED
        and visit.cause is not None
        and found.ending.reason.partition("\n")[0] == visit.cause.reason.partition("\n")[0]
    )


def _again(program: ProgramRecord) -> list[Cause]:
    causes_of_kind = []
    for frame in program.frames:
        own: list[FrameEvaluation] = [
            v for v in frame.evaluations if v.recompilation is not None and v.outcome == COMPILED and v.graphs
        ]
        if own:
            seconds = sum(v.seconds or 0.0 for v in own)
            place = Frame(frame.file, frame.resume_line or frame.line, frame.function)
            first, *others = _by_cost(own)
            causes_of_kind.append(
                Cause(
                    RECOMPILED,
                    place,
                    frame.function,
                    len(own),
                    None,
                    seconds,
                    first,
                    torch_caller=frame.torch_caller,
                    after_break=frame.resume_line is not None,
                    other_recompilations=tuple(others),
                    sharing=sharing(frame),
                )
            )
    return causes_of_kind


def sharing(frame: ProgramFrame) -> int:
    """Return how many compiled functions made cache entries of a code, or found no place there; 0: not known. Others
    may have found an entry that fits, or come after the limit was reached: Dynamo is not asked then."""
    own = (v for v in frame.evaluations if v.outcome in (COMPILED, NO_GRAPH, LIMIT))
    return len({v.compiled_function for v in own} - {0})


def _bypassed(program: ProgramRecord) -> list[Cause]:
    """The codes whose graphs one of the compiler's caches does not take, by cache and reason."""
    counts: dict[tuple[int, str, str], int] = {}
    for number, cache, why in bypasses(program):
        counts[number, cache, why] = counts.get((number, cache, why), 0) + 1
    causes_of_kind = []
    for (number, cache, why), count in counts.items():
        frame = program.frames[number] if number >= 0 else None
        place = None if frame is None else Frame(frame.file, frame.resume_line or frame.line, frame.function)
        one = Cause(
            CACHE_BYPASSED, place, "" if frame is None else frame.function, count, Ending(NOT_TRACED, why)
        )
        after_break = frame is not None and frame.resume_line is not None
        causes_of_kind.append(replace(one, cache=cache, after_break=after_break))
    return causes_of_kind


def _forms_before(frame: ProgramFrame, ended: FrameEvaluation) -> tuple[Recompilation, ...]:
    """Return what the cache entries of a code were compiled for before one call found no place: the last recompile for
    each thing that changed, most entries first; without what changed in that call."""
    by_change: dict[str, list[Recompilation]] = {}
    for visit in frame.evaluations:
        if visit.recompilation is not None and visit.outcome == COMPILED and visit.number < ended.number:
            by_change.setdefault(_what(visit.recompilation), []).append(visit.recompilation)
    if ended.recompilation is not None:
        by_change.pop(_what(ended.recompilation), None)
    return tuple(of[-1] for of in sorted(by_change.values(), key=lambda of: -len(of)))


def _what(found: Recompilation) -> str:
    failed = found.change
    return "" if failed is None else failed.source or failed.text


def _by_cost(own: list[FrameEvaluation]) -> list[Recompilation]:
    """The last recompile of each thing that changed: first that for which most time went into compiling."""
    last: dict[str, Recompilation] = {}
    spent: dict[str, float] = {}
    for visit in reversed(own):
        if (recompilation := visit.recompilation) is not None:
            what = _what(recompilation)
            last.setdefault(what, recompilation)
            spent[what] = spent.get(what, 0.0) + (visit.seconds or 0.0)
    return [last[what] for what in sorted(last, key=lambda what: -spent[what])]
