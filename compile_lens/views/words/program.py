"""Words for a watched program: its outcome, what slowed it down, and what to try."""

from __future__ import annotations

import dataclasses

from compile_lens.measures.compile_time import compiled_without_a_call
from compile_lens.measures.profile import of_readable
from compile_lens.measures.program import (
    Counts,
    counts,
    is_partly_compiled,
    sites_are_lower_bound,
)
from compile_lens.measures.timing import seconds_text
from compile_lens.record import claims
from compile_lens.record.benchmark import Profile
from compile_lens.record.breaks import SKIPPED_BEFORE, STANCE
from compile_lens.record.logged_code import EXPORT
from compile_lens.record.messages import first_names
from compile_lens.record.program import (
    COMPILED,
    NO_GRAPH,
    PROFILER,
    FrameEvaluation,
    ProgramRecord,
)

from .causes import AS_FAR, LEFT_BEFORE, UNTRIED
from .causes import advice as advice
from .causes import again as again
from .causes import also as also
from .causes import because as because
from .causes import changed as changed
from .causes import head as head
from .causes import of_torch as of_torch
from .quantities import observed, plural
from .remedies import MAX_ITEMS
from .remedies import of_dimensions as of_dimensions
from .remedies import place as place
from .remedies import to_try as to_try

NO_OPERATION = "Dynamo met no tensor operation, and does not look at these functions again"
"""Torch permanently skips a function without tensor operations, although a later call may have some."""


_FOR_GOOD = "with nothing to compile in a call, and eager in each after it"


def state(program: ProgramRecord) -> str:
    """Return ``compiled``, ``partial`` or ``nothing``, as for a capture."""
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
    """Return why eagerly run parts are not fully known; ``""`` if all were observed."""
    return program.lacks(claims.EVALUATIONS, claims.BREAKS, claims.SKIP_REASONS)


def verdict(program: ProgramRecord) -> str:
    """Return the result for a program in one sentence without a full stop."""
    if program.log == PROFILER and program.profile is not None:
        return measured(program.profile)
    apart = "; ".join(filter(None, (_ahead(program), _vllm(program))))
    if program.evaluations or program.lacks(claims.EVALUATIONS) or not apart:
        return f"{_verdict(program)}; {apart}" if apart else _verdict(program)
    return apart


def measured(profile: Profile) -> str:
    """Return the contents of a trace in a sentence without a full stop."""
    calls = sum(graph.calls for graph in profile.graphs)
    graphs = f"{plural(len(profile.graphs), 'compiled graph')} ran in {plural(calls, 'call')}"
    parts = [graphs if profile.graphs else f"no run of a compiled graph{of_readable(profile.missing)}"]
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
    """Return what vLLM compiled of models, in words; ``""`` if it was not used."""
    pieces = [piece for model in program.vllm for piece in model.pieces]
    passes = sum(len(model.passes) for model in program.vllm)
    if not pieces and passes:
        return (
            f"vLLM ran {plural(passes, 'pass', 'passes')} over graphs of which the log does not say the piece"
        )
    if not pieces:
        return f"vLLM compiled no piece of {plural(len(program.vllm), 'model')}" if program.vllm else ""
    ranges = {piece.compile_range for piece in pieces}
    return f"vLLM compiled {plural(len(pieces), 'piece')} for {plural(len(ranges), 'range')} of sizes"


def _ahead(program: ProgramRecord) -> str:
    """Return what was compiled or exported ahead of time, in words."""
    exported = sum(one.kind == EXPORT for one in program.ahead)
    compiled = [one for one in program.ahead if one.kind != EXPORT]
    parts = [plural(exported, "exported program")] if exported else []
    if compiled:
        kinds = first_names(dict.fromkeys(one.kind for one in compiled), MAX_ITEMS)
        modules = sum(len(one.modules) for one in compiled)
        kernels = sum(len(program.modules[n].kernels) for one in compiled for n in one.modules)
        generated = (plural(modules, "generated module"), plural(kernels, "kernel") if kernels else "")
        what = f"{plural(len(compiled), 'graph')} compiled by {kinds} without a call"
        parts.append(", ".join(filter(None, (what, *generated))))
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
            what = "nothing was compiled while it was watched"
            if compiled_without_a_call(program):
                what = "no call compiled anything while it was watched, and Inductor compiled without one"
            return f"{what}{known}{left}"
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
    """Return the number of places of graph breaks in the source, in words; a lower bound if columns are unknown."""
    least = sites_are_lower_bound(program) or program.lacks(claims.BREAKS)
    return f"{'at least ' if least else ''}{plural(places, 'place')}"


def _left(program: ProgramRecord, own: Counts) -> list[str]:
    before = {(u.file, u.line, u.function) for u in program.eager_frames if u.kind == SKIPPED_BEFORE}
    others = [one for one in program.eager_frames if (one.file, one.line, one.function) not in before]
    doubt = "" if any(one.certain or one.kind == STANCE for one in others) else AS_FAR
    kinds = [
        (own.skipped, "function that runs eagerly", "functions that run eagerly"),
        (own.partly_compiled, "partly eager", "partly eager"),
        (own.at_limit, "at its recompile limit", "at their recompile limit"),
        (own.raised, "compile that raised", "compiles that raised"),
        (own.permanently_eager, f"function {_FOR_GOOD}", f"functions {_FOR_GOOD}"),
        (len(before), f"function {LEFT_BEFORE}", f"functions {LEFT_BEFORE}"),
        (own.eager_frames - len(before), f"function {UNTRIED}{doubt}", f"functions {UNTRIED}{doubt}"),
    ]
    return [plural(count, one, many) for count, one, many in kinds if count]


def outcome(evaluation: FrameEvaluation) -> str:
    """Return the outcome of a frame evaluation in a few words."""
    if is_partly_compiled(evaluation):
        return "compiled in part"
    return evaluation.outcome
