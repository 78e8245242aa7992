"""Frames that ran eagerly without an evaluation, derived from other observations: functions called by ``checkpoint``,
bodies of calls that run eagerly because of a break inside, and torch's own modules in its wrappers."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Container, Iterable, Iterator
from typing import Any

from ...record.breaks import EAGER_CALL, NOT_TRACED, SKIPPED_BEFORE, TORCH_MODULE, EagerFrame, Ending
from ...record.graph import Frame
from ...record.messages import summary
from ...record.program import COMPILED, FAILED, NO_GRAPH, SKIPPED, Break, FrameEvaluation
from ..frames import eager_lines
from ..ground import source_places
from . import callers, earlier_decisions
from .scopes import Evaluation, Scope, Uncompiled

_WRAPPERS = tuple(f"{source_places.TORCH}{folder}/" for folder in ("nn/parallel", "distributed"))
_MODULES = f"{source_places.TORCH}nn/modules/"


def note_wrapped_module(scope: Scope, evaluation: Evaluation) -> None:
    """Record a skipped torch module if it is inside one of torch's wrappers."""
    code = evaluation.code
    if code.co_name != "forward" or not code.co_filename.startswith(_MODULES):
        return
    by = callers.torch_caller()
    if by is None or not by.co_filename.startswith(_WRAPPERS):
        return
    outer = (
        "DistributedDataParallel" if "/nn/parallel/distributed" in by.co_filename else "a wrapper of torch's"
    )
    name = getattr(code, "co_qualname", "").rpartition(".")[0] or source_places.place_in_torch(
        code, code.co_firstlineno
    )
    key = (TORCH_MODULE, code, evaluation.caller)
    if key not in scope.uncompiled:  # Dynamo may not evaluate later calls, so they are not counted
        reason = (
            f"{outer} calls it\n  Explanation: Dynamo leaves modules of torch.nn to Python, and compiles them "
            "only in a function of the program that calls them."
        )
        hint = (
            "compile the module before it is wrapped, as in DistributedDataParallel(torch.compile(module)), or give it "
            "a class of your own whose forward calls it"
        )
        why = Ending(NOT_TRACED, reason, (), hint)
        scope.uncompiled[key] = Uncompiled(TORCH_MODULE, why, name, code, evaluation.caller)


def collect(
    scope: Scope, evaluations: list[Evaluation], visits: dict[int, FrameEvaluation]
) -> tuple[EagerFrame, ...]:
    """Return the eager frames of a watch; ``visits`` are the recorded evaluations by number."""
    uncompiled = list(scope.uncompiled.values())
    calls = _broken_calls(visits.values())
    noted = [_with_break(_record(one, one.code), calls) for one in uncompiled]
    seen = {_line(one.caller) for one in uncompiled if one.kind == EAGER_CALL}
    evaluated = {v.code for v in evaluations} | set(scope.before)
    inside: dict[tuple[types.CodeType, Frame | None], EagerFrame] = {}
    for evaluation in evaluations:
        for one, code in _called_eagerly(
            evaluation, visits[evaluation.number], evaluated, seen, scope.eager_before
        ):
            inside.setdefault((code, one.caller), one)
    return (*noted, *inside.values())


def _line(at: Frame | None) -> tuple[str, int]:
    return ("", 0) if at is None else (at.file, at.line)


def _broken_calls(evaluations: Iterable[FrameEvaluation]) -> dict[tuple[str, int], Break]:
    """Return the breaks inside calls, by the line of the call in the evaluated function."""
    breaks: dict[tuple[str, int], Break] = {}
    for one in (b for evaluation in evaluations for b in evaluation.breaks):
        own = [at for at in one.ending.frames if not callers.is_library(at.file)]
        if len(one.ending.frames) > 1 and own:
            breaks.setdefault(_line(own[0]), one)
    return breaks


def _with_break(one: EagerFrame, calls: dict[tuple[str, int], Break]) -> EagerFrame:
    """Return a function called by ``checkpoint`` with the break that kept the call out of a graph, if it was inside."""
    graph_break = calls.get(_line(one.caller)) if one.kind == EAGER_CALL else None
    if graph_break is None:
        return one
    line = next(at for at in graph_break.ending.frames if _line(at) == _line(one.caller))
    why = _broken(graph_break, line, "The whole call then runs eagerly, and torch turns Dynamo off for it.")
    return dataclasses.replace(one, cause=why, caller=line)


def _broken(graph_break: Break, line: Frame, then: str) -> Ending:
    at = graph_break.ending.frames[-1]
    inner = f"line {at.line}: {summary(graph_break.ending.reason)}"
    reason = f"the graph broke inside of this call ({inner})\n  Explanation: {then}"
    hint = f"fix the break in line {at.line}; the call is in the graph then. {graph_break.ending.hint}"
    return Ending(NOT_TRACED, reason, (line,), hint.strip(), graph_break.ending.link)


def source_codes(scope: Scope, evaluations: Iterable[Evaluation]) -> list[types.CodeType]:
    """Return further code objects whose source is recorded, besides those of evaluations."""
    noted = [one.code for one in list(scope.uncompiled.values()) if one.code is not None]
    return [*noted, *(code for v in evaluations for code in v.dropped)]


def _called_eagerly(
    evaluation: Evaluation,
    visit: FrameEvaluation,
    evaluated: set[types.CodeType],
    seen: set[tuple[str, int]],
    whole: Container[types.CodeType],
) -> Iterator[tuple[EagerFrame, types.CodeType]]:
    """Yield the functions that an evaluation began to trace in a call that runs eagerly and that Dynamo did not
    evaluate.

    Dynamo was probably off, since it evaluates each function without an entry. Lines in ``seen`` were observed directly
    and are left out; functions in ``whole``, skipped before the watch, certainly run eagerly.
    """
    known = {
        code for code in (*evaluation.dropped, *evaluation.lines) if not callers.is_library(code.co_filename)
    }
    kept = set(evaluation.lines) if visit.outcome in (COMPILED, NO_GRAPH) else set()
    traced_only = [code for code in known if code not in kept and code is not evaluation.code]
    if not traced_only or visit.outcome not in (COMPILED, NO_GRAPH, SKIPPED, FAILED):
        return
    for graph_break in visit.breaks:
        stack = graph_break.ending.frames
        own = [i for i, at in enumerate(stack) if not callers.is_library(at.file)]
        if len(own) < 2 or own[0] or _line(stack[own[0]]) in seen:
            continue
        entry = stack[own[1]]
        if any(_is_frame_of(code, entry) for code in evaluated) or not any(
            _is_frame_of(code, entry) for code in traced_only
        ):
            continue
        line = stack[own[0]]
        why = _broken(
            graph_break,
            line,
            "The whole call then runs eagerly, and Dynamo did not evaluate the function in it.",
        )
        for code in sorted(
            traced_only, key=lambda c: (not _is_frame_of(c, entry), c.co_filename, c.co_firstlineno)
        ):
            if code not in evaluated:
                one = Uncompiled(EAGER_CALL, why, eager_lines.plain_name(code.co_name), code, line)
                one.certain = False
                if code in whole:
                    one = Uncompiled(
                        SKIPPED_BEFORE, earlier_decisions.skip_reason(code), one.name, code, line
                    )
                yield _record(one, code), code
        return


def keep_lines_at_breaks(evaluation: Evaluation, gm: Any) -> None:
    """Record which lines with a break, or at the start of a resume function, have a call in the graph: Dynamo also
    traces the line of a break, and starts a resume function in the middle of one."""
    code = evaluation.code
    at = {f.line for b in evaluation.breaks for f in b.ending.frames if f.file == code.co_filename}
    lines = (at | {_resume_line(code)}) & eager_lines.code_lines(code)
    if lines:
        stacks = [str(n.meta.get("stack_trace") or "") for n in gm.graph.nodes if n.op != "placeholder"]
        in_graph = {n for n in lines if any(f'"{code.co_filename}", line {n},' in stack for stack in stacks)}
        evaluation.lines.setdefault(code, set()).update(in_graph)
        evaluation.without_node = lines - in_graph


def _resume_line(code: types.CodeType) -> int:
    match = re.search(r"_at_(\d+)", code.co_name) if eager_lines.is_resume(code) else None
    return int(match[1]) if match else 0


def _is_frame_of(code: types.CodeType, frame: Frame) -> bool:
    same = code.co_filename == frame.file and eager_lines.plain_name(code.co_name) == frame.function
    return same and frame.line in eager_lines.code_lines(code)


def _record(one: Uncompiled, code: types.CodeType | None) -> EagerFrame:
    file, line = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
    own = eager_lines.code_ranges(code) if code is not None else ()
    eager = eager_lines.lines(code) if code is not None and one.certain else ()
    return EagerFrame(one.kind, one.why, one.name, file, line, own, eager, one.caller, one.times, one.certain)
