"""What ``torch.utils.checkpoint`` calls outside of any graph: torch turns Dynamo off for such a call, so that it is not
asked about anything in it.

The call is seen where torch makes it. What of the program runs in the first of each is what Python tells a profiler;
later ones are counted.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch
import torch.utils.checkpoint
from torch._C._dynamo.eval_frame import get_eval_frame_callback

from ...record.breaks import NOT_TRACED, Ending
from ...record.eager_frames import EAGER_CALL
from ...record.graph import Frame
from ..frames import eager_lines
from . import compiled_objects, scopes
from .callers import caller, library
from .frame_evaluations import generated
from .observers import noting, observe, ours, unnoticed
from .scopes import Scope, Uncompiled

_WHAT = "what checkpoint calls outside of a graph"
_FILE = torch.utils.checkpoint.__file__
_GENERATOR = "torch.utils.checkpoint:_checkpoint_without_reentrant_generator"
if hasattr(torch.utils.checkpoint, "_checkpoint_without_reentrant_generator_impl"):  # torch 2.15 calls this
    _GENERATOR += "_impl"
_CALL_THE_FUNCTION = ("checkpoint", "forward")
"""Functions in that file that call what they were given; others ask the program for contexts and policies."""

WHY = Ending(
    NOT_TRACED,
    "torch.utils.checkpoint calls it\n  Explanation: where a call of checkpoint is in no graph, torch turns Dynamo off "
    "for it, and does not ask about what runs in it.",
    (),
    "mend what keeps the line of the call out of a graph, or give checkpoint a function that is compiled: "
    "checkpoint(torch.compile(function), …)",
)


@observe(_GENERATOR, _WHAT)
def without_reentrant(real: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """``checkpoint`` is about to call a function, when it has what this makes."""
    _begin(function, sys._getframe(1))
    return real(function, *args, **kwargs)


@observe("torch.utils.checkpoint:CheckpointFunction.forward", _WHAT)
def reentrant(real: Any, context: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """The same with ``use_reentrant=True``: it is called in here."""
    listener = _begin(function, None)
    try:
        return real(context, function, *args, **kwargs)
    finally:
        if listener is not None:
            listener.stop()


def _begin(function: Any, until: types.FrameType | None) -> _Listener | None:
    """Note a call; the first of its kind is listened to, ``until`` a frame returns or it is stopped."""
    mine = scopes.owners() if scopes.current() is None and _was_on() else ()
    listener = None
    if mine:
        with noting(mine, _WHAT):
            at = caller()
            new = _note(mine, compiled_objects.thing(function), at)
            if new and sys.getprofile() is None:
                listener = _Listener(mine, at, until)
                sys.setprofile(listener.heard)
    return listener


def _was_on() -> bool:
    """Whether Dynamo was on where ``checkpoint`` was called, for which torch turned it off."""
    frame: types.FrameType | None = sys._getframe(2)
    for _ in range(8):
        if frame is None:
            return False
        if frame.f_code.co_name == "_fn" and frame.f_code.co_filename == torch._dynamo.eval_frame.__file__:
            return frame.f_locals.get("prior") is not None
        frame = frame.f_back
    return False


def _note(mine: tuple[Scope, ...], thing: Any, at: Frame | None) -> bool:
    """Count a call of what is the program's, or a module of torch's; whether one of the watches meets it first."""
    code = compiled_objects.code_of(thing)
    if code is not None and not library(code.co_filename):
        name = eager_lines.plain(code.co_name)
    elif isinstance(thing, torch.nn.Module) and not isinstance(thing, torch.fx.GraphModule):
        name, code = type(thing).__name__, None
    else:  # torch's own, in which the program's may run
        name, code = "", None
    new = False
    for scope in mine:
        new = new or (name, code, at) not in scope.listened
        scope.listened.add((name, code, at))
        if name:
            _add(scope, name, code, at, 1)
    return new


def _add(scope: Scope, name: str, code: types.CodeType | None, at: Frame | None, times: int) -> None:
    key = (EAGER_CALL, name, code, at)
    if key not in scope.unvisited:
        scope.unvisited[key] = Uncompiled(EAGER_CALL, WHY, name, code, at)
    scope.unvisited[key].times += times


class _Listener:
    """Hears what Python tells a profiler of one call: which functions of the program run in it with Dynamo off."""

    def __init__(self, mine: tuple[Scope, ...], at: Frame | None, until: types.FrameType | None) -> None:
        self._mine, self._at, self._until = mine, at, until
        self._known: set[types.CodeType] = set()

    @unnoticed
    def heard(self, frame: types.FrameType, event: str, argument: object) -> None:
        """One event."""
        if event == "call":
            code = frame.f_code
            if code in self._known or get_eval_frame_callback() is not None or scopes.current() is not None:
                return
            if not _asked(frame):
                self._known.add(code)
                if not _others(code) and not ours(frame.f_globals):
                    with noting(self._mine, _WHAT):
                        for scope in self._mine:
                            _add(scope, eager_lines.plain(code.co_name), code, self._at, 0)
        elif event == "return" and frame is self._until:
            self.stop()

    def stop(self) -> None:
        """Hear no more; it may be repeated."""
        self._until = None
        if sys.getprofile() == self.heard:
            sys.setprofile(None)


def _asked(frame: types.FrameType) -> bool:
    """Whether torch asks the program for a context or a policy, besides the function that it was given."""
    by = frame.f_back.f_code if frame.f_back is not None else frame.f_code
    return by.co_filename == _FILE and by.co_name not in _CALL_THE_FUNCTION


def _others(code: types.CodeType) -> bool:
    """Whether a code is not the program's, or a part of one of its functions."""
    part = code.co_name.startswith("<") and code.co_name != "<lambda>"
    return part or library(code.co_filename) or generated(code)
