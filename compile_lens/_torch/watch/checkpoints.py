"""Calls by ``torch.utils.checkpoint`` outside of any graph.

Torch turns Dynamo off for them, so that no frame inside is evaluated. Each call is observed where torch makes it. In
the first of a kind, Python's profiler reports the program's functions; later ones are only counted.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch
import torch.utils.checkpoint
from torch._C._dynamo.eval_frame import get_eval_frame_callback

from ...record import claims
from ...record.breaks import EAGER_CALL, NOT_TRACED, Ending
from ...record.graph import Frame
from ..frames import eager_lines
from ..ground.hook_calls import torch_frame
from . import compiled_objects, scopes
from .callers import caller, is_library
from .frame_evaluations import is_generated
from .observers import hidden_from_dynamo, is_ours, observe, observing
from .scopes import Scope, Uncompiled

_FILE = torch.utils.checkpoint.__file__
_GENERATOR = "torch.utils.checkpoint:_checkpoint_without_reentrant_generator"
if hasattr(torch.utils.checkpoint, "_checkpoint_without_reentrant_generator_impl"):  # torch 2.15 calls this
    _GENERATOR += "_impl"
_CALLERS = ("checkpoint", "forward")
"""Functions in that file that call their argument; others query the program for contexts and policies."""

WHY = Ending(
    NOT_TRACED,
    "torch.utils.checkpoint calls it\n  Explanation: where a call of checkpoint is in no graph, torch turns Dynamo off "
    "for it, and does not evaluate what runs in it.",
    (),
    "remove what keeps the line of the call out of a graph, or give checkpoint a function that is compiled: "
    "checkpoint(torch.compile(function), …)",
)


@observe(_GENERATOR, claims.CHECKPOINTS)
def without_reentrant(real: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a call by ``checkpoint``, which begins after this function returns."""
    _begin(function, torch_frame())
    return real(function, *args, **kwargs)


@observe("torch.utils.checkpoint:CheckpointFunction.forward", claims.CHECKPOINTS)
def reentrant(real: Any, context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a call with ``use_reentrant=True``, which runs inside this function."""
    profiler = _begin(function, None)
    try:
        return real(context, function, *args, **kwargs)
    finally:
        if profiler is not None:
            profiler.stop()


def _begin(function: Any, until: types.FrameType | None) -> _Profiler | None:
    """Record a call; profile the first of its kind until the frame ``until`` returns or the profiler is stopped."""
    watches = scopes.owners() if scopes.current() is None and _dynamo_was_on() else ()
    profiler = None
    if watches:
        with observing(watches, claims.CHECKPOINTS):
            at = caller()
            new = _count_call(watches, compiled_objects.unwrapped(function), at)
            if new and sys.getprofile() is None:
                profiler = _Profiler(watches, at, until)
                sys.setprofile(profiler.profile)
    return profiler


def _dynamo_was_on() -> bool:
    """Return True if Dynamo was on when ``checkpoint`` was called, before torch turned it off."""
    frame = torch_frame()
    for _ in range(8):
        if frame is None:
            return False
        if frame.f_code.co_name == "_fn" and frame.f_code.co_filename == torch._dynamo.eval_frame.__file__:
            return frame.f_locals.get("prior") is not None
        frame = frame.f_back
    return False


def _count_call(watches: tuple[Scope, ...], called_object: Any, at: Frame | None) -> bool:
    """Count a call of a program's function or a torch module; return True if it is new to one of the watches."""
    code = compiled_objects.code_of(called_object)
    if code is not None and not is_library(code.co_filename):
        name = eager_lines.plain_name(code.co_name)
    elif isinstance(called_object, torch.nn.Module) and not isinstance(called_object, torch.fx.GraphModule):
        name, code = type(called_object).__name__, None
    else:  # torch's own function, which may call the program's
        name, code = "", None
    new = False
    for scope in watches:
        new = new or (name, code, at) not in scope.profiled
        scope.profiled.add((name, code, at))
        if name:
            _add(scope, name, code, at, 1)
    return new


def _add(scope: Scope, name: str, code: types.CodeType | None, at: Frame | None, times: int) -> None:
    key = (EAGER_CALL, name, code, at)
    if key not in scope.uncompiled:
        scope.uncompiled[key] = Uncompiled(EAGER_CALL, WHY, name, code, at)
    scope.uncompiled[key].times += times


class _Profiler:
    """Profiler of one call, for the program's functions that run in it with Dynamo off."""

    def __init__(self, watches: tuple[Scope, ...], at: Frame | None, until: types.FrameType | None) -> None:
        self._watches, self._at, self._until = watches, at, until
        self._known: set[types.CodeType] = set()

    @hidden_from_dynamo
    def profile(self, frame: types.FrameType, event: str, argument: object) -> None:
        """Handle one event of Python's profiler."""
        if event == "call":
            code = frame.f_code
            if code in self._known or get_eval_frame_callback() is not None or scopes.current() is not None:
                return
            if not _is_query(frame):
                self._known.add(code)
                if not _is_foreign(code) and not is_ours(frame.f_globals):
                    with observing(self._watches, claims.CHECKPOINTS):
                        for scope in self._watches:
                            _add(scope, eager_lines.plain_name(code.co_name), code, self._at, 0)
        elif event == "return" and frame is self._until:
            self.stop()

    def stop(self) -> None:
        """Stop profiling; it may be repeated."""
        self._until = None
        if sys.getprofile() == self.profile:
            sys.setprofile(None)


def _is_query(frame: types.FrameType) -> bool:
    """Return True if torch queries the program for a context or policy instead of calling the checkpointed function."""
    by = frame.f_back.f_code if frame.f_back is not None else frame.f_code
    return by.co_filename == _FILE and by.co_name not in _CALLERS


def _is_foreign(code: types.CodeType) -> bool:
    """Return True if a code object is not the program's, or is part of a function, such as a comprehension."""
    part = code.co_name.startswith("<") and code.co_name != "<lambda>"
    return part or is_library(code.co_filename) or is_generated(code)
