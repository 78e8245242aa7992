"""Ranked causes that keep a program from being faster: code that is not compiled, or compiled too often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from compile_lens.record.breaks import NOT_TRACED, STANCE, EagerFrame, Ending
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

from .changed_values import Change, Key, keys_of
from .compile_time import bypasses
from .program import break_line, break_sites, calling_line, is_permanently_eager, statement

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
)
"""Kinds of a ``Cause``, worst first: those that end a call, then code that runs without compiled code."""


@dataclass(frozen=True)
class Cause:
    """One fact of a program that keeps it from being faster, removable by one change: a line that breaks graphs, an
    attribute or a size that changes.

    Attributes:
        kind: its worst kind, one of ``KINDS``.
        place: the line; ``None`` if it belongs to no line.
        function: the function that runs slower.
        count: occurrences of ``kind``, over all places.
        ending: torch's reason, with its hints and link; of code that follows a break and had nothing to compile, the
            break's.
        seconds: measured compile time, summed over all places; 0 if it took none of its own.
        recompilation: the last recompile.
        other_recompilations: the earlier recompiles of the code; at a limit one for each changed value.
        limit: the setting that was reached.
        origin_line: the line that caused it, if that is in another function, called by ``function``; ``None`` if
            ``place`` is that line, or if there is none.
        caller: the program's line that led to a line of a library; ``None`` if ``place`` is the program's own, or if
            the caller is not known.
        certain: whether some code certainly ran eagerly because of it.
        after_break: whether the slower code follows a graph break.
        eager_kind: ``EagerFrame.kind`` of code that Dynamo was not asked to compile.
        torch_caller: ``ProgramFrame.torch_caller`` of code that was recompiled or reached its limit.
        sharing: how many compiled functions, at least, share the code, its cache entries and their limit; 0 if not
            known.
        cache: the compiler's cache that was bypassed.
        effects: if there are several places or kinds, a cause for each, worst first, with the count and the seconds of
            its own place.
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
    sharing: int = 0
    cache: str = ""
    effects: tuple[Cause, ...] = ()


def causes(program: ProgramRecord) -> tuple[Cause, ...]:
    """Return the causes, most expensive first: code that runs eagerly, then code recompiled so often that it is near
    its limit, then by compile time. Of equal cost the worst kind comes first, then the most frequent; the program's own
    lines come before torch's.

    The time of eager code is not measured, so it does not enter the order.
    """
    effects = [
        *_stopped_effects(program),
        *_eager_effects(program),
        *_break_effects(program),
        *_recompile_effects(program),
        *_bypass_effects(program),
    ]
    at_limit = {(one.cause.function, one.cause.place) for one in effects if one.cause.kind == RECOMPILE_LIMIT}

    def order(cause: Cause) -> tuple[float, bool, float, int, int]:
        return _rank(cause, at_limit), _of_torch(cause), -cause.seconds, KINDS.index(cause.kind), -cause.count

    keys = keys_of(program, [one.change for one in effects])
    connected = _connected([one.keys | of_change for one, of_change in zip(effects, keys, strict=True)])
    unranked = [_merged([effects[n].cause for n in numbers]) for numbers in connected]
    return tuple(sorted(unranked, key=order))


@dataclass(frozen=True)
class _Effect:
    """A cause at one place. ``keys``: the program's facts behind it; ``change``: the value that changed."""

    cause: Cause
    keys: frozenset[Key] = frozenset()
    change: Change | None = None


def _connected(keys: list[frozenset[Key]]) -> list[list[int]]:
    """Return indices of effects grouped by fact: the connected components under shared keys."""
    parent = list(range(len(keys)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = number = parent[parent[number]]
        return number

    first: dict[Key, int] = {}
    for number, own in enumerate(keys):
        for key in own:
            parent[root(number)] = root(first.setdefault(key, number))
    groups: dict[int, list[int]] = {}
    for number in range(len(keys)):
        groups.setdefault(root(number), []).append(number)
    return list(groups.values())


def _merged(effects: list[Cause]) -> Cause:
    """Return one cause for several effects. Their order ignores seconds, which differ from run to run."""
    if len(effects) == 1:
        return effects[0]
    ranked = sorted(effects, key=_severity)
    count = sum(one.count for one in ranked if one.kind == ranked[0].kind)
    return replace(ranked[0], count=count, seconds=sum(one.seconds for one in ranked), effects=tuple(ranked))


def _severity(effect: Cause) -> tuple[int, bool, int, str, int]:
    at = ("", 0) if effect.place is None else (effect.place.file, effect.place.line)
    return KINDS.index(effect.kind), _of_torch(effect), -effect.count, *at


def _rank(cause: Cause, at_limit: set[tuple[str, Frame | None]]) -> float:
    """Return the rank of a cause by its kind. Code near its recompile limit ranks above a graph break."""
    effects = cause.effects or (cause,)
    near = any(one.kind == RECOMPILED and _is_near(one, at_limit) for one in effects)
    rank = min(map(_own_rank, effects))
    return min(rank, KINDS.index(GRAPH_BREAK) - 0.5) if near else rank


def _own_rank(effect: Cause) -> float:
    """Return the rank of one effect. Code that ran eagerly after a graph break ranks below the break."""
    if effect.kind == NOTHING_AT_FIRST and effect.after_break:
        return KINDS.index(GRAPH_BREAK) + 0.5
    return KINDS.index(GRAPH_BREAK if effect.kind == RECOMPILED else effect.kind)


def _is_near(cause: Cause, at_limit: set[tuple[str, Frame | None]]) -> bool:
    last = cause.recompilation
    if last is None or not last.limit or (cause.function, cause.place) in at_limit:
        return False
    return 2 * (last.cache_entries + 1) > last.limit


def _of_torch(cause: Cause) -> bool:
    return cause.place is not None and cause.place.of_torch


_KIND_OF = {
    RAISED: COMPILE_RAISED,
    FAILED: COMPILE_FAILED,
    LIMIT: RECOMPILE_LIMIT,
    SKIPPED: RUNS_EAGERLY,
}


def _stopped_effects(program: ProgramRecord) -> list[_Effect]:
    effects = []
    for frame in program.frames:
        for outcome, kind in _KIND_OF.items():
            by_reason: dict[tuple[str, frozenset[Key]], list[FrameEvaluation]] = {}
            for evaluation in frame.evaluations:
                if evaluation.outcome == outcome:
                    keys = (
                        frozenset()
                        if evaluation.limit
                        else _line_keys(program, evaluation.cause, evaluation.caller)
                    )
                    by_reason.setdefault((evaluation.limit, keys), []).append(evaluation)
            for (limit, keys), own in by_reason.items():
                last = own[-1]
                place, met = _place(frame, None if outcome == LIMIT else last.cause)
                cause = Cause(
                    kind,
                    place,
                    frame.function,
                    sum(v.count for v in own),
                    last.cause,
                    0.0,
                    last.recompilation,
                    limit,
                    torch_caller=frame.torch_caller,
                    after_break=frame.resume_line is not None,
                    origin_line=met,
                    other_recompilations=_earlier_recompilations(frame, last) if limit else (),
                    sharing=sharing(frame),
                )
                effects.append(_Effect(cause, keys, Change.of(frame, [last]) if limit else None))
        permanently_eager = [v for v in frame.evaluations if is_permanently_eager(v)]
        if permanently_eager:
            place, _ = _place(frame, None)
            rest = frame.resume_line is not None
            effects.append(
                _Effect(
                    Cause(
                        NOTHING_AT_FIRST,
                        place,
                        frame.function,
                        len(permanently_eager),
                        _break_before(program, frame),
                        after_break=rest,
                    )
                )
            )
    return effects


def _break_before(program: ProgramRecord, frame: ProgramFrame) -> Ending | None:
    """Return the break that a code follows; ``None`` for a function, and where it is not known."""
    here = (frame.file, frame.resume_line)
    endings = (b.ending for b in program.breaks if frame.resume_line is not None)
    return next((one for one in endings if any((f.file, f.line) == here for f in one.frames)), None)


def _line_keys(program: ProgramRecord, ending: Ending | None, caller: Frame | None = None) -> frozenset[Key]:
    """Return the fact behind an ending: its statement, or for a line of a library the program's statement that led
    there."""
    if ending is None or not ending.frames:
        return frozenset()
    at = calling_line(ending, caller) or ending.frames[-1]
    return frozenset({("line", *statement(program, at.file, at.line))})


def _eager_effects(program: ProgramRecord) -> list[_Effect]:
    effects = []
    broken = {at: b for b in program.breaks for at in b.ending.frames}
    for one in program.eager_frames:
        at = Frame(one.file, one.line, one.function) if one.file else one.caller
        cause = Cause(
            NOT_EVALUATED,
            at,
            one.function,
            one.count,
            one.cause,
            certain=one.certain,
            eager_kind=one.kind,
        )
        effects.append(_Effect(cause, _eager_keys(program, one, broken)))
    return effects


def _eager_keys(program: ProgramRecord, one: EagerFrame, broken: dict[Frame, Break]) -> frozenset[Key]:
    """Return the fact that made a function run eagerly: the stance, or the break inside its call."""
    if one.kind == STANCE:
        return frozenset({(STANCE, one.cause.reason, one.cause.frames)})
    inside = next((broken[at] for at in one.cause.frames if at in broken), None)
    return frozenset() if inside is None else _line_keys(program, inside.ending)


def _place(frame: ProgramFrame, why: Ending | None) -> tuple[Frame, Frame | None]:
    """Return the place to show for an ending, and the line where it arose if that is another one. The place is that
    line if it lies in the function, else the function's first line."""
    own = Frame(frame.file, frame.resume_line or frame.line, frame.function)
    at = why.frames[-1] if why is not None and why.frames else None
    if at is None or (at.file, at.line, plain_name(at.function)) == (own.file, own.line, own.function):
        return own, None
    if frame.torch_caller:  # the outermost code is torch's
        return at, None
    if not _inside(at, frame):
        return own, at
    return (at, None) if frame.resume_line is None or frame.resume_line == at.line else (own, at)


def _inside(at: Frame, frame: ProgramFrame) -> bool:
    """Return True if a line is the code's own, not that of a function that it calls."""
    lines = not frame.code_lines or any(first <= at.line <= last for first, last in frame.code_lines)
    return (at.file, plain_name(at.function)) == (frame.file, frame.function) and lines


_COSTLY = (REST_RUNS_EAGERLY, RESUMED, OUTCOME_NOT_KNOWN, CALL_RAISED)
"""Outcomes of breaks that count as causes, worst first."""


def _break_effects(program: ProgramRecord) -> list[_Effect]:
    effects = []
    met = {id(b): (f, v.caller) for f in program.frames for v in f.evaluations for b in v.breaks}
    reported = {id(b) for v in program.evaluations for b in v.breaks if _is_reported(b, v)}
    for breaks_at in break_sites(program.breaks).values():
        by_fact: dict[frozenset[Key], list[Break]] = {}
        for one in breaks_at:
            if one.outcome in _COSTLY and id(one) not in reported:  # others are functions that run eagerly
                by_fact.setdefault(_line_keys(program, one.ending, met[id(one)][1]), []).append(one)
        for keys, own in by_fact.items():
            worst = next(b for then in _COSTLY for b in own if b.outcome == then)
            kind = EAGER_REST if worst.outcome == REST_RUNS_EAGERLY else GRAPH_BREAK
            frame, caller = met[id(worst)]
            place, line = break_line(worst), None
            if (
                kind == EAGER_REST
                and place is not None
                and not frame.torch_caller
                and not _inside(place, frame)
            ):
                within = [at for at in worst.ending.frames if _inside(at, frame)]
                place, line = within[-1] if within else _place(frame, None)[0], place
            cause = Cause(kind, place, frame.function, len(own), worst.ending, origin_line=line)
            effects.append(_Effect(replace(cause, caller=calling_line(worst.ending, caller)), keys))
    return effects


def _is_reported(graph_break: Break, evaluation: FrameEvaluation) -> bool:
    """Return True if the break itself is the reason that the compile raised."""
    return (
        graph_break.outcome == CALL_RAISED
        and evaluation.cause is not None
        and graph_break.ending.reason.partition("\n")[0] == evaluation.cause.reason.partition("\n")[0]
    )


def _recompile_effects(program: ProgramRecord) -> list[_Effect]:
    effects = []
    for frame in program.frames:
        by_change: dict[str, list[FrameEvaluation]] = {}
        for evaluation in frame.evaluations:
            if evaluation.recompilation is not None and evaluation.outcome == COMPILED and evaluation.graphs:
                by_change.setdefault(_changed_value(evaluation.recompilation), []).append(evaluation)
        for own in by_change.values():
            cause = Cause(
                RECOMPILED,
                Frame(frame.file, frame.resume_line or frame.line, frame.function),
                frame.function,
                len(own),
                None,
                sum(v.seconds or 0.0 for v in own),
                own[-1].recompilation,
                other_recompilations=tuple(v.recompilation for v in own[:-1] if v.recompilation is not None),
                torch_caller=frame.torch_caller,
                after_break=frame.resume_line is not None,
                sharing=sharing(frame),
            )
            effects.append(_Effect(cause, change=Change.of(frame, own)))
    return effects


def sharing(frame: ProgramFrame) -> int:
    """Return how many compiled functions added cache entries to a code or hit its limit; 0 if not known. Others may
    have found a matching entry, or run after the limit was reached: Dynamo is not asked then."""
    own = (v for v in frame.evaluations if v.outcome in (COMPILED, NO_GRAPH, LIMIT))
    return len({v.compiled_function for v in own} - {0})


def _bypass_effects(program: ProgramRecord) -> list[_Effect]:
    """Return the code objects whose graphs bypass one of the compiler's caches, by cache and reason."""
    effects = []
    for (number, cache, why), count in Counter(bypasses(program)).items():
        frame = program.frames[number] if number >= 0 else None
        place = None if frame is None else Frame(frame.file, frame.resume_line or frame.line, frame.function)
        name = "" if frame is None else frame.function
        cause = Cause(CACHE_BYPASSED, place, name, count, Ending(NOT_TRACED, why), cache=cache)
        after_break = frame is not None and frame.resume_line is not None
        code = None if frame is None else (frame.file, frame.line)
        effects.append(_Effect(replace(cause, after_break=after_break), frozenset({("cache", why, code)})))
    return effects


def _earlier_recompilations(frame: ProgramFrame, ended: FrameEvaluation) -> tuple[Recompilation, ...]:
    """Return the recompiles of a code before a call hit the limit: the last for each changed value, most entries first,
    without the value that changed in that call."""
    by_change: dict[str, list[Recompilation]] = {}
    for evaluation in frame.evaluations:
        if (
            evaluation.recompilation is not None
            and evaluation.outcome == COMPILED
            and evaluation.number < ended.number
        ):
            by_change.setdefault(_changed_value(evaluation.recompilation), []).append(
                evaluation.recompilation
            )
    if ended.recompilation is not None:
        by_change.pop(_changed_value(ended.recompilation), None)
    return tuple(of[-1] for of in sorted(by_change.values(), key=lambda of: -len(of)))


def _changed_value(recompilation: Recompilation) -> str:
    failed = recompilation.change
    return "" if failed is None else failed.source or failed.text
