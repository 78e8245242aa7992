"""Autocast regions in which the real device would cast and the stand-in cannot.

In traced code the dispatcher casts as on the device. Recorded are regions that untraced Python enters, whose operators
run on CPU tensors, and regions that were off before the capture, since torch turns off autocast for an absent device.
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
from .device_queries import DeviceQueries, frame_at, is_dynamo_code, is_internal
from .replacements import Replacements, is_marked, skip_in_dynamo

NOT_CAST = "nothing was cast: untraced Python runs with CPU tensors"
CAST_ON_CPU = "it cast, since untraced Python runs with CPU tensors"
NOT_CAST_AT_BREAK = (
    "around the graph break in it: the code there ran with CPU tensors, and nothing was cast; traced code was "
    "cast"
)
CAST_AT_BREAK = "around the graph break in it: the code there ran with CPU tensors, which it cast"
_OFF_BEFORE = (
    "it was off before the capture (torch disabled it, as there is no such device, or the program did)"
)
OFF = f"nothing was cast: {_OFF_BEFORE}"
SCALER = {
    "scale": f"nothing was scaled: {_OFF_BEFORE}",
    "unscale_": f"nothing was divided by the scale: {_OFF_BEFORE}",
    "step": f"the optimizer's step was taken, whatever the gradients: {_OFF_BEFORE}",
    "update": f"no scale was changed: {_OFF_BEFORE}",
}
"""Effect of each method of a disabled ``GradScaler``."""


def place(places: Replacements, kind: str, queries: DeviceQueries) -> None:
    """Observe autocast regions and gradient scalers on marked threads; ``kind`` is the device type."""
    traced: Traced = {}
    _place_untraced(places, kind, queries, traced)
    _place_traced(places, kind, queries, traced)
    _scaler(places, kind, queries)


def _scaler(places: Replacements, kind: str, queries: DeviceQueries) -> None:
    """Observe gradient scalers, which torch disables without the device. Each method reads ``_enabled``, which is
    observed, since Dynamo would trace a replaced method."""
    if "_enabled" not in vars(torch.amp.GradScaler):
        places.add(delattr, torch.amp.GradScaler, "_enabled")
        torch.amp.GradScaler._enabled = _Enabled(kind, queries)


class _Enabled:
    def __init__(self, kind: str, queries: DeviceQueries) -> None:
        self._kind = kind
        self._put = torch.compiler.disable(queries.put)
        skip_in_dynamo(_Enabled.__get__)
        skip_in_dynamo(_Enabled.__set__)

    def __get__(self, scaler: Any, owner: Any = None) -> Any:
        enabled = vars(scaler)["_enabled"]
        method = sys._getframe(1)
        frame = method.f_back
        if (
            is_marked(MARK)
            and not enabled
            and vars(scaler).get("_device") == self._kind
            and frame is not None
        ):
            code, name = frame.f_code, method.f_code.co_name
            if name in SCALER and not is_internal(code.co_filename):
                line = frame_at(code.co_filename, frame.f_lineno, code.co_name)
                self._put("called", f"torch.amp.GradScaler({self._kind!r}).{name}()", SCALER[name], line)
        return enabled

    def __set__(self, scaler: Any, value: Any) -> None:
        vars(scaler)["_enabled"] = value


def _note_region(
    queries: DeviceQueries,
    mode: tuple[Any, Any, Any],
    kind: str,
    before: bool,
    frame: Frame | None,
    broke: bool = False,
) -> None:
    device, dtype, enabled = mode
    name = f"torch.autocast({str(device)!r}, {dtype or torch.get_autocast_dtype(str(device))})"
    if device == kind and not enabled and before:
        queries.put("entered", name, OFF, frame)
    elif enabled and not is_marked(PHASE) and device in (kind, "cpu"):
        on_device, on_cpu = (NOT_CAST_AT_BREAK, CAST_AT_BREAK) if broke else (NOT_CAST, CAST_ON_CPU)
        queries.put("entered", name, on_device if device == kind else on_cpu, frame)


Traced = dict[tuple[str, str, Any, Any], Frame]
"""The line on which Dynamo last entered a region, which generated code lacks, by file, function, device and dtype."""


def _place_untraced(places: Replacements, kind: str, queries: DeviceQueries, traced: Traced) -> None:
    autocast = torch.amp.autocast_mode.autocast
    real_enter, init = autocast.__enter__, autocast.__init__.__code__
    available: Any = getattr(torch.amp.autocast_mode, "is_autocast_available", None)
    checked_modes: weakref.WeakSet[Any] = weakref.WeakSet()

    def note_init(*args: Any) -> Any:
        frame = sys._getframe(2)
        if frame.f_code is init:
            checked_modes.add(frame.f_locals["self"])
        return available(*args)

    def enter(mode: Any) -> Any:
        result = real_enter(mode)
        note(mode, sys._getframe(2))
        return result

    def entered(mode: Any, frame: Any) -> None:
        while frame is not None and frame.f_code.co_filename.endswith("autocast_mode.py"):
            if frame.f_code.co_name == "_enter_autocast":
                return  # in a graph from Dynamo
            frame = frame.f_back
        if frame is not None and not is_internal(frame.f_code.co_filename):
            line = frame_at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
            of = (mode.device, mode.fast_dtype, mode._enabled)
            broke = is_dynamo_code(frame.f_code)
            if broke:
                line = traced.get((line.file, line.function, of[0], of[1]), line)
            _note_region(queries, of, kind, mode not in checked_modes, line, broke)

    note = torch.compiler.disable(entered)
    for owner, name, ours in (
        (torch.amp.autocast_mode, "is_autocast_available", note_init),
        (autocast, "__enter__", enter),
    ):
        skip_in_dynamo(ours)
        places.attribute(owner, name, MARK, ours)


def _place_traced(places: Replacements, kind: str, queries: DeviceQueries, traced: Traced) -> None:
    from torch._dynamo.variables.ctx_manager import AutocastModeVariable

    real: Any = getattr(AutocastModeVariable, "enter", None)

    def enter(variable: Any, *args: Any) -> Any:
        result = real(variable, *args)
        at = _line_of(args[0]) if args else None
        if at is not None:
            device, dtype = variable.target_values[:2]
            key = at.file, at.function, device, dtype
            # A resume function enters the region again, on another line.
            if key not in traced or "with" in at.text:
                traced[key] = at
        if args and variable.source is not None:  # the object was created before the frame
            line = at or _decorated_line(args[0])
            _note_region(queries, (*variable.target_values, True)[:3], kind, True, line)
        return result

    places.attribute(AutocastModeVariable, "enter", MARK, enter)


def _line_of(tx: Any) -> Frame | None:
    """Return the program's innermost line that the translator is at, or None."""
    for _ in range(100):
        if tx is None:
            return None
        file = getattr(getattr(tx, "f_code", None), "co_filename", "")
        if file and not is_internal(file):
            summary = getattr(
                tx, "frame_summary", None
            )  # a later torch may rename it; then the line is unknown
            frame = summary() if summary is not None else None
            return None if frame is None else frame_at(frame.filename, frame.lineno or 0, frame.name)
        tx = getattr(tx, "parent", None)
    return None


def _decorated_line(tx: Any) -> Frame | None:
    """Return the first line of a function decorated with autocast, when Dynamo's frame is the decorator's."""
    cell = getattr(tx, "symbolic_locals", {}).get("func")
    function = getattr(cell, "pre_existing_contents", None)
    realize = getattr(function, "realize", None)
    function = realize() if realize is not None else function
    code = getattr(function, "get_code", lambda: None)()
    if code is None or is_internal(code.co_filename):
        return None
    return frame_at(code.co_filename, code.co_firstlineno, code.co_name)


@contextlib.contextmanager
def regions_stay() -> Iterator[None]:
    """Keep torch, for the duration, from turning off autocast for CUDA in objects that the program creates, for example
    on import."""
    import torch.cuda.amp.common as amp

    with Undo() as undo, undo:
        for owner, name, answer in (
            (amp, "amp_definitely_not_available", False),
            (torch.cuda, "is_bf16_supported", True),
        ):
            undo.add(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, lambda *ignored, answer=answer: answer)
        yield
