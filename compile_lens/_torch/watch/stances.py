"""Calls that run eagerly because of a compiler stance, without an evaluation by Dynamo. Calls of functions skipped
before the watch are observed at the same place."""

from __future__ import annotations

import dataclasses
import os
import types
from typing import Any

import torch

from ...record import claims, messages
from ...record.breaks import NOT_TRACED, STANCE, Ending
from ...record.graph import Frame
from ...record.program import FAIL_ON_RECOMPILE
from ..frames import eager_lines
from ..ground import compiler_stance, source_places
from ..ground.hook_calls import torch_frame
from . import compiled_objects, earlier_decisions, frame_evaluations, recompiles, scopes
from .callers import caller, is_library
from .observers import observe, observe_late, observing, place_late
from .scopes import Evaluation, Scope, Uncompiled


@observe("torch._dynamo.decorators:_set_stance", claims.STANCES)
def set_stance(real: Any, stance: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a stance that the program sets."""
    before = real(stance, *args, **kwargs)
    watches = scopes.owners()
    if watches:
        with observing(watches, claims.STANCES):
            name, at = str(getattr(stance, "stance", compiler_stance.DEFAULT)), caller()
            for scope in watches:
                _set(scope, name, at)
    return before


def begin(scope: Scope) -> None:
    """Begin a watch: record the stance in force, and observe calls if it or earlier skips make some run eagerly."""
    _set(scope, compiler_stance.current(), None)
    if scope.eager_before:
        _observe_calls(scope, _CALLS)


def _set(scope: Scope, name: str, at: Frame | None) -> None:
    scope.stance = (name, at)
    if name in compiler_stance.EFFECTS:
        _observe_calls(scope, _CALLS, _INPUTS)


def _observe_calls(scope: Scope, *paths: str) -> None:
    for path in paths:
        place_late(path, (scope,))


_CALLS = "torch._dynamo.eval_frame:_callback_from_stance"


@observe_late(_CALLS, claims.CALLS)
def note_call(real: Any, callback: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a call of a compiled function that runs eagerly because of the stance or an earlier skip."""
    result = real(callback, *args, **kwargs)
    if callback not in (None, False) and result in (None, False):
        watches = scopes.owners()
        if watches:
            with observing(watches, claims.CALLS):
                function = _called_function()
                if function is not None:
                    called_object = compiled_objects.unwrapped(function)
                    code = compiled_objects.code_of(called_object)
                    certain = result is None or not _has_entries(function)
                    _note(watches, compiled_objects.described(called_object).function, code, certain)
    elif callback not in (None, False):
        watches = tuple(scope for scope in scopes.owners() if scope.eager_before)
        if watches:
            with observing(watches, claims.CALLS):
                function = _called_function()
                if function is not None:
                    earlier_decisions.note_call(watches, function)
    return (
        _with_refusal_note(result)
        if callable(result) and compiler_stance.current() == FAIL_ON_RECOMPILE
        else result
    )


def _called_function() -> Any:
    """Return the compiled function that torch is about to call, or None."""
    frame = torch_frame()
    return None if frame is None else frame.f_locals.get("fn")


def _with_refusal_note(real: Any) -> Any:
    """Return torch's callback for a call that matches no entry, wrapped to record that it raises under this stance."""

    def refused(frame: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return real(frame, *args, **kwargs)
        except RuntimeError as error:
            watches = scopes.owners(frame.f_code.co_name)
            with observing(watches, claims.CALLS):
                _record_refusal(watches, frame, str(error))
            raise

    for name, value in vars(real).items():  # including the backend, by which torch finds the cache entries
        setattr(refused, name, value)
    return refused


def _record_refusal(watches: tuple[Scope, ...], frame: Any, message: str) -> None:
    if not watches:
        return
    evaluation = Evaluation(frame.f_code, watches, "", caller())
    evaluation.wrapped = compiled_objects.wrapped_place(frame)
    evaluation.raised, evaluation.limit = True, FAIL_ON_RECOMPILE
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(frame.f_code)
    if entries:
        recompiles.keep_reasons(evaluation, entries, frame, messages.failure_lines(message))
    where = next((scope.stance[1] for scope in watches if scope.stance is not None), None)
    at = Frame(
        frame.f_code.co_filename, frame.f_code.co_firstlineno, eager_lines.plain_name(frame.f_code.co_name)
    )
    evaluation.error = dataclasses.replace(_why(FAIL_ON_RECOMPILE, where), frames=(at,))
    frame_evaluations.record(evaluation, frame)


_INPUTS = "torch._dynamo.eval_frame:_get_or_add_example_inputs"


@observe_late(_INPUTS, claims.CALLS)
def first_call(real: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the first call of a function under ``eager_then_compile``, whose inputs torch keeps for the compile."""
    inputs = real(frame, *args, **kwargs)
    code = frame.f_code
    if (
        len(inputs) == 1
        and compiler_stance.current() == compiler_stance.FIRST
        and not _is_foreign(code.co_filename)
    ):
        watches = scopes.owners(code.co_name)
        if watches:
            with observing(watches, claims.CALLS):
                function = frame.f_locals.get("fn") if compiled_objects.is_wrapper(code) else None
                name = code.co_name if function is None else compiled_objects.described(function).function
                _note(watches, name, code if function is None else compiled_objects.code_of(function), True)
    return inputs


def _is_foreign(file: str) -> bool:
    return not source_places.is_internal(file) and is_library(file)


def _has_entries(function: Any) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is None or bool(torch._C._dynamo.eval_frame._debug_get_cache_entry_list(code))


def _note(watches: tuple[Scope, ...], name: str, code: types.CodeType | None, certain: bool) -> None:
    at = caller()
    for scope in watches:
        stance, where = scope.stance or (compiler_stance.current(), None)
        key = (STANCE, stance, where, name, code, certain)
        if key not in scope.uncompiled:
            scope.uncompiled[key] = Uncompiled(STANCE, _why(stance, where), name, code, at)
            scope.uncompiled[key].certain = certain
        scope.uncompiled[key].times += 1


def _why(stance: str, where: Frame | None) -> Ending:
    set_ = f"torch.compiler.set_stance({stance!r}) was set"
    place = "before the watch" if where is None else f"({os.path.basename(where.file)}:{where.line})"
    reason = f"{set_} {place}\n  Explanation: {compiler_stance.EFFECTS[stance]}"
    frames = () if where is None else (where,)
    return Ending(
        NOT_TRACED, reason, frames, "set the stance back to 'default' where calls are to be compiled"
    )
