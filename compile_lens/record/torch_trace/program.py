"""Program records from structured traces."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from compile_lens.versions import __version__

from ...errors import RecordError
from .. import claims, failed_guards, guard_values, messages
from ..benchmark import Profile
from ..breaks import BREAK, LIMIT, NOT_TRACED, Ending
from ..capture import Environment
from ..compilation import DynamicDim
from ..compile_events import paired_events
from ..graph import Frame
from ..messages import first_names
from ..missing import Missing
from ..program import (
    CALL_RAISED,
    COMPILED,
    FAILED,
    FUNCTION_RUNS_EAGERLY,
    NO_GRAPH,
    NOTHING,
    PROFILER,
    RAISED,
    SKIPPED,
    UNKNOWN,
    Break,
    FrameEvaluation,
    GuardOrigin,
    LibrarySkips,
    ProgramFrame,
    ProgramGraph,
    ProgramRecord,
    Recompilation,
    Specialization,
)
from ..program import (
    LIMIT as AT_LIMIT,
)
from . import graph_text
from .compiles import CompileLog, LoggedCompile, Place, compile_log
from .entries import Damage, entries
from .logged_breaks import logged_break, proved_breaks, with_graph
from .nearest import SIZES, LoggedVariant, nearest_variant, values

ENDED = "a log does not say how the program ended"

NOT_IN_A_LOG = (
    ("the lines of functions", "torch logs no lines that were traced, ran eagerly or were not reached"),
    ("columns of graph breaks", "torch logs only their lines"),
    (
        "frames that Dynamo evaluated and did not begin to compile",
        "a log begins where Dynamo numbers a compile",
    ),
    (
        "groups, tensors and lines of collectives, and DDP's buckets",
        "a log has the names of the collectives that Inductor's graphs issue, and no others",
    ),
    ("names of backends and threads", "torch logs neither"),
    (
        "new values that are no tensor's",
        "torch logs what a guard was made for; the value that it met, only where it became a symbol",
    ),
    ("what ran eagerly without a compile attempt", "torch logs no calls and no stances"),
    ("how long the program ran", "torch logs only its compiles"),
    ("the text of functions", "torch logs a line here and there; the files may have changed since"),
)
"""Facts about a program that no structured trace has, each with the reason."""


def program_from_log(lines: Iterable[str], name: str) -> ProgramRecord:
    """Return the record, called ``name``, of the program whose structured trace has these lines.

    Raises ``RecordError`` if no line is an entry of such a trace.
    """
    damage = Damage()
    log = compile_log(entries(lines, damage), damage)
    if not log.read:
        raise RecordError(
            f"{name!r} is not a structured trace of torch: no line is an entry of one; "
            "run the program with TORCH_TRACE=FOLDER set and give that folder"
        )
    whole = [c for c in log.compiles if c.metrics is not None and log.place_of(c) is not None]
    lost = [c.id for c in log.compiles if c.metrics is None]
    began = min((event[2] for event in log.events), default=0.0)
    old = not _is_with_breaks(whole)
    frames, graphs, elsewhere = _frames(whole, log, old)
    return ProgramRecord(
        name=name,
        environment=Environment(__version__, log.torch, log.triton, log.python, "", "", ""),
        ended=ENDED,
        frames=frames,
        graphs=graphs,
        library_skips=elsewhere,
        events=paired_events(log.events, began),
        missing=(
            *_not_in_log(frames),
            *([Missing(claims.BREAKS, OLD)] if old else ()),
            *_damaged(damage),
            *([Missing(claims.EVALUATIONS, "the log ends before a compile does")] if lost else ()),
            # Torch numbers the names of files from 0, and writes each where it first needs it.
            *(_NO_BEGINNING if log.files and 0 not in log.files else _INCOMPLETE if log.has_gaps() else ()),
        ),
        notes=_notes(lost, log.other_ranks),
        created=_timestamp(began),
        log="TORCH_TRACE",
        modules=log.code.modules(),
        ahead=log.code.ahead(),
        vllm=log.vllm.compilations(),
        graph_calls=log.code.calls,
        rank=log.rank,
    )


def program_of_profile(profile: Profile, name: str) -> ProgramRecord:
    """Return the record, called ``name``, of a program known only from a profiler's trace."""
    unknown = (
        claims.EVALUATIONS,
        claims.BREAKS,
        claims.RECOMPILES,
        claims.GRAPHS,
        claims.GUARDS,
        claims.TIMES,
    )
    return ProgramRecord(
        name=name,
        environment=Environment(__version__, "", "", "", "", "", ""),
        ended="a trace does not say how the program ended",
        missing=tuple(
            Missing(claim, "a profiler's trace holds what ran, and no compiles") for claim in unknown
        ),
        log=PROFILER,
        profile=profile,
    )


OLD = "the torch of this log logs no graph breaks: only those are listed that a function resumed after"
_CALLERS = Missing("the line that called a function", "torch logs it only for some compiles")


def _is_with_breaks(whole: list[LoggedCompile]) -> bool:
    """Return True if the torch version that wrote the log logs graph breaks."""
    metrics = (own.metrics or {} for own in whole)
    return (
        not whole
        or any(own.breaks for own in whole)
        or any(_BREAKS_LOGGED_SINCE in facts for facts in metrics)
    )


_BREAKS_LOGGED_SINCE = "dynamo_cumulative_compile_time_us"
"""A metric in the logs of every torch version that logs graph breaks."""


def _not_in_log(frames: Iterable[ProgramFrame]) -> list[Missing]:
    missing = [Missing(*one) for one in NOT_IN_A_LOG]
    called = all(evaluation.caller is not None for frame in frames for evaluation in frame.evaluations)
    return missing if called else [*missing, _CALLERS]


def _timestamp(microseconds: float) -> str:
    if not 0 < microseconds < 1e17 or not math.isfinite(microseconds):
        return ""
    return datetime.datetime.fromtimestamp(int(microseconds / 1e6), datetime.timezone.utc).isoformat()


def _damaged(damage: Damage) -> list[Missing]:
    texts, entries_of = (Counter(counts) for counts in (damage.payloads, damage.entries))
    counts = (
        (
            damage.lines,
            "lines of the log",
            "they belong to no entry: the file is cut off, or mixed with another",
        ),
        (texts.total(), f"texts of entries{_kinds(texts)}", "their checksums say that they are not whole"),
        (entries_of.total(), f"entries{_kinds(entries_of)}", "their content is not as torch writes it"),
    )
    not_read = [Missing(f"{count} {what}", why) for count, what, why in counts if count]
    lost = set(_ALL_CLAIMS if damage.heads else ())
    lost.update(claim for kind in entries_of for claim in _CLAIMS_BY_KIND.get(kind, ()))
    lost.update(claim for kind in texts if kind in _PAYLOAD_REQUIRED_KINDS for claim in _CLAIMS_BY_KIND[kind])
    return not_read + [
        Missing(claim, "a part of the log that may hold some cannot be read") for claim in sorted(lost)
    ]


def _kinds(counts: Counter[str]) -> str:
    return f" ({', '.join(sorted(counts)[:4])})" if counts else ""


_CLAIMS_BY_KIND = {
    "dynamo_start": (claims.EVALUATIONS,),
    "compilation_metrics": (claims.EVALUATIONS,),
    "dynamo_graph_break_reason": (claims.BREAKS,),
    "recompile_reasons": (claims.RECOMPILES,),
    "dynamo_output_graph": (claims.GRAPHS,),
    "dynamo_cpp_guards_str": (claims.GUARDS,),
    "chromium_event": (claims.TIMES, claims.CACHES),
}
"""Claims that are incomplete if an entry of a kind is lost."""
_PAYLOAD_REQUIRED_KINDS = ("dynamo_cpp_guards_str", "chromium_event")
"""Kinds of entries that are lost if their payload is unreadable."""
_ALL_CLAIMS = tuple(dict.fromkeys(claim for of_kind in _CLAIMS_BY_KIND.values() for claim in of_kind))

_NO_BEGINNING = tuple(Missing(claim, "the beginning of the log is cut off") for claim in _ALL_CLAIMS)

_INCOMPLETE = tuple(
    Missing(claim, "lines are missing within the log: torch's numbers have gaps") for claim in _ALL_CLAIMS
)


def _notes(lost: list[str], other_ranks: set[int]) -> tuple[str, ...]:
    notes = []
    if lost:
        notes.append(f"the log ends before these compiles do, so they are left out: {first_names(lost, 4)}")
    if other_ranks:
        ranks = first_names([str(rank) for rank in sorted(other_ranks)], 8)
        notes.append(f"the log has entries of other ranks too, which are left out: rank {ranks}")
    return tuple(notes)


def _frames(
    whole: list[LoggedCompile], log: CompileLog, old: bool
) -> tuple[tuple[ProgramFrame, ...], tuple[ProgramGraph, ...], tuple[LibrarySkips, ...]]:
    graphs: list[ProgramGraph] = []
    by_code: dict[tuple[tuple[str, int], Place], list[FrameEvaluation]] = {}
    variants: dict[str, LoggedVariant] = {}
    skips, broken = 0, list[Break]()
    proved = proved_breaks(whole, log)
    for own in whole:
        place = log.place_of(own)
        assert place is not None
        if log.of_torch and place[0].startswith(log.of_torch) and _outcome(own, False, old) == NOTHING:
            skips += 1
            broken += (logged_break(text, place, []) for text in own.breaks)
            continue
        number = sum(map(len, by_code.values()))
        new_graphs = _graphs(own, len(graphs))
        evaluation = _evaluation(own, place, number, new_graphs, log, variants, old)
        if id(own) in proved and not evaluation.breaks:
            evaluation = dataclasses.replace(evaluation, breaks=(with_graph(proved[id(own)], new_graphs),))
        if evaluation.outcome in (COMPILED, NO_GRAPH):
            variants[own.id] = LoggedVariant(evaluation, own.guards)
        graphs += new_graphs
        by_code.setdefault((own.code, place), []).append(evaluation)
    places = [place for _, place in by_code]
    frames = tuple(_frame(place, tuple(evaluations), places) for (_, place), evaluations in by_code.items())
    elsewhere = (LibrarySkips(_REASON_NOT_LOGGED, skips, tuple(broken)),) if skips else ()
    return frames, tuple(graphs), elsewhere


_REASON_NOT_LOGGED = "no operation to compile (the log does not say why)"


def _frame(place: Place, evaluations: tuple[FrameEvaluation, ...], places: list[Place]) -> ProgramFrame:
    file, function, line = place
    name, resumes = messages.plain_name(function), messages.resume_line(function)
    if resumes is not None:
        line = max((at for of, own, at in places if (of, own) == (file, name) and at <= line), default=line)
    if name == "inner" and file.replace("\\", "/").endswith(_WRAPPER_FILE):
        return ProgramFrame(_NAME_NOT_LOGGED, "", 0, evaluations=evaluations, torch_caller=_WRAPPER_FILE)
    return ProgramFrame(name, file, line, resumes, evaluations=evaluations)


_WRAPPER_FILE = "torch/_dynamo/external_utils.py"
"""Torch's file with the wrapper function through which it calls callables that it cannot compile directly."""
_NAME_NOT_LOGGED = "a callable (the log does not say which)"


_BACKEND_ERRORS = ("BackendCompilerFailed", "InductorError", "BackendError")


def _graphs(own: LoggedCompile, first: int) -> list[ProgramGraph]:
    metrics = own.metrics or {}
    texts = own.graphs
    if str(metrics.get("fail_type") or "") in _BACKEND_ERRORS:  # the backend failed on the last graph
        texts = texts[:-1]
    counted, spent = metrics.get("graph_op_count"), metrics.get("backend_compile_time_s")
    alone = len(texts) == 1
    guarded = {guard.source for guard in graph_text.guards(own.guards, (), "")}
    return [
        ProgramGraph(
            first + i,
            own.id,
            counted
            if alone and type(counted) is int
            else None
            if text is None
            else graph_text.operators(text),
            () if text is None else graph_text.inputs(text, (*own.sources, *guarded)),
            seconds=_seconds(spent) if alone else None,
        )
        for i, (_, text) in enumerate(texts)
    ]


def _seconds(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and math.isfinite(value) else None


def _evaluation(
    own: LoggedCompile,
    place: Place,
    number: int,
    graphs: list[ProgramGraph],
    log: CompileLog,
    variants: dict[str, LoggedVariant],
    old: bool,
) -> FrameEvaluation:
    metrics = own.metrics or {}
    breaks = tuple(logged_break(text, place, graphs) for text in own.breaks)
    outcome = _outcome(own, bool(graphs), old)
    if outcome == RAISED:
        breaks = tuple(dataclasses.replace(one, outcome=CALL_RAISED, consequence="") for one in breaks)
    compiled = outcome in (COMPILED, NO_GRAPH)
    attempt = own.graphs[-1][0] if own.graphs else own.attempts
    made_symbols = (facts for of, facts in own.symbols if of == attempt)
    fixed = [facts for of, facts in own.fixed if of == attempt]
    dynamic = graph_text.dynamic_dims(made_symbols, {str(facts["symbol"]) for facts in fixed})
    guards = graph_text.guards(own.guards, log.files.values(), log.of_torch) if compiled else ()
    if own.guards:  # not logged for a compile that raised or was abandoned
        dynamic = guard_values.with_constraints(dynamic, (g.text for g in guards if g.kind in SIZES))
    reason = str(metrics.get("fail_reason") or "")
    limit = re.search(r"exceeding the (\w+)", reason) if outcome == AT_LIMIT else None
    return FrameEvaluation(
        outcome=outcome,
        id=own.id,
        caller=_caller(own, log),
        cause=None if compiled else _ending(metrics, reason, breaks, place, outcome),
        restarts=own.attempts,
        graphs=tuple(g.number for g in graphs),
        breaks=breaks,
        recompilation=_recompilation(own, dynamic, guards, log, variants),
        limit=limit[1] if limit else "",
        guards=guards,
        guard_count=_guard_count(metrics) if compiled else None,
        dynamic=dynamic,
        specializations=_specialized(fixed, log) if compiled else (),
        seconds=_seconds(metrics.get("entire_frame_compile_time_s")),
        number=number,
    )


def _outcome(own: LoggedCompile, graphs: bool, old: bool) -> str:
    metrics = own.metrics or {}
    type_, reason = str(metrics.get("fail_type") or ""), str(metrics.get("fail_reason") or "")
    # "has_guarded_code" is also set for code without an operation, which is skipped.
    if not type_ and (own.guarded or metrics.get("guard_count") is not None):
        return COMPILED if graphs else NO_GRAPH
    if "recompile limit exceeded" in reason or "RecompileLimitExceeded" in type_:
        return AT_LIMIT
    if type_ in ("", "SkipFrame"):
        return NOTHING if not reason or messages.is_nothing_to_compile(reason) else SKIPPED
    if metrics.get("config_suppress_errors"):
        return SKIPPED if type_ in _BREAK_ERRORS else FAILED
    # Otherwise the error reaches the program, unless Dynamo logged it as a graph break.
    if own.breaks and type_ not in _BACKEND_ERRORS:
        return SKIPPED
    return FAILED if old and type_ in _BREAK_ERRORS else RAISED


_BREAK_ERRORS = ("Unsupported", "UserError")


def _ending(
    metrics: dict[str, Any], reason: str, breaks: tuple[Break, ...], place: Place, outcome: str
) -> Ending:
    given_up = [b for b in breaks if b.outcome == FUNCTION_RUNS_EAGERLY]
    if given_up and outcome == SKIPPED:
        return given_up[-1].ending
    type_ = str(metrics.get("fail_type") or "")
    kind = LIMIT if outcome == AT_LIMIT else BREAK if type_ in _BREAK_ERRORS else NOT_TRACED
    file, line = metrics.get("fail_user_frame_filename"), metrics.get("fail_user_frame_lineno")
    at = Frame(place[0], place[2], messages.plain_name(place[1]))
    if isinstance(file, str) and type(line) is int:
        at = Frame(file, line, at.function if file == at.file else "")
    return messages.ending(reason, (at,), kind) if reason else Ending(kind, _REASON_NOT_LOGGED)


def _caller(own: LoggedCompile, log: CompileLog) -> Frame | None:
    """Return the program's line that called the code; ``None`` if unknown."""
    at = log.caller_of(own)
    return None if at is None else Frame(at[0], at[1], messages.plain_name(at[2]))


def _guard_count(metrics: dict[str, Any]) -> int | None:
    """Return the number of guards as a watch counts it; torch's count has all shape guards as one."""
    every, sizes = metrics.get("guard_count"), metrics.get("shape_env_guard_count")
    return every - 1 + sizes if type(every) is int and type(sizes) is int and every else None


def _specialized(fixed: list[dict[str, Any]], log: CompileLog) -> tuple[Specialization, ...]:
    """Return the symbols that were specialized to one value, each with the program's line that did so."""
    specializations = []
    for facts in fixed:
        own = [at for at in facts["user_stack"] if not (log.of_torch and at.file.startswith(log.of_torch))]
        line = dataclasses.replace(own[-1], function=messages.plain_name(own[-1].function)) if own else None
        for source in (facts.get("sources") or ())[:1]:
            known = messages.plain_source(str(source)), str(facts["symbol"]), str(facts.get("value", ""))
            specializations.append(Specialization(*known, line))
    return tuple(specializations)


def _recompilation(
    own: LoggedCompile,
    dynamic: tuple[DynamicDim, ...],
    guards: tuple[GuardOrigin, ...],
    log: CompileLog,
    variants: dict[str, LoggedVariant],
) -> Recompilation | None:
    if not own.again:
        return None
    variant = LoggedVariant(FrameEvaluation(COMPILED, dynamic=dynamic), own.guards) if own.guards else None
    now = values(variant) if variant is not None else {}
    failed = []
    for text in own.reasons or ():
        guard = failed_guards.failed_guard(text, lambda _: "")
        of_text = graph_text.with_full_path(guard.line, log.files.values(), {})
        older = variants.get(guard.id)
        size = now.get(guard.source) if ".size(" in guard.source else None
        seen = next((d.observed for d in dynamic if messages.plain_source(d.source) == guard.source), "")
        new = guard.new or (seen if size is None else str(size))
        guard = dataclasses.replace(guard, line=of_text, new=new)
        failed.append(messages.with_guard_line(guard, older.evaluation.guards if older is not None else ()))
    count = (own.metrics or {}).get("cache_size")
    at = UNKNOWN if own.reasons is None else nearest_variant(failed, variants, variant)
    known = Recompilation(
        tuple(failed), count if type(count) is int else len(failed), log.limit, nearest_entry=at
    )
    changed = known.change
    older_variant = variants.get(changed.id) if changed is not None else None
    earlier = {d.source for d in older_variant.evaluation.dynamic} if older_variant is not None else set()
    became = tuple(d for d in dynamic if older_variant is not None and d.source not in earlier)
    asks = messages.specializing_line(changed, dynamic, guards) if changed is not None else None
    return dataclasses.replace(known, dynamic=became, specializing_line=asks)
