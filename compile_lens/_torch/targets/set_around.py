"""What a program set for everything that runs in its process, of which the child has nothing: hooks of all modules,
and modes that see each operator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch.nn.modules.module as modules
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _python_dispatch
from torch.utils._device import DeviceContext

from ...record.device import Question
from .questions import line_running

HOOKS = tuple(
    f"_global_{kind}_hooks" for kind in ("forward_pre", "forward", "backward_pre", "backward")
)  # those of registration call nothing while a program runs
"""Where torch keeps what ``register_module_forward_hook`` and its like were given."""

without_modes = _python_dispatch._disable_current_modes
"""A context in which no mode sees what is done to tensors."""

NOT_THERE = "which stays in this process: the code is of the program without it"


def found() -> tuple[Question, ...]:
    """Each, with the line from which the capture was asked for."""
    frame = line_running()
    if frame is None:
        return ()
    return tuple(Question(name, NOT_THERE, frame, kind="kept") for name in _names())


def _names() -> Iterator[str]:
    for name in HOOKS:
        if getattr(modules, name, None):
            yield f"a hook of all modules (torch.nn.modules.module.{name})"
    for mode in _get_current_function_mode_stack():
        if not isinstance(mode, DeviceContext):  # which crosses
            yield f"a mode around the capture ({_called(mode)})"
    stance = getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)
    if getattr(stance, "backend", None) is not None:
        yield "torch.compiler.set_stance(force_backend=…)"
    for mode in _python_dispatch._get_current_dispatch_mode_stack():
        if not isinstance(mode, FakeTensorMode):  # in which tensors are made that have no data
            yield f"a mode around the capture ({_called(mode)})"


def _called(mode: Any) -> str:
    return f"{type(mode).__module__}.{type(mode).__qualname__}".removeprefix("__main__.")
