"""Calls by ``torch.utils.checkpoint`` outside of any graph: torch turns Dynamo off for such a call, so that Dynamo
evaluates no frame in it.

The call is observed where torch makes it. Python's profiler reports the program's functions in the first of each;
later ones are counted.
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
"""Functions in that file that call what they were given; others query the program for contexts and policies."""

WHY = Ending(
    NOT_TRACED,
    "torch.utils.checkpoint calls it\n  Explanation: where a call of checkpoint is in no graph, torch turns Dynamo off "
    "for it, and does not evaluate what runs in it.",
    (),
    "mend what keeps the line of the call out of a graph, or give checkpoint a function that is compiled: "
    "checkpoint(torch.compile(function), …)",
)


@observe(_GENERATOR, claims.CHECKPOINTS)
def without_reentrant(real: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Note a call by ``checkpoint`` that begins when it has the result."""
    _begin(function, torch_frame())
    return real(function, *args, **kwargs)


@observe("torch.utils.checkpoint:CheckpointFunction.forward", claims.CHECKPOINTS)
def reentrant(real: Any, context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Note a call with ``use_reentrant=True``, which happens in here."""
    profiler = _begin(function, None)
    try:
        return real(context, function, *args, **kwargs)
    finally:
        if profiler is not None:
            profiler.stop()


def _begin(function: Any, until: types.FrameType | None) -> _Profiler | None:
    """Note a call; the first of its kind is profiled, ``until`` a frame returns or it is stopped."""
    mine = scopes.owners() if scopes.current() is None and _dynamo_was_on() else ()
    profiler = None
    if mine:
        with observing(mine, claims.CHECKPOINTS):
            at = caller()
            new = _count_call(mine, compiled_objects.unwrapped(function), at)
            if new and sys.getprofile() is None:
                profiler = _Profiler(mine, at, until)
                sys.setprofile(profiler.profile)
    return profiler


def _dynamo_was_on() -> bool:
    """Return True if Dynamo was on where ``checkpoint`` was called, before torch turned it off."""
    frame = torch_frame()
    for _ in range(8):
        if frame is None:
            return False
        if frame.f_code.co_name == "_fn" and frame.f_code.co_filename == torch._dynamo.eval_frame.__file__:
            return frame.f_locals.get("prior") is not None
        frame = frame.f_back
    return False


def _count_call(mine: tuple[Scope, ...], thing: Any, at: Frame | None) -> bool:
    """Count a call of the program's, or of a module of torch's; return True if one of the watches sees it first."""
    code = compiled_objects.code_of(thing)
    if code is not None and not is_library(code.co_filename):
        name = eager_lines.plain_name(code.co_name)
    elif isinstance(thing, torch.nn.Module) and not isinstance(thing, torch.fx.GraphModule):
        name, code = type(thing).__name__, None
    else:  # torch's own, in which the program's may run
        name, code = "", None
    new = False
    for scope in mine:
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
    """Profiles one call: the functions of the program that run in it with Dynamo off."""

    def __init__(self, mine: tuple[Scope, ...], at: Frame | None, until: types.FrameType | None) -> None:
        self._mine, self._at, self._until = mine, at, until
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
                    with observing(self._mine, claims.CHECKPOINTS):
                        for scope in self._mine:
                            _add(scope, eager_lines.plain_name(code.co_name), code, self._at, 0)
        elif event == "return" and frame is self._until:
            self.stop()

    def stop(self) -> None:
        """Stop profiling; it may be repeated."""
        self._until = None
        if sys.getprofile() == self.profile:
            sys.setprofile(None)


def _is_query(frame: types.FrameType) -> bool:
    """Return True if torch queries the program for a context or a policy, rather than calling its function."""
    by = frame.f_back.f_code if frame.f_back is not None else frame.f_code
    return by.co_filename == _FILE and by.co_name not in _CALLERS


def _is_foreign(code: types.CodeType) -> bool:
    """Return True if a code is not the program's, or is a part of one of its functions."""
    part = code.co_name.startswith("<") and code.co_name != "<lambda>"
    return part or is_library(code.co_filename) or is_generated(code)
