"""Dynamo's decisions before a watch began: code that it compiled, and code that runs eagerly without a new
evaluation."""

from __future__ import annotations

import dataclasses
import threading
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER

from ...record.breaks import NOT_TRACED, SKIPPED_BEFORE, Ending
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
"""The last call recorded on this thread, withdrawn if Dynamo evaluates it."""


class EarlierDecisions(NamedTuple):
    """Code objects of the program that Dynamo evaluated: compiled ones with the compile ids of their cache entries,
    then resume functions and whole functions that run eagerly, even if they were compiled earlier."""

    compiled: dict[types.CodeType, tuple[str, ...]]
    rests: tuple[types.CodeType, ...]
    whole: tuple[types.CodeType, ...]


def find_decisions() -> EarlierDecisions:
    """Return Dynamo's decisions up to now."""
    compiled: dict[types.CodeType, tuple[str, ...]] = {}
    rests: dict[types.CodeType, None] = {}
    whole: dict[types.CodeType, None] = {}
    place = hook_points.find(_CODES)
    tracker = getattr(*place) if place is not None else None
    for reference in list(getattr(tracker, "seen", ())):
        code = reference()
        if code is None or is_foreign(code.co_filename):
            continue
        entries = entries_of(code)
        own = [e.compile_id for e in entries if dynamo.recorder_of(e.backend) is None]
        if own:
            # Torch puts the most recently used entry first.
            own.sort(key=lambda i: (i.frame_id or 0, i.frame_compile_id or 0))
            compiled[code] = tuple(map(str, own))
        is_rest = eager_lines.is_resume(code)
        if not is_rest and (callers.is_library(code.co_filename) or not eager_lines.may_compute(code)):
            continue
        if _gave_up_later(own) if own else not entries:
            treated = cache_entries.next_frame_treatment(code)
            if treated == RUNS_EAGERLY or (not own and treated != COMPILES):
                (rests if is_rest else whole)[code] = None
    return EarlierDecisions(compiled, tuple(rests), tuple(whole))


def _gave_up_later(own: list[Any]) -> bool:
    """Return True if Dynamo tried to compile a code object more often than it has entries for it."""
    return bool(FRAME_COMPILE_COUNTER.get(own[0].frame_id, 0) > len(own))


def entries_of(code: types.CodeType) -> list[Any]:
    """Return Dynamo's cache entries of a code object."""
    return list(torch._C._dynamo.eval_frame._debug_get_cache_entry_list(code))


def note_call(watches: tuple[Scope, ...], function: Any) -> None:
    """Record the program's call of a compiled function if Dynamo had skipped it before the watch."""
    _local.noted = None
    thing = compiled_objects.unwrapped(function)
    code = compiled_objects.code_of(thing)
    if code is None or not any(code in scope.eager_before for scope in watches):
        return
    own = getattr(getattr(function, "__func__", function), "__code__", None)
    # Torch's wrapper around a module may run a cache entry that includes this code.
    certain = own is code or (own is not None and not any(map(_calls_graph, entries_of(own))))
    at = callers.caller()
    key = (SKIPPED_BEFORE, code, certain)
    noting_watches = tuple(
        scope for scope in watches if code in scope.eager_before and code not in scope.by_code
    )
    for scope in noting_watches:
        if key not in scope.uncompiled:
            scope.uncompiled[key] = Uncompiled(
                SKIPPED_BEFORE, skip_reason(code), compiled_objects.described(thing).function, code, at
            )
            scope.uncompiled[key].certain = certain
        scope.uncompiled[key].times += 1
    _local.noted = key, noting_watches


def withdraw_call(code: types.CodeType) -> None:
    """Withdraw the record of a call if Dynamo evaluates its code, which is no longer skipped after a reset."""
    if _local.noted is None or _local.noted[0][1] is not code:
        return
    key, noting_watches = _local.noted
    _local.noted = None
    for scope in noting_watches:
        scope.uncompiled[key].times -= 1
        if not scope.uncompiled[key].times:
            del scope.uncompiled[key]


def _calls_graph(variant: Any) -> bool:
    return any(name.startswith("__compiled_fn") for name in variant.code.co_names)


def skip_reason(code: types.CodeType) -> Ending:
    """Return the reason recorded for a function that was skipped before the watch."""
    at = Frame(code.co_filename, code.co_firstlineno, eager_lines.plain_name(code.co_name))
    reason = (
        "Dynamo skipped it before the watch began\n  Explanation: Dynamo does not evaluate it again, and does not "
        "record why."
    )
    hint = (
        "watch its first call, or call torch._dynamo.reset() before the watch: Dynamo looks at it again then, and says "
        "why"
    )
    return Ending(NOT_TRACED, reason, (at,), hint)


def eager_resumes(
    left: Iterable[tuple[types.CodeType, ProgramFrame]], frames: Iterable[ProgramFrame]
) -> list[ProgramFrame]:
    """Return the resume functions in ``left``, skipped before the watch, whose break occurred again in ``frames``."""
    broken = {
        (frame.file, frame.function, at.line)
        for frame in frames
        for evaluation in frame.evaluations
        for one in evaluation.breaks
        if one.outcome == RESUMED
        for at in one.ending.frames
    }
    return [
        dataclasses.replace(frame, eager_lines=eager_lines.lines(code))
        for code, frame in left
        if (frame.file, frame.function, frame.resume_line) in broken
    ]
