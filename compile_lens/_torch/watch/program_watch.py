"""A watch, from opening to closing, and its observations as plain data."""

from __future__ import annotations

import dataclasses
import os
import re
import time
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...record import claims, dimension_marks, failed_guards, messages
from ...record.breaks import NOT_TRACED, EagerFrame, Ending
from ...record.collectives import IssuedCollectives
from ...record.graph import Frame, Source
from ...record.missing import Missing
from ...record.program import (
    CALL_RAISED,
    COMPILED,
    FAILED,
    FUNCTION_RUNS_EAGERLY,
    LIMIT,
    NO_GRAPH,
    NOTHING,
    RAISED,
    REST_RUNS_EAGERLY,
    SKIPPED,
    UNKNOWN,
    CompileEvent,
    FrameEvaluation,
    LibrarySkips,
    ProgramFrame,
    ProgramGraph,
    Ranges,
    Recompilation,
    TracedFunction,
)
from ..frames import dynamo, eager_lines
from ..ground.undo import Undo
from . import (
    checkpoints,
    compiled_objects,
    eager_frames,
    earlier_decisions,
    events,
    frame_evaluations,
    guards,
    issued_collectives,
    observers,
    recompiles,
    scopes,
    stances,
)
from .callers import is_library
from .retained_graphs import RetainedGraph
from .scopes import Evaluation, Graph, Scope

# Importing these modules registers their observers.
_OBSERVERS = (checkpoints, events, guards, recompiles, stances, frame_evaluations)


@dataclasses.dataclass(frozen=True)
class Observations:
    """The observations of one watch, as plain data: fields of ``ProgramRecord``."""

    frames: tuple[ProgramFrame, ...]
    prior_frames: tuple[ProgramFrame, ...]
    eager_frames: tuple[EagerFrame, ...]
    graphs: tuple[ProgramGraph, ...]
    events: tuple[Any, ...]
    library_skips: tuple[LibrarySkips, ...]
    sources: tuple[Source, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]
    seconds: float
    overhead_seconds: float
    rank: int | None
    world: int
    issued: IssuedCollectives | None = None


class ProgramWatch:
    """A watch of compiles on its thread and on threads started from it, or in the ``whole`` process.

    Call ``open`` and ``close`` on the same thread; the observations can be read at any time.
    """

    def __init__(self, whole: bool = False, keeps: bool = False) -> None:
        self._whole = whole
        self._keeps = keeps
        self._undo = Undo()
        self._scope: Scope | None = None
        self.ended: str | None = None

    def open(self, kept: Callable[[Observations], None] | None = None) -> None:
        """Begin to watch; call ``kept`` with each finished evaluation and its graphs, without the others."""
        try:
            observers.place(self._undo)
            self._scope = scope = scopes.enter(self._undo, self._whole)
            scope.lost.update(observers.lost_claims())
            scope.before, scope.eager_resumes, scope.eager_before = earlier_decisions.find_decisions()
            stances.begin(scope)
            with observers.observing((scope,), claims.COLLECTIVES):
                issued_collectives.keep(self._undo, scope)
            scope.keeps = self._keeps
            scope.kept = None if kept is None else lambda evaluation: kept(_part(scope, evaluation))
        except BaseException:  # after an interrupt nobody else closes it
            self._undo.close()
            raise

    def close(self, ended: str) -> None:
        """Stop watching, for the reason ``ended``. It may be repeated."""
        try:
            self._undo.close()
        finally:  # steps that an interrupt left
            self._undo.close()
        self.ended = ended if self.ended is None else self.ended

    def observations(self) -> Observations:
        """Return the observations so far."""
        if self._scope is None:
            raise RuntimeError("the watch was not opened")
        return _observations(self._scope)

    def compiled(self) -> list[types.CodeType]:
        """Return the code objects that Dynamo evaluated during the watch and had not compiled before."""
        if self._scope is None:
            return []
        codes = dict.fromkeys(evaluation.code for evaluation in self._scope.evaluations)
        return [code for code in codes if code not in self._scope.before]

    def kept(self) -> list[tuple[RetainedGraph | None, list[str]]]:
        """Return, for each graph in order, the inputs for lowering it again, and the code observed for it."""
        if self._scope is None:
            return []
        graphs = sorted((g for v in list(self._scope.evaluations) for g in v.graphs), key=lambda g: g.number)
        return [(g.kept, self._scope.codes.get(g.id, [])) for g in graphs]


def _observations(scope: Scope) -> Observations:
    evaluations = sorted(list(scope.evaluations), key=lambda v: v.number)
    graphs = {
        g: i for i, g in enumerate(sorted((g for v in evaluations for g in v.graphs), key=lambda g: g.number))
    }
    by_code: dict[types.CodeType, list[Evaluation]] = {}
    by_thing: dict[tuple[types.CodeType, Frame | None], list[Evaluation]] = {}
    for evaluation in evaluations:
        by_code.setdefault(evaluation.code, []).append(evaluation)
        by_thing.setdefault((evaluation.code, evaluation.wrapped), []).append(evaluation)
    numbers = {v.number: i for i, v in enumerate(evaluations)}
    frames = []
    plain: dict[int, FrameEvaluation] = {}
    variants = {code: _entries(own) for code, own in by_code.items()}
    lacking = scope.lacking()
    for (code, wrapped), own in by_thing.items():
        records = [_evaluation(v, numbers[v.number], graphs, variants[code], lacking) for v in own]
        plain |= {v.number: visit for v, visit in zip(own, records, strict=True)}
        frame = _frame(code, tuple(records), scope.before.get(code, ()), by_code)
        frames.append(_through_wrapper(frame, wrapped, own[0].caller))
    sources, unread = _sources(evaluations, eager_frames.source_codes(scope, evaluations))
    evaluated = set(by_code)
    rests = [(code, _frame(code, (), (), evaluated)) for code in scope.eager_resumes if code not in evaluated]
    frames += earlier_decisions.eager_resumes(rests, frames)
    rank, world = scope.process or (None, 0)
    others = {code: ids for code, ids in scope.before.items() if code not in by_code}
    eager = eager_frames.collect(scope, evaluations, plain)
    eager_places = {(one.file, one.line) for one in eager}
    left = [
        code
        for code in scope.eager_before
        if not (code in by_code or code in others or (code.co_filename, code.co_firstlineno) in eager_places)
    ]
    given_up = {*scope.eager_before, *scope.eager_resumes}
    before = (
        dataclasses.replace(
            _frame(code, (), others.get(code, ()), (*by_code, *others)),
            eager_lines=eager_lines.lines(code) if code in given_up else (),
        )
        for code in (*others, *left)
    )
    return Observations(
        frames=tuple(frames),
        prior_frames=tuple(before),
        eager_frames=eager,
        graphs=_graphs(graphs),
        events=_with_numbers(events.paired_events(list(scope.events), scope.began_at), numbers),
        library_skips=tuple(
            LibrarySkips(why, count, tuple(scope.breaks_elsewhere.get(why, ())))
            for why, count in scope.elsewhere.most_common()
        ),
        sources=sources,
        missing=(*scope.not_observed(), *scope.issued.missing(), *unread),
        notes=scopes.notes(scope),
        seconds=(scope.ended or time.perf_counter()) - scope.began,
        overhead_seconds=scope.spent / 1e9,
        rank=rank,
        world=world,
        issued=None if claims.COLLECTIVES in lacking else scope.issued.record(),
    )


def _with_numbers(
    events_read: Iterable[CompileEvent], numbers: Mapping[int, int]
) -> tuple[CompileEvent, ...]:
    """Return the events with their evaluation's number in the record, -1 if the evaluation is unfinished."""
    return tuple(
        e if e.evaluation < 0 else dataclasses.replace(e, evaluation=numbers.get(e.evaluation, -1))
        for e in events_read
    )


def _entries(own: Iterable[Evaluation]) -> dict[str, list[Evaluation]]:
    """Return the cache entries of a code object by compile id; ids repeat if the program resets Dynamo."""
    entries: dict[str, list[Evaluation]] = {}
    for evaluation in own:
        if evaluation.guarded:
            entries.setdefault(evaluation.id, []).append(evaluation)
    return entries


def _older_entry(variants: dict[str, list[Evaluation]], id: str, v: Evaluation) -> Evaluation | None:
    """Return the entry with an id from before an evaluation; one of another thread may begin later and finish
    earlier."""
    own = variants.get(id, [])
    before = [variant for variant in own if variant.number < v.number]
    return max(before, key=lambda variant: variant.number) if before else next(iter(own), None)


def _part(scope: Scope, one: Evaluation) -> Observations:
    """Return the observations of one evaluation, numbered over all watches."""
    graphs = {g: g.number for g in one.graphs}
    own = list(scope.by_code.get(one.code, ()))
    variants = _entries(own)
    evaluation = _evaluation(one, one.number, graphs, variants, scope.lacking())
    frame = _frame(one.code, (evaluation,), scope.before.get(one.code, ()), list(scope.by_code))
    same = (v for v in own if v.wrapped == one.wrapped)
    frame = _through_wrapper(frame, one.wrapped, next(same, one).caller)
    seconds = time.perf_counter() - scope.began
    process = scope.process or (None, 0)
    return Observations(
        (frame,),
        (),
        (),
        _graphs(graphs),
        (),
        (),
        *_sources([one]),
        (),
        seconds,
        scope.spent / 1e9,
        *process,
    )


def _graphs(graphs: dict[Graph, int]) -> tuple[ProgramGraph, ...]:
    return tuple(
        ProgramGraph(
            i,
            g.id,
            g.operators,
            g.inputs,
            g.thread,
            g.seconds,
            g.takes,
            g.gives,
            g.collectives,
            g.buckets,
            g.calls,
        )
        for g, i in graphs.items()
    )


def _evaluation(
    v: Evaluation,
    number: int,
    graphs: dict[Graph, int],
    variants: dict[str, list[Evaluation]],
    lacking: set[str],
) -> FrameEvaluation:
    outcome = _outcome(v, lacking)
    recompilation, dynamic = _recompilation(v, variants), v.dynamic
    if claims.SIZES in lacking:
        recompilation = recompilation and dataclasses.replace(recompilation, dynamic=())
        dynamic = ()
    with_lines = claims.TRACED_LINES not in lacking
    before = graphs[v.graphs[-1]] if v.graphs else None
    broken = tuple(
        dataclasses.replace(b, graph=before if b.outcome != FUNCTION_RUNS_EAGERLY else None) for b in v.breaks
    )
    if outcome == RAISED:
        broken = tuple(dataclasses.replace(b, outcome=CALL_RAISED, consequence="") for b in broken)
    if v.wrapped is not None:
        broken = tuple(
            dataclasses.replace(b, ending=compiled_objects.without_wrapper(b.ending, v.wrapped, v.caller))
            for b in broken
        )
    return FrameEvaluation(
        outcome=outcome,
        id=v.id,
        cause=_why(v, outcome),
        caller=v.caller,
        thread=v.thread,
        backend=v.backend,
        restarts=v.attempt,
        graphs=tuple(graphs[g] for g in v.graphs),
        breaks=broken,
        recompilation=recompilation,
        limit=v.limit,
        traced_functions=tuple(_traced(code, _own_lines(v, code)) for code in v.lines)
        if outcome == COMPILED and with_lines
        else (),
        eager_lines=_eager(v, outcome) if with_lines or outcome not in (COMPILED, NO_GRAPH) else (),
        guards=v.guards if v.guarded else (),
        dynamic=dynamic,
        specializations=v.specialized if v.guarded else (),
        seconds=v.seconds,
        number=number,
        count=v.times,
        may_compute=eager_lines.may_compute(v.code) and not v.plain,
        compiled_function=v.compiled_function,
    )


def _outcome(v: Evaluation, lacking: set[str]) -> str:
    if v.raised:
        return RAISED
    if v.guarded:
        return COMPILED if v.graphs or claims.GRAPHS in lacking else NO_GRAPH
    if v.limit:
        return LIMIT
    nothing = v.error is None and (not v.reason or messages.is_nothing_to_compile(v.reason))
    failed = v.error is not None and v.error.kind == NOT_TRACED
    return NOTHING if nothing else FAILED if failed else SKIPPED


def _why(v: Evaluation, outcome: str) -> Ending | None:
    if outcome in (COMPILED, NO_GRAPH):
        return None
    if v.error is not None:
        if v.wrapped is not None:
            return compiled_objects.without_wrapper(v.error, v.wrapped, v.caller)
        if v.error.frames:
            return v.error
        place = Frame(v.code.co_filename, v.code.co_firstlineno, eager_lines.plain_name(v.code.co_name))
        return dataclasses.replace(v.error, frames=(place,))
    return Ending(
        NOT_TRACED, messages.summary(v.reason) or "no operation to compile (this torch does not say why)"
    )


def _recompilation(v: Evaluation, variants: dict[str, list[Evaluation]]) -> Recompilation | None:
    if v.recompiled is None:
        return None
    failed = []
    for guard in v.failed:
        older = _older_entry(variants, guard.id, v)
        if older is not None:
            guard = messages.with_guard_line(guard, older.guards, older.specialized)
            guard = failed_guards.with_compiled_value(guard, older.held)
        failed.append(dimension_marks.with_marks(guard, older.marks if older is not None else {}, v.marks))
    changed = failed[v.nearest] if failed and v.nearest != UNKNOWN else None
    nearest = _older_entry(variants, changed.id, v) if changed is not None else None
    if nearest is not None:
        earlier = {d.source for d in nearest.dynamic}
        became = tuple(d for d in v.dynamic if d.source not in earlier)
    else:  # compiled before the watch, so only the failed guard has the values it was compiled for
        numbers = {guard.source for guard in failed if guard.old}
        became = tuple(d for d in v.dynamic if messages.plain_source(d.source) in numbers)
    at = messages.specializing_line(changed, v.dynamic, v.guards, v.specialized) if changed else None
    return Recompilation(tuple(failed), *v.recompiled, became, at, v.nearest, v.constants_only)


def _own_lines(v: Evaluation, code: types.CodeType) -> set[int]:
    return v.lines[code] - v.without_node if code is v.code else v.lines[code]


def _traced(code: types.CodeType, lines: set[int]) -> TracedFunction:
    known = eager_lines.code_lines(code)
    name = eager_lines.plain_name(code.co_name)
    own = eager_lines.ranges(lines, known)
    return TracedFunction(code.co_filename, name, code.co_firstlineno, own, eager_lines.code_ranges(code))


def _eager(v: Evaluation, outcome: str) -> Ranges:
    if v.wrapped is not None:  # the lines are torch's
        return ()
    if outcome == NO_GRAPH:
        lines = v.lines.get(v.code, set())
        return eager_lines.ranges(lines, eager_lines.code_lines(v.code))
    if outcome == COMPILED:
        left = any(b.outcome == REST_RUNS_EAGERLY for b in v.breaks)
        return eager_lines.lines(v.code, v.rest) if left and v.rest is not None else ()
    return () if outcome == RAISED else eager_lines.lines(v.code)


def _through_wrapper(frame: ProgramFrame, wrapped: Frame | None, caller: Frame | None) -> ProgramFrame:
    """Return a frame of torch's wrapper as one of the function that it calls; any other unchanged."""
    if wrapped is None:
        return frame
    at = compiled_objects.place_of(wrapped, caller)
    through = f"torch/_dynamo/{os.path.basename(frame.file)}"
    return dataclasses.replace(
        frame,
        function=at.function,
        file=at.file,
        line=at.line,
        resume_line=None,
        code_lines=(),
        torch_caller=through,
    )


def _frame(
    code: types.CodeType,
    evaluations: tuple[FrameEvaluation, ...],
    before: tuple[str, ...],
    known: Iterable[types.CodeType],
) -> ProgramFrame:
    name = eager_lines.plain_name(code.co_name)
    resumes = None
    first = code.co_firstlineno
    if eager_lines.is_resume(code):
        at = re.search(r"_at_(\d+)", code.co_name)
        resumes = int(at[1]) if at else first
        whole = (c.co_firstlineno for c in known if (c.co_filename, c.co_name) == (code.co_filename, name))
        first = max((line for line in whole if line <= first), default=first)
    return ProgramFrame(
        name, code.co_filename, first, resumes, eager_lines.code_ranges(code), evaluations, before
    )


def _sources(
    evaluations: Iterable[Evaluation], more: Iterable[types.CodeType] = ()
) -> tuple[tuple[Source, ...], tuple[Missing, ...]]:
    """Return the source texts of functions, and the reasons for missing ones."""
    every = (*(c for v in evaluations for c in (v.code, *v.lines)), *more)
    codes = dict.fromkeys(c for c in every if not _library(c.co_filename))
    sources = {code: dynamo.source_of(code) for code in codes}
    reasons = (dynamo.no_text(code) for code, source in sources.items() if source is None)
    return (
        tuple(dict.fromkeys(filter(None, sources.values()))),
        tuple(Missing(claims.SOURCES, reason) for reason in dict.fromkeys(filter(None, reasons))),
    )


def _library(file: str) -> bool:
    return is_library(file) or file.startswith("<eval_with_key>")
