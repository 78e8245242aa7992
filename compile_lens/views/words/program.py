"""A watched program in words: how it went, what made it slower, and what to try."""

from __future__ import annotations

import dataclasses

from compile_lens.measures.causes import (
    CACHE_BYPASSED,
    COMPILE_FAILED,
    COMPILE_RAISED,
    COMPILE_TIME,
    EAGER_REST,
    GRAPH_BREAK,
    NOT_EVALUATED,
    NOTHING_AT_FIRST,
    RECOMPILE_LIMIT,
    RECOMPILED,
    RUNS_EAGERLY,
    Cause,
)
from compile_lens.measures.program import (
    Counts,
    counts,
    is_library,
    is_partly_compiled,
    program_line,
    sites_are_lower_bound,
)
from compile_lens.measures.timing import seconds_text
from compile_lens.record import claims
from compile_lens.record.benchmark import Profile
from compile_lens.record.breaks import SKIPPED_BEFORE, STANCE
from compile_lens.record.compilation import DynamicDim
from compile_lens.record.failed_guards import STATE
from compile_lens.record.logged_code import EXPORT
from compile_lens.record.messages import first_names, plain_name, plain_source, without_stack_names
from compile_lens.record.program import (
    COMPILED,
    ERROR_ON_RECOMPILE,
    FAIL_ON_RECOMPILE,
    NO_GRAPH,
    PROFILER,
    UNKNOWN,
    FailedGuard,
    FrameEvaluation,
    ProgramRecord,
    Recompilation,
)

from .outcome import reason
from .quantities import duration, observed, plural
from .remedies import MOST, for_each, of_library, takes, two_types
from .remedies import place as place
from .remedies import to_try as to_try

NO_OPERATION = "Dynamo met no tensor operation, and does not look at these functions again"
"""Torch leaves to Python, for good, what it found nothing in: a later call may well compute."""


_FOR_GOOD = "with nothing to compile in a call, and eager in each after it"
_LEFT_BEFORE = "skipped before the watch"
_UNTRIED = "run eagerly without a compile attempt"


def state(program: ProgramRecord) -> str:
    """``compiled``, ``partial`` or ``nothing``, as of a capture."""
    if program.log == PROFILER and program.profile is not None:
        return "partial" if program.profile.graphs or program.profile.regions else "nothing"
    if not any(v.outcome in (COMPILED, NO_GRAPH) for v in program.evaluations):
        if program.lacks(claims.EVALUATIONS) or (program.ahead and program.evaluations):
            return "partial"
        return "compiled" if program.ahead else "nothing"
    if eager_parts_unknown(program):
        return "partial"
    own = counts(program)
    left = (
        own.breaks
        or own.skipped
        or own.partly_compiled
        or own.at_limit
        or own.raised
        or own.eager_frames
        or own.permanently_eager
    )
    return "partial" if left else "compiled"


def eager_parts_unknown(program: ProgramRecord) -> str:
    """Why it is not known, or only in part, what ran eagerly; ``""`` where all of it was seen."""
    return program.lacks(claims.EVALUATIONS, claims.BREAKS, claims.SKIP_REASONS)


def verdict(program: ProgramRecord) -> str:
    """The result for a program in one sentence without a full stop."""
    if program.log == PROFILER and program.profile is not None:
        return measured(program.profile)
    apart = "; ".join(filter(None, (_ahead(program), _vllm(program))))
    if program.evaluations or program.lacks(claims.EVALUATIONS) or not apart:
        return f"{_verdict(program)}; {apart}" if apart else _verdict(program)
    return apart


def measured(profile: Profile) -> str:
    """What a trace holds, in a sentence without a full stop."""
    calls = sum(graph.calls for graph in profile.graphs)
    graphs = f"{plural(len(profile.graphs), 'compiled graph')} ran in {plural(calls, 'call')}"
    parts = [graphs if profile.graphs else "no run of a compiled graph"]
    if profile.regions and not profile.graphs:
        parts = [f"{plural(len(profile.regions), 'compiled region')}, and no run of a graph in it"]
    if profile.kernels:
        launches = sum(one.count for one in profile.kernels)
        seconds = seconds_text(sum(one.seconds for one in profile.kernels))
        parts.append(
            f"{plural(launches, 'kernel or copy', 'kernels and copies')} on the device took {seconds}"
        )
    elif profile.operators:
        operators = sum(one.count for one in profile.operators)
        parts.append(f"{plural(operators, 'operator')} on the host")
    return "; ".join(parts)


def _vllm(program: ProgramRecord) -> str:
    """What vLLM compiled of models; ``""`` where it did not take part."""
    pieces = [piece for model in program.vllm for piece in model.pieces]
    if not pieces:
        return f"vLLM compiled no piece of {plural(len(program.vllm), 'model')}" if program.vllm else ""
    ranges = {piece.compile_range for piece in pieces}
    return f"vLLM compiled {plural(len(pieces), 'piece')} for {plural(len(ranges), 'range')} of sizes"


def _ahead(program: ProgramRecord) -> str:
    """What was compiled or exported without a call."""
    exported = sum(one.kind == EXPORT for one in program.ahead)
    compiled = [one for one in program.ahead if one.kind != EXPORT]
    parts = [plural(exported, "exported program")] if exported else []
    if compiled:
        kinds = first_names(dict.fromkeys(one.kind for one in compiled), MOST)
        modules = sum(len(one.modules) for one in compiled)
        kernels = sum(len(program.modules[n].kernels) for one in compiled for n in one.modules)
        made = (plural(modules, "generated module"), plural(kernels, "kernel") if kernels else "")
        what = f"{plural(len(compiled), 'graph')} compiled by {kinds} without a call"
        parts.append(", ".join(filter(None, (what, *made))))
    return "; ".join(parts)


def _verdict(program: ProgramRecord) -> str:
    own = counts(program)
    if state(program) == "nothing":
        if not program.evaluations and program.log:
            return "the log holds no compile"
        if not program.evaluations:
            before = sum(len(f.prior_ids) for f in program.prior_frames)
            known = f"; {plural(before, 'variant was', 'variants were')} compiled before" if before else ""
            left = "".join(f"; {one}" for one in _left(program, own))
            return f"nothing was compiled while it was watched{known}{left}"
        left = ", ".join(_left(program, dataclasses.replace(own, permanently_eager=0)))
        return f"nothing was compiled: {left or NO_OPERATION}"
    if not any(v.outcome in (COMPILED, NO_GRAPH) for v in program.evaluations):
        return ", ".join(("what was compiled was not seen", *_left(program, own)))
    graphs = program.lacks(claims.GRAPHS)
    parts = [observed(own.graphs, "graph", graphs) or plural(own.graphs, "graph")]
    if own.compilations != own.graphs and not graphs:
        without = f", {own.without_graph} without a graph" if own.without_graph else ""
        parts[0] += f" in {plural(own.compilations, 'compilation')}{without}"
    breaks = observed(own.breaks, "graph break", program.lacks(claims.BREAKS))
    if breaks and own.breaks:
        breaks += f" at {in_source(program, own.break_sites)} in the source"
    recompiles = observed(own.recompiles, "recompile", program.lacks(claims.RECOMPILES))
    rest = ("what else ran eagerly was not seen",) if eager_parts_unknown(program) else ()
    return ", ".join((*parts, *filter(None, (breaks, recompiles)), *_left(program, own), *rest))


def in_source(program: ProgramRecord, places: int) -> str:
    """The number of places of graph breaks in the source; a lower bound where columns are not known."""
    least = sites_are_lower_bound(program) or program.lacks(claims.BREAKS)
    return f"{'at least ' if least else ''}{plural(places, 'place')}"


def _left(program: ProgramRecord, own: Counts) -> list[str]:
    before = {(u.file, u.line, u.function) for u in program.eager_frames if u.kind == SKIPPED_BEFORE}
    others = [one for one in program.eager_frames if (one.file, one.line, one.function) not in before]
    doubt = "" if any(one.certain or one.kind == STANCE for one in others) else _AS_FAR
    kinds = [
        (own.skipped, "function that runs eagerly", "functions that run eagerly"),
        (own.partly_compiled, "partly eager", "partly eager"),
        (own.at_limit, "at its recompile limit", "at their recompile limit"),
        (own.raised, "compile that raised", "compiles that raised"),
        (own.permanently_eager, f"function {_FOR_GOOD}", f"functions {_FOR_GOOD}"),
        (len(before), f"function {_LEFT_BEFORE}", f"functions {_LEFT_BEFORE}"),
        (own.eager_frames - len(before), f"function {_UNTRIED}{doubt}", f"functions {_UNTRIED}{doubt}"),
    ]
    return [plural(count, one, many) for count, one, many in kinds if count]


def changed(failed: FailedGuard) -> str:
    """The value that a guard was compiled for and the one that failed it, in a few words."""
    return without_stack_names(_changed(failed))


def _changed(failed: FailedGuard) -> str:
    if failed.source and failed.new:
        if failed.old:
            if types := two_types(failed):
                return f"{failed.source} was the {types[0]} {failed.old}, now the {types[1]} {failed.new}"
            verb = "were" if failed.text.startswith(STATE) and " and " in failed.source else "was"
            return f"{failed.source} {verb} {failed.old}, now {failed.new}"
        verb = "are" if ", " in failed.source else "is"
        return f"{failed.source} {verb} {failed.new}, compiled for {plain_source(failed.text)}"
    if failed.source and failed.old:
        return f"{failed.source} was {failed.old}"
    return failed.text


def _is_constant(dim: DynamicDim) -> bool:
    """Return True for a symbol that what the function asked of it made a number again."""
    return dim.symbol.replace(".", "").isdecimal()


def again(recompilation: Recompilation, made: bool = True) -> str:
    """The reason for a recompile, the number of recompiles, and what became a symbol."""
    newest = changed(recompilation.change) if recompilation.change is not None else _none(recompilation)
    dims = [
        without_stack_names(f"{plain_source(d.source)} became {d.symbol}, {takes(d)}")
        for d in recompilation.dynamic
        if not _is_constant(d)
    ]
    if not made and (recompilation.cache_entries < recompilation.limit or not recompilation.limit):
        return "; ".join((newest, *dims, f"none of {plural(recompilation.cache_entries, 'variant')} fits"))
    if not recompilation.limit:  # the log of it does not say
        return "; ".join((newest, *dims, f"cache entry {recompilation.cache_entries + 1}"))
    most = f"cache entry {recompilation.cache_entries + 1} of at most {recompilation.limit}"
    if recompilation.cache_entries >= recompilation.limit:
        most = f"it has {recompilation.cache_entries} cache entries, and may have {recompilation.limit}"
    return "; ".join((newest, *dims, most))


def _none(recompilation: Recompilation) -> str:
    if not recompilation.failed_guards:
        unread = recompilation.nearest_entry == UNKNOWN
        return "the log does not say what failed" if unread else "torch found no guard that failed"
    return (
        f"which of {plural(len(recompilation.failed_guards), 'variant')} it came nearest to is not in the log"
    )


def also(recompilation: Recompilation) -> str:
    """The reasons why the call did not fit the other variants; ``""`` where nothing else changed."""
    forms: dict[str, list[FailedGuard]] = {}
    for one in recompilation.other_guards:
        forms.setdefault(one.source or one.text, []).append(one)
    if recompilation.change is not None:
        forms.pop(recompilation.change.source or recompilation.change.text, None)
    parts = [f"{first_names((one.id for one in of), MOST)}: {changed(of[0])}" for of in forms.values()]
    more = f"; and {plural(len(parts) - MOST, 'reason')} more" if len(parts) > MOST else ""
    return f"also {'; '.join(parts[:MOST])}{more}" if parts else ""


HEADS = {
    COMPILE_FAILED: "could not be compiled: the compiler or the backend raised",
    COMPILE_RAISED: "could not be compiled: the call raised",
    RECOMPILE_LIMIT: "reached its limit of recompiles: each call that fits no variant runs eagerly",
    RUNS_EAGERLY: "runs eagerly as a whole",
    NOTHING_AT_FIRST: "had nothing to compile in a call: each call after it runs eagerly",
    NOT_EVALUATED: f"was {_UNTRIED}",
    EAGER_REST: "was compiled up to an earlier line, and runs eagerly from there",
    GRAPH_BREAK: "broke the graph",
    RECOMPILED: "was compiled again",
    CACHE_BYPASSED: "is compiled anew at each start of the program",
    COMPILE_TIME: "went into compiling",
}
"""What each kind of cause did."""


def head(cause: Cause, program: ProgramRecord) -> str:
    """The effect of a cause, its place and count."""
    if cause.kind == COMPILE_TIME:
        if not program.seconds:
            return f"{duration(cause.seconds)} {HEADS[COMPILE_TIME]}"
        share = cause.seconds / program.seconds
        return f"{duration(cause.seconds)} of {duration(program.seconds)} ({share:.0%}) {HEADS[COMPILE_TIME]}"
    times = f", {cause.count} times" if cause.count > 1 else ""
    spent = f", {duration(cause.seconds)} of compiling" if cause.seconds else ""
    what = f"{place(cause.place)} in {cause.function}" if cause.function else place(cause.place)
    did = HEADS[cause.kind]
    if cause.kind == CACHE_BYPASSED and cause.place is None:
        what = "a graph of an unknown function"
    if cause.after_break:
        what = f"what follows {what}"
    elif (
        cause.kind == GRAPH_BREAK
        and cause.place is not None
        and plain_name(cause.place.function) != cause.function
    ):
        what = f"{place(cause.place)} in {plain_name(cause.place.function)}"
        did = f"{did} of {cause.function}"
    if not cause.certain:
        did = f"{_unasked(cause)}{_AS_FAR}"
        if cause.eager_kind == STANCE:  # so many calls, and not so many that ran eagerly
            did, times = f"was called{times.replace(',', '')} {_PERHAPS}", ""
    elif cause.eager_kind:
        did = _unasked(cause)
    return f"{what} {did}{times}{spent}"


def _unasked(cause: Cause) -> str:
    return f"was {_LEFT_BEFORE if cause.eager_kind == SKIPPED_BEFORE else _UNTRIED}"


_AS_FAR = ", as far as is known"
_PERHAPS = "where nothing may be compiled: those calls that fitted no compiled variant ran eagerly"


def because(cause: Cause) -> str:
    """The reason in torch's words or by the guard that failed; ``""`` where there is none."""
    if cause.kind == NOTHING_AT_FIRST:
        return (
            "Dynamo met no tensor operation, and does not look at the function again: torch runs no variant of it any "
            "more, also none that it compiled before"
        )
    if cause.kind == CACHE_BYPASSED and cause.ending is not None:
        if _AUTOCAST in cause.ending.reason:
            return f"the graph enters autocast itself, and the cache of {cause.cache} takes no such graph"
        return f"the cache of {cause.cache} does not take its graph: {' '.join(cause.ending.reason.split())}"
    if cause.recompilation is not None and _of_forms(cause):
        if cause.limit == FAIL_ON_RECOMPILE and cause.ending is not None:
            return f"{reason(cause.ending).what}: {again(cause.recompilation, made=False)}"
        if cause.limit == ERROR_ON_RECOMPILE:
            setting = f"torch._dynamo.config.{ERROR_ON_RECOMPILE}"
            words = again(cause.recompilation, made=False)
            return f"{setting} is set, so that a call which fits no variant raises: {words}"
        if cause.kind == COMPILE_RAISED:
            reached = f"{cause.limit} was reached, and fullgraph=True lets no call run eagerly"
            return f"{reached}: {_at_limit(cause, cause.recompilation)}"
        if cause.kind == RECOMPILE_LIMIT:
            return _at_limit(cause, cause.recompilation)
        others = _others(cause)
        also = f"; another time {'; '.join(others[:MOST])}" if others else ""
        return f"{again(cause.recompilation)}{_shared(cause)}{also}"
    if cause.ending is None:
        return ""
    reason_of = reason(cause.ending)
    met = (
        f"{place(cause.origin_line)} in {plain_name(cause.origin_line.function)}"
        if cause.origin_line is not None
        else ""
    )
    return ": ".join(x for x in (met, reason_of.what, reason_of.why) if x)


def _at_limit(cause: Cause, recompilation: Recompilation) -> str:
    """The reason why a call reached the limit, and the values that the variants were compiled for."""
    reason_of = again(recompilation, made=False)
    if (
        recompilation.cache_entries < recompilation.limit
    ):  # another limit than that of forms for the same objects
        reason_of = f"{reason_of}, and {cause.limit} lets it have no more"
    reason_of += _shared(cause)
    others = _others(cause)
    more = f"; and {len(others) - MOST} more" if len(others) > MOST else ""
    return f"{reason_of}; variants were made for {'; '.join(others[:MOST])}{more}" if others else reason_of


def _shared(cause: Cause) -> str:
    """The compiled functions that share the entries of a code; ``""`` where there is one, or that is not known."""
    if cause.sharing < 2:
        return ""
    return f"; at least {cause.sharing} compiled functions share this code, and so its cache entries and their limit"


def _others(cause: Cause) -> list[str]:
    """The other changes, at the other recompiles."""
    return [changed(other.change) for other in cause.other_recompilations if other.change is not None]


def _for_each(cause: Cause, torch: str) -> str:
    """The remedy for each thing that variants were compiled for: mending one alone leaves the others at the limit."""
    tried: dict[str, list[str]] = {}
    for recompilation in filter(None, (cause.recompilation, *cause.other_recompilations)):
        if recompilation.change is not None and (remedy := _to_try(cause, recompilation, torch)):
            tried.setdefault(remedy, []).append(recompilation.change.source or recompilation.change.text)
    if len(tried) < 2:
        return next(iter(tried), "")
    each = [f"for {first_names(of, MOST)}: {remedy}" for remedy, of in tried.items()]
    more = f"; and for {plural(len(each) - MOST, 'thing')} more" if len(each) > MOST else ""
    return f"{'; '.join(each[:MOST])}{more}"


def _to_try(cause: Cause, recompilation: Recompilation, torch: str) -> str:
    library = cause.place is not None and is_library(cause.place)
    own = for_each(torch, cause.sharing)
    return to_try(recompilation, cause.torch_caller, cause.after_break, own, library)


def _of_forms(cause: Cause) -> bool:
    """Return True for a cause that is a recompile itself, not something met during one."""
    return cause.kind in (RECOMPILE_LIMIT, RECOMPILED) or (cause.kind == COMPILE_RAISED and bool(cause.limit))


def advice(cause: Cause, torch: str = "") -> str:
    """The remedy: torch's own hint, or one for what changed. ``torch`` is the version that compiled."""
    if cause.kind == COMPILE_TIME:
        return ""
    if cause.kind == CACHE_BYPASSED:
        autocast = cause.ending is not None and _AUTOCAST in cause.ending.reason
        return (
            "enter autocast around the call of the compiled function, not in it: the graph is then traced under "
            "autocast, and can be cached"
            if autocast
            else ""
        )
    if cause.kind == NOTHING_AT_FIRST:
        what = "the rest" if cause.after_break else cause.function
        return (
            f"if {what} computes in other calls, compile that part as a function of its own, and decide outside of it "
            "whether to call it"
        )
    if cause.recompilation is not None and _of_forms(cause):
        at_limit = bool(cause.limit) and cause.limit not in (FAIL_ON_RECOMPILE, ERROR_ON_RECOMPILE)
        tried = _for_each(cause, torch) if at_limit else _to_try(cause, cause.recompilation, torch)
        if tried:
            return tried
    if cause.caller is not None and cause.place is not None:
        alone = cause.ending is not None and program_line(cause.ending.frames) is None
        return of_library(cause.place, cause.caller, cause.other_callers, alone)
    return reason(cause.ending).hint if cause.ending is not None else ""


_AUTOCAST = "_enter_autocast"
"""Torch's operator in a graph that enters autocast."""


def of_torch(cause: Cause) -> bool:
    """Return True if the remedy is torch's own hint, which knows the kind of a reason and not the program."""
    remedy = advice(cause)
    if cause.ending is not None and cause.ending.frames and is_library(cause.ending.frames[-1]):
        return False
    if cause.kind == NOT_EVALUATED or cause.limit == FAIL_ON_RECOMPILE or not remedy:
        return False
    hints = [cause.recompilation.change.hint] if cause.recompilation and cause.recompilation.change else []
    return remedy in (*hints, reason(cause.ending).hint if cause.ending is not None else "")


def outcome(visit: FrameEvaluation) -> str:
    """The outcome of a frame evaluation in a few words."""
    if is_partly_compiled(visit):
        return "compiled in part"
    return visit.outcome
