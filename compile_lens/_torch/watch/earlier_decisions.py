"""What Dynamo had decided about before a watch began: what it compiled, and what it left to Python, of which it is not
asked again."""

from __future__ import annotations

import dataclasses
import threading
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER

from ...record.breaks import NOT_TRACED, Ending
from ...record.eager_frames import SKIPPED_BEFORE
from ...record.graph import Frame
from ...record.program import RESUMED, ProgramFrame
from ..frames import dynamo, eager_lines
from ..frames.skipped_frames import is_foreign
from ..ground import cache_entries, hook_points
from ..ground.cache_entries import COMPILES, RUNS_EAGERLY
from . import callers, compiled_objects
from .scopes import Scope, Uncompiled

_CODES = "torch._dynamo.convert_frame:input_codes"


class _Local(threading.local):
    noted: tuple[tuple[Any, ...], tuple[Scope, ...]] | None = None


_local = _Local()
"""The last call of this thread that was noted, until Dynamo is asked about it."""


class Before(NamedTuple):
    """Codes of the program that Dynamo was asked about: those that it compiled, with the compile ids of their forms;
    and rests of functions and whole functions that it left to Python, be it after it had compiled them."""

    compiled: dict[types.CodeType, tuple[str, ...]]
    rests: tuple[types.CodeType, ...]
    whole: tuple[types.CodeType, ...]


def find() -> Before:
    """What Dynamo has decided until now."""
    compiled: dict[types.CodeType, tuple[str, ...]] = {}
    rests: dict[types.CodeType, None] = {}
    whole: dict[types.CodeType, None] = {}
    place = hook_points.find(_CODES)
    tracker = getattr(*place) if place is not None else None
    for reference in list(getattr(tracker, "seen", ())):
        code = reference()
        if code is None or is_foreign(code.co_filename):
            continue
        entries = forms(code)
        own = [e.compile_id for e in entries if dynamo.recorder_of(e.backend) is None]
        if own:
            # Torch puts first what was used last.
            own.sort(key=lambda i: (i.frame_id or 0, i.frame_compile_id or 0))
            compiled[code] = tuple(map(str, own))
        is_rest = eager_lines.is_resume(code)
        if not is_rest and (callers.library(code.co_filename) or not eager_lines.may_compute(code)):
            continue
        if _tried_since(own) if own else not entries:
            treated = cache_entries.next_frame_treatment(code)
            if treated == RUNS_EAGERLY or (not own and treated != COMPILES):
                (rests if is_rest else whole)[code] = None
    return Before(compiled, tuple(rests), tuple(whole))


def _tried_since(own: list[Any]) -> bool:
    """Whether Dynamo tried to compile a code more often than it has forms of it."""
    return bool(FRAME_COMPILE_COUNTER.get(own[0].frame_id, 0) > len(own))


def forms(code: types.CodeType) -> list[Any]:
    """What Dynamo compiled of a code, and has still."""
    return list(torch._C._dynamo.eval_frame._debug_get_cache_entry_list(code))


def called(mine: tuple[Scope, ...], function: Any) -> None:
    """The program calls what it compiled: note it where that is a function which was left before."""
    _local.noted = None
    thing = compiled_objects.thing(function)
    code = compiled_objects.code_of(thing)
    if code is None or not any(code in scope.left_whole for scope in mine):
        return
    own = getattr(getattr(function, "__func__", function), "__code__", None)
    # Torch's function around a module may run a form in which this code is a part.
    sure = own is code or (own is not None and not any(map(_has_graph, forms(own))))
    at = callers.caller()
    key = (SKIPPED_BEFORE, code, sure)
    noting = tuple(scope for scope in mine if code in scope.left_whole and code not in scope.by_code)
    for scope in noting:
        if key not in scope.unvisited:
            scope.unvisited[key] = Uncompiled(
                SKIPPED_BEFORE, why(code), compiled_objects.named(thing).function, code, at
            )
            scope.unvisited[key].certain = sure
        scope.unvisited[key].times += 1
    _local.noted = key, noting


def asked(code: types.CodeType) -> None:
    """Dynamo is asked about a code: had this thread just called it, it was not left any more (Dynamo was reset)."""
    if _local.noted is None or _local.noted[0][1] is not code:
        return
    key, noting = _local.noted
    _local.noted = None
    for scope in noting:
        scope.unvisited[key].times -= 1
        if not scope.unvisited[key].times:
            del scope.unvisited[key]


def _has_graph(form: Any) -> bool:
    return any(name.startswith("__compiled_fn") for name in form.code.co_names)


def why(code: types.CodeType) -> Ending:
    """Why a function that was left before runs eagerly."""
    at = Frame(code.co_filename, code.co_firstlineno, eager_lines.plain(code.co_name))
    reason = (
        "Dynamo left it to Python before the watch began\n  Explanation: it is not asked about it again, and does not "
        "keep why."
    )
    hint = (
        "watch its first call, or call torch._dynamo.reset() before the watch: Dynamo looks at it again then, and says "
        "why"
    )
    return Ending(NOT_TRACED, reason, (at,), hint)


def rests(
    left: Iterable[tuple[types.CodeType, ProgramFrame]], frames: Iterable[ProgramFrame]
) -> list[ProgramFrame]:
    """What follows a break that was met now, where Dynamo left that to Python before."""
    broken = {
        (frame.file, frame.function, at.line)
        for frame in frames
        for visit in frame.evaluations
        for one in visit.breaks
        if one.outcome == RESUMED
        for at in one.ending.frames
    }
    return [
        dataclasses.replace(frame, eager_lines=eager_lines.lines(code))
        for code, frame in left
        if (frame.file, frame.function, frame.resume_line) in broken
    ]
