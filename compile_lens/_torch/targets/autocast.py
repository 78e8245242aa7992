"""Regions of autocast in which the real device would cast, and what stands for it cannot.

Where Dynamo traces, the dispatcher casts as on the device. Told are regions that plain Python enters, whose operators
ran on tensors of the CPU, and regions that were off before the capture began: torch switches off each that is made for
a device that it does not have.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from ...record.graph import Frame
from ..ground.undo import Undo
from .device_interfaces import MARK, PHASE
from .device_queries import Questions, frame_at, internal, written_by_dynamo
from .replacements import Places, not_compiled, on

CAST = "nothing was cast: Python that is not traced runs with tensors of the CPU"
CPU = "it cast, as Python that is not traced runs with tensors of the CPU"
BROKE = (
    "around what broke the graph in it: that ran with tensors of the CPU, of which nothing was cast; what was traced "
    "was cast"
)
CPU_BROKE = "around what broke the graph in it: that ran with tensors of the CPU, which it cast"
_OFF_BEFORE = "it was off before the capture, by torch as there is no such device, or by the program"
OFF = f"nothing was cast: {_OFF_BEFORE}"
SCALER = {
    "scale": f"nothing was scaled: {_OFF_BEFORE}",
    "unscale_": f"nothing was divided by the scale: {_OFF_BEFORE}",
    "step": f"the optimizer's step was taken, whatever the gradients: {_OFF_BEFORE}",
    "update": f"no scale was changed: {_OFF_BEFORE}",
}
"""By method of a ``GradScaler`` that is off, what became of it."""


def place(places: Places, kind: str, questions: Questions) -> None:
    """Listen for regions on marked threads, and for the scaler beside them; ``kind`` is the device's."""
    traced: Traced = {}
    _untraced(places, kind, questions, traced)
    _traced(places, kind, questions, traced)
    _scaler(places, kind, questions)


def _scaler(places: Places, kind: str, questions: Questions) -> None:
    """Torch switches a ``GradScaler`` off where there is no such device. Each of its methods asks itself whether it is
    on, which is listened to: a method in the place of torch's own would be traced."""
    if "_enabled" not in vars(torch.amp.GradScaler):
        places.add(delattr, torch.amp.GradScaler, "_enabled")
        torch.amp.GradScaler._enabled = _Enabled(kind, questions)


class _Enabled:
    def __init__(self, kind: str, questions: Questions) -> None:
        self._kind = kind
        self._put = torch.compiler.disable(questions.put)
        not_compiled(_Enabled.__get__)
        not_compiled(_Enabled.__set__)

    def __get__(self, scaler: Any, owner: Any = None) -> Any:
        enabled = vars(scaler)["_enabled"]
        method = sys._getframe(1)
        frame = method.f_back
        if on(MARK) and not enabled and vars(scaler).get("_device") == self._kind and frame is not None:
            code, name = frame.f_code, method.f_code.co_name
            if name in SCALER and not internal(code.co_filename):
                line = frame_at(code.co_filename, frame.f_lineno, code.co_name)
                self._put("called", f"torch.amp.GradScaler({self._kind!r}).{name}()", SCALER[name], line)
        return enabled

    def __set__(self, scaler: Any, value: Any) -> None:
        vars(scaler)["_enabled"] = value


def _told(
    questions: Questions,
    mode: tuple[Any, Any, Any],
    kind: str,
    before: bool,
    frame: Frame | None,
    broke: bool = False,
) -> None:
    device, dtype, enabled = mode
    name = f"torch.autocast({str(device)!r}, {dtype or torch.get_autocast_dtype(str(device))})"
    if device == kind and not enabled and before:
        questions.put("entered", name, OFF, frame)
    elif enabled and not on(PHASE) and device in (kind, "cpu"):
        on_device, on_cpu = (BROKE, CPU_BROKE) if broke else (CAST, CPU)
        questions.put("entered", name, on_device if device == kind else on_cpu, frame)


Traced = dict[tuple[str, str, Any, Any], Frame]
"""By file, function, device and type, the line on which Dynamo last entered a region: code that it wrote has none."""


def _untraced(places: Places, kind: str, questions: Questions, traced: Traced) -> None:
    autocast = torch.amp.autocast_mode.autocast
    real_enter, init = autocast.__enter__, autocast.__init__.__code__
    available: Any = getattr(torch.amp.autocast_mode, "is_autocast_available", None)
    made: weakref.WeakSet[Any] = weakref.WeakSet()

    def asked_by_init(*args: Any) -> Any:
        frame = sys._getframe(2)
        if frame.f_code is init:
            made.add(frame.f_locals["self"])
        return available(*args)

    def enter(mode: Any) -> Any:
        found = real_enter(mode)
        note(mode, sys._getframe(2))
        return found

    def entered(mode: Any, frame: Any) -> None:
        while frame is not None and frame.f_code.co_filename.endswith("autocast_mode.py"):
            if frame.f_code.co_name == "_enter_autocast":
                return  # a graph of Dynamo's
            frame = frame.f_back
        if frame is not None and not internal(frame.f_code.co_filename):
            line = frame_at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            of = (mode.device, mode.fast_dtype, mode._enabled)
            broke = written_by_dynamo(frame.f_code)
            if broke:
                line = traced.get((line.file, line.function, of[0], of[1]), line)
            _told(questions, of, kind, mode not in made, line, broke)

    note = torch.compiler.disable(entered)
    for owner, name, ours in (
        (torch.amp.autocast_mode, "is_autocast_available", asked_by_init),
        (autocast, "__enter__", enter),
    ):
        not_compiled(ours)
        places.attribute(owner, name, MARK, ours)


def _traced(places: Places, kind: str, questions: Questions, traced: Traced) -> None:
    from torch._dynamo.variables.ctx_manager import AutocastModeVariable

    real: Any = getattr(AutocastModeVariable, "enter", None)

    def enter(variable: Any, *args: Any) -> Any:
        found = real(variable, *args)
        at = _line_of(args[0]) if args else None
        if at is not None:
            device, dtype = variable.target_values[:2]
            key = at.file, at.function, device, dtype
            # What comes after a break enters it anew, on another line.
            if key not in traced or "with" in at.text:
                traced[key] = at
        if args and variable.source is not None:  # an object that was there before the frame
            line = at or _decorated(args[0])
            _told(questions, (*variable.target_values, True)[:3], kind, True, line)
        return found

    places.attribute(AutocastModeVariable, "enter", MARK, enter)


def _line_of(tx: Any) -> Frame | None:
    """The innermost line of the program's that Dynamo is at."""
    for _ in range(100):
        if tx is None:
            return None
        file = getattr(getattr(tx, "f_code", None), "co_filename", "")
        if file and not internal(file):
            summary = tx.frame_summary()
            return frame_at(summary.filename, summary.lineno or 0, summary.name)
        tx = getattr(tx, "parent", None)
    return None


def _decorated(tx: Any) -> Frame | None:
    """Where a function begins that autocast decorates: the frame that Dynamo is at is the decorator's."""
    cell = getattr(tx, "symbolic_locals", {}).get("func")
    function = getattr(cell, "pre_existing_contents", None)
    realize = getattr(function, "realize", None)
    function = realize() if realize is not None else function
    code = getattr(function, "get_code", lambda: None)()
    if code is None or internal(code.co_filename):
        return None
    return frame_at(code.co_filename, code.co_firstlineno, code.co_name)


@contextlib.contextmanager
def regions_stay() -> Iterator[None]:
    """For the duration, regions for CUDA that the program makes, upon import for example, are not switched off."""
    import torch.cuda.amp.common as amp

    with Undo() as undo, undo:
        for owner, name, answer in (
            (amp, "amp_definitely_not_available", False),
            (torch.cuda, "is_bf16_supported", True),
        ):
            undo.add(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, lambda *ignored, answer=answer: answer)
        yield
