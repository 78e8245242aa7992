"""What ran eagerly and is in no visit, of what else was seen: what ``checkpoint`` calls, bodies of other calls that
were left to Python with a break inside of them, and modules of torch's own in its wrappers."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Container, Iterable, Iterator
from typing import Any

from ...record.breaks import NOT_TRACED, Ending
from ...record.eager_frames import EAGER_CALL, SKIPPED_BEFORE, TORCH_MODULE, EagerFrame
from ...record.graph import Frame
from ...record.messages import gist
from ...record.program import COMPILED, NO_GRAPH, SKIPPED, Break, FrameEvaluation
from ..frames import eager_lines
from ..ground import source_places
from . import callers, earlier_decisions
from .scopes import Scope, Uncompiled, Visiting

_WRAPPERS = tuple(f"{source_places.TORCH}{folder}/" for folder in ("nn/parallel", "distributed"))
_MODULES = f"{source_places.TORCH}nn/modules/"


def in_wrapper(scope: Scope, visiting: Visiting) -> None:
    """Dynamo left a function of torch's alone: note it where it is the module that a wrapper of torch's holds."""
    code = visiting.code
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
    key = (TORCH_MODULE, code, visiting.caller)
    if key not in scope.unvisited:  # Dynamo may not be asked about later calls, so that they are not counted
        reason = (
            f"{outer} calls it\n  Explanation: Dynamo leaves modules of torch.nn to Python, and compiles them "
            "only in a function of the program that calls them."
        )
        hint = (
            "compile the module before it is wrapped, as in DistributedDataParallel(torch.compile(module)), or give it "
            "a class of your own whose forward calls it"
        )
        why = Ending(NOT_TRACED, reason, (), hint)
        scope.unvisited[key] = Uncompiled(TORCH_MODULE, why, name, code, visiting.caller)


def of(scope: Scope, made: list[Visiting], visits: dict[int, FrameEvaluation]) -> tuple[EagerFrame, ...]:
    """All of a watch; ``visits`` are those of ``made``, by their number."""
    held = list(scope.unvisited.values())
    calls = _broken_calls(visits.values())
    noted = [_with_break(_plain(one, one.code), calls) for one in held]
    seen = {_line(one.caller) for one in held if one.kind == EAGER_CALL}
    asked = {v.code for v in made} | set(scope.before)
    inside: dict[tuple[types.CodeType, Frame | None], EagerFrame] = {}
    for visiting in made:
        for one, code in _inside(visiting, visits[visiting.number], asked, seen, scope.left_whole):
            inside.setdefault((code, one.caller), one)
    return (*noted, *inside.values())


def _line(at: Frame | None) -> tuple[str, int]:
    return ("", 0) if at is None else (at.file, at.line)


def _broken_calls(visits: Iterable[FrameEvaluation]) -> dict[tuple[str, int], Break]:
    """The breaks inside of a call, by the line of that call in the function that Dynamo was asked about."""
    found: dict[tuple[str, int], Break] = {}
    for one in (b for visit in visits for b in visit.breaks):
        own = [at for at in one.ending.frames if not callers.library(at.file)]
        if len(one.ending.frames) > 1 and own:
            found.setdefault(_line(own[0]), one)
    return found


def _with_break(one: EagerFrame, calls: dict[tuple[str, int], Break]) -> EagerFrame:
    """What ``checkpoint`` called, with the break that kept its call out of a graph, where it was one inside of it."""
    found = calls.get(_line(one.caller)) if one.kind == EAGER_CALL else None
    if found is None:
        return one
    line = next(at for at in found.ending.frames if _line(at) == _line(one.caller))
    why = _broken(found, line, "Python makes the whole call then, and torch turns Dynamo off for it.")
    return dataclasses.replace(one, cause=why, caller=line)


def _broken(found: Break, line: Frame, then: str) -> Ending:
    at = found.ending.frames[-1]
    reason = f"the graph broke inside of this call (line {at.line}: {gist(found.ending.reason)})\n  Explanation: {then}"
    hint = f"mend the break in line {at.line}: the call is in the graph then. {found.ending.hint}"
    return Ending(NOT_TRACED, reason, (line,), hint.strip(), found.ending.link)


def codes(scope: Scope, made: Iterable[Visiting]) -> list[types.CodeType]:
    """Those whose source is to be kept beside that of visits."""
    noted = [one.code for one in list(scope.unvisited.values()) if one.code is not None]
    return [*noted, *(code for v in made for code in v.dropped)]


def _inside(
    visiting: Visiting,
    visit: FrameEvaluation,
    asked: set[types.CodeType],
    seen: set[tuple[str, int]],
    whole: Container[types.CodeType],
) -> Iterator[tuple[EagerFrame, types.CodeType]]:
    """The functions that a visit began to trace, of a call that it left to Python, where Dynamo was not asked about the
    called function: as far as is known it was off, since it is asked about each function that has no form yet. Calls in
    a line that was ``seen`` to run so are known otherwise, and what was left ``whole`` before runs so for certain."""
    known = {code for code in (*visiting.dropped, *visiting.lines) if not callers.library(code.co_filename)}
    kept = set(visiting.lines) if visit.outcome in (COMPILED, NO_GRAPH) else set()
    left = [code for code in known if code not in kept and code is not visiting.code]
    if not left or visit.outcome not in (COMPILED, NO_GRAPH, SKIPPED):
        return
    for found in visit.breaks:
        stack = found.ending.frames
        own = [i for i, at in enumerate(stack) if not callers.library(at.file)]
        if len(own) < 2 or own[0] or _line(stack[own[0]]) in seen:
            continue
        entry = stack[own[1]]
        if any(_is(code, entry) for code in asked) or not any(_is(code, entry) for code in left):
            continue
        line = stack[own[0]]
        why = _broken(
            found,
            line,
            "Python makes the whole call then, and Dynamo was not asked about the function in it.",
        )
        for code in sorted(left, key=lambda c: (not _is(c, entry), c.co_filename, c.co_firstlineno)):
            if code not in asked:
                one = Uncompiled(EAGER_CALL, why, eager_lines.plain(code.co_name), code, line)
                one.certain = False
                if code in whole:
                    one = Uncompiled(SKIPPED_BEFORE, earlier_decisions.why(code), one.name, code, line)
                yield _plain(one, code), code
        return


def at_breaks(visiting: Visiting, gm: Any) -> None:
    """Of the lines where a code broke, or where the rest that it is begins, note whether a call of theirs is in the
    graph: Dynamo comes to a line that breaks as well, and enters that of a rest in its middle."""
    code = visiting.code
    at = {f.line for b in visiting.breaks for f in b.ending.frames if f.file == code.co_filename}
    lines = (at | {_begins(code)}) & eager_lines.code_lines(code)
    if lines:
        stacks = [str(n.meta.get("stack_trace") or "") for n in gm.graph.nodes if n.op != "placeholder"]
        held = {n for n in lines if any(f'"{code.co_filename}", line {n},' in stack for stack in stacks)}
        visiting.lines.setdefault(code, set()).update(held)
        visiting.without_node = lines - held


def _begins(code: types.CodeType) -> int:
    found = re.search(r"_at_(\d+)", code.co_name) if eager_lines.is_resume(code) else None
    return int(found[1]) if found else 0


def _is(code: types.CodeType, frame: Frame) -> bool:
    same = code.co_filename == frame.file and eager_lines.plain(code.co_name) == frame.function
    return same and frame.line in eager_lines.code_lines(code)


def _plain(one: Uncompiled, code: types.CodeType | None) -> EagerFrame:
    file, line = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
    own = eager_lines.code_ranges(code) if code is not None else ()
    eager = eager_lines.lines(code) if code is not None and one.certain else ()
    return EagerFrame(one.kind, one.why, one.name, file, line, own, eager, one.caller, one.times, one.certain)
