"""Calls that a stance of the compiler has run eagerly: torch does not ask Dynamo about them. Calls of what it left to
Python before the watch are seen in the same place."""

from __future__ import annotations

import dataclasses
import os
import sys
import types
from typing import Any

import torch

from ...record import failed_guards
from ...record.breaks import NOT_TRACED, Ending
from ...record.eager_frames import STANCE
from ...record.graph import Frame
from ...record.program import FAIL_ON_RECOMPILE
from ..frames import eager_lines
from ..ground import hook_points, source_places
from . import compiled_objects, earlier_decisions, frame_evaluations, recompiles, scopes
from .callers import caller, library
from .observers import noting, observe, observe_late, place_late
from .scopes import Scope, Uncompiled, Visiting

_DEFAULT = "default"
_RUN = "eager_on_recompile"
_FIRST = "eager_then_compile"
_LEAVES = {
    "force_eager": "every call of a compiled function runs eagerly",
    _RUN: "nothing is compiled: calls that fit a compiled form run it, the others run eagerly",
    _FIRST: "the first call of each function runs eagerly, to see what varies",
}
"""What each stance does that runs calls eagerly."""
_DOES = _LEAVES | {
    FAIL_ON_RECOMPILE: "nothing is compiled: calls that fit a compiled form run it, the others raise"
}


@observe("torch._dynamo.decorators:_set_stance", "stances of the compiler")
def set_stance(real: Any, stance: Any, *args: Any, **kwargs: Any) -> Any:
    """The program says whether torch may compile."""
    before = real(stance, *args, **kwargs)
    mine = scopes.owners()
    if mine:
        with noting(mine, "a stance of the compiler"):
            name, at = str(getattr(stance, "stance", _DEFAULT)), caller()
            for scope in mine:
                _now(scope, name, at)
    return before


def before(scope: Scope) -> None:
    """A watch begins: a stance may be set, and functions may have been left to Python."""
    _now(scope, _name(), None)
    if scope.left_whole:
        _see_calls(scope, _CALLS)


def _now(scope: Scope, name: str, at: Frame | None) -> None:
    scope.stance = (name, at)
    if name in (*_LEAVES, FAIL_ON_RECOMPILE):
        _see_calls(scope, _CALLS, _INPUTS)


def _see_calls(scope: Scope, *paths: str) -> None:
    for path in paths:
        if hook_points.find(path) is None:
            scope.failed["calls of compiled functions", hook_points.lacks(path)] += 1
        place_late(path)


def _name() -> str:
    return str(getattr(getattr(torch._dynamo.eval_frame, "_stance", None), "stance", _DEFAULT))


_CALLS = "torch._dynamo.eval_frame:_callback_from_stance"


@observe_late(_CALLS)
def called(real: Any, callback: Any, *args: Any, **kwargs: Any) -> Any:
    """A compiled function is called: the stance says who is asked about it."""
    found = real(callback, *args, **kwargs)
    if callback not in (None, False) and found in (None, False):
        mine = scopes.owners()
        if mine:
            with noting(mine, "calls under a stance"):
                function = sys._getframe(1).f_locals.get("fn")
                if function is not None:
                    thing = compiled_objects.thing(function)
                    code = compiled_objects.code_of(thing)
                    sure = found is None or not _has_forms(function)
                    _note(mine, compiled_objects.named(thing).function, code, sure)
    elif callback not in (None, False):
        mine = tuple(scope for scope in scopes.owners() if scope.left_whole)
        if mine:
            with noting(mine, "calls of what was left to Python before"):
                function = sys._getframe(1).f_locals.get("fn")
                if function is not None:
                    earlier_decisions.called(mine, function)
    return _refusing(found) if callable(found) and _name() == FAIL_ON_RECOMPILE else found


def _refusing(real: Any) -> Any:
    """What torch asks about a call that fits no form, where the program told it to raise then: noted when it does."""

    def refused(frame: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return real(frame, *args, **kwargs)
        except RuntimeError as error:
            mine = scopes.owners(frame.f_code.co_name)
            with noting(mine, "calls under a stance"):
                _refuse(mine, frame, str(error))
            raise

    for name, value in vars(real).items():  # among them the backend, by which torch finds the forms
        setattr(refused, name, value)
    return refused


def _refuse(mine: tuple[Scope, ...], frame: Any, message: str) -> None:
    if not mine:
        return
    visiting = Visiting(frame.f_code, mine, "", caller())
    visiting.behind = compiled_objects.behind(frame)
    visiting.raised, visiting.limit = True, FAIL_ON_RECOMPILE
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(frame.f_code)
    if entries:
        recompiles.note(visiting, entries, frame, failed_guards.listed(message))
    where = next((scope.stance[1] for scope in mine if scope.stance is not None), None)
    at = Frame(frame.f_code.co_filename, frame.f_code.co_firstlineno, eager_lines.plain(frame.f_code.co_name))
    visiting.error = dataclasses.replace(_why(FAIL_ON_RECOMPILE, where), frames=(at,))
    frame_evaluations.keep(visiting, frame)


_INPUTS = "torch._dynamo.eval_frame:_get_or_add_example_inputs"


@observe_late(_INPUTS)
def first_call(real: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch keeps the inputs of a function's first calls: it is compiled for the second."""
    found = real(frame, *args, **kwargs)
    code = frame.f_code
    if len(found) == 1 and _name() == _FIRST and not _others(code.co_filename):
        mine = scopes.owners(code.co_name)
        if mine:
            with noting(mine, "calls under a stance"):
                function = frame.f_locals.get("fn") if compiled_objects.is_wrapper(code) else None
                name = code.co_name if function is None else compiled_objects.named(function).function
                _note(mine, name, code if function is None else compiled_objects.code_of(function), True)
    return found


def _others(file: str) -> bool:
    return not source_places.is_internal(file) and library(file)


def _has_forms(function: Any) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is None or bool(torch._C._dynamo.eval_frame._debug_get_cache_entry_list(code))


def _note(mine: tuple[Scope, ...], name: str, code: types.CodeType | None, sure: bool) -> None:
    at = caller()
    for scope in mine:
        stance, where = scope.stance or (_name(), None)
        key = (STANCE, stance, where, name, code, sure)
        if key not in scope.unvisited:
            scope.unvisited[key] = Uncompiled(STANCE, _why(stance, where), name, code, at)
            scope.unvisited[key].certain = sure
        scope.unvisited[key].times += 1


def _why(stance: str, where: Frame | None) -> Ending:
    set_ = f"torch.compiler.set_stance({stance!r}) was set"
    place = "before the watch" if where is None else f"({os.path.basename(where.file)}:{where.line})"
    reason = f"{set_} {place}\n  Explanation: {_DOES[stance]}"
    frames = () if where is None else (where,)
    return Ending(
        NOT_TRACED, reason, frames, "set the stance back to 'default' where calls are to be compiled"
    )
