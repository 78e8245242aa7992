"""State that a program set around a capture: an autocast region, hooks of all modules, and modes that intercept
operators."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.modules.module as modules
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _python_dispatch
from torch.utils._device import DeviceContext

from ...record import syntax
from ...record.device import DeviceQuery
from ..ground import source_text
from .device_queries import frame_at, is_internal, running_line
from .torch_settings import KINDS

OFF = (
    "around the capture, where it is off (torch disabled it, as there is no such device, or the program did): nothing "
    "was cast. Enter it inside the function"
)


def autocast_region() -> tuple[DeviceQuery, ...]:
    """Return the autocast region around the capture if it is off for every device, with the line of its ``with``, or
    else that of the capture."""
    torch.autocast_increment_nesting()
    inside = torch.autocast_decrement_nesting() > 0
    if not inside or any(map(torch.is_autocast_enabled, KINDS)):
        return ()
    for frame in _program_frames():
        region = _region(frame)
        if region is not None:
            text, line = region
            at = frame_at(frame.f_code.co_filename, line, frame.f_code.co_name)
            return (DeviceQuery(text, OFF, at, kind="entered"),)
    capture_line = running_line()
    return () if capture_line is None else (DeviceQuery("torch.autocast", OFF, capture_line, kind="entered"),)


def _program_frames() -> Iterator[Any]:
    """Yield the program's frames, innermost first."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _region(frame: Any) -> tuple[str, int] | None:
    """Return the text and line of the innermost ``with`` around a frame's line that names autocast."""
    try:
        tree = syntax.parse(source_text.text(frame.f_code.co_filename, frame.f_lineno, frame.f_globals))
    except (SyntaxError, ValueError):
        return None
    best: tuple[str, int] | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.AsyncWith)) and _within(node, frame.f_lineno):
            for item in node.items:
                text = ast.unparse(item.context_expr)
                if "autocast" in text and (best is None or node.lineno >= best[1]):
                    best = text, item.context_expr.lineno
    return best


def _within(node: ast.With | ast.AsyncWith, line: int) -> bool:
    return node.body[0].lineno <= line <= (node.end_lineno or 0)


HOOKS = tuple(
    f"_global_{kind}_hooks" for kind in ("forward_pre", "forward", "backward_pre", "backward")
)  # hooks of registration are not called while a program runs
"""Torch's tables for ``register_module_forward_hook`` and the like."""

without_modes = _python_dispatch._disable_current_modes
"""A context manager that turns off modes for operations on tensors."""

NOT_TRANSFERRED = "which stays in this process: the code is of the program without it"


def process_state() -> tuple[DeviceQuery, ...]:
    """Return the hooks and modes that the child process lacks, with the line of the capture."""
    frame = running_line()
    if frame is None:
        return ()
    return tuple(DeviceQuery(name, NOT_TRANSFERRED, frame, kind="not transferred") for name in _state_names())


def _state_names() -> Iterator[str]:
    for name in HOOKS:
        if getattr(modules, name, None):
            yield f"a hook of all modules (torch.nn.modules.module.{name})"
    for mode in _get_current_function_mode_stack():
        if not isinstance(mode, DeviceContext):  # which is transferred
            yield f"a mode around the capture ({_mode_name(mode)})"
    stance = getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)
    if getattr(stance, "backend", None) is not None:
        yield "torch.compiler.set_stance(force_backend=…)"
    for mode in _python_dispatch._get_current_dispatch_mode_stack():
        if not isinstance(mode, FakeTensorMode):  # under which tensors have no data
            yield f"a mode around the capture ({_mode_name(mode)})"


def _mode_name(mode: Any) -> str:
    return f"{type(mode).__module__}.{type(mode).__qualname__}".removeprefix("__main__.")
