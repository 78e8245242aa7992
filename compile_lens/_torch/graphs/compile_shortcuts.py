"""Shortcuts that skip work of torch whose results are not used during a capture.

Nothing else depends on that work, and it is done as usual if requested (by a setting, an environment variable, a
trace).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from ...versions import torch_version
from ..ground import hook_points, log_filters
from ..ground.hook_calls import torch_frame
from ..ground.hooks import current, factory_hook, hook
from ..ground.recorder import Draft

_LAZY = hook_points.find("torch.fx._lazy_graph_module:_LazyGraphModule")
LazyModule: type[torch.fx.GraphModule] = torch.fx.GraphModule if _LAZY is None else getattr(*_LAZY)
"""Torch's graph module that generates its Python code on the first call, which most graphs never get."""

_MODULE_CLASS = "torch.fx._lazy_graph_module:_get_graph_module_cls"


@hook("torch.fx.graph_module:GraphModule.__new__")
def new_module(draft: Draft, real: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Create a lazy graph module unless the compiled code runs. Some of torch's passes create one that regenerates its
    Python code on each change, though without a build it is never called."""
    if cls is torch.fx.GraphModule and not _runs(draft):
        place = hook_points.find(_MODULE_CLASS)
        cls = cls if place is None else getattr(*place)()  # by the program's own setting
    return real(cls, *args, **kwargs)


@hook("torch.fx.graph_module:GraphModule.__deepcopy__")
def copy_for_late_backward(draft: Draft, real: Any, gm: Any, *args: Any) -> Any:
    """Skip AOTAutograd's copy of the backward graph for a later compile, which never happens without a build."""
    if _runs(draft) or _calling_module() != "torch._functorch._aot_autograd.graph_compile":
        return real(gm, *args)
    return gm


def _runs(draft: Draft) -> bool:
    """Return True if the compiled code will be called."""
    return draft.recorder.spec.build or draft.recorder.spec.interpret is not None


def _calling_module() -> str:
    """Return the module name of the hooked function's caller, skipping frames of ``copy``."""
    frame = torch_frame()
    while frame is not None and frame.f_globals.get("__name__") == "copy":
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__"))


@hook("torch._inductor.compile_fx:wrap_compiler_debug")
def copy_for_minifier(draft: Draft, real: Any, compiler: Any, *args: Any, **kwargs: Any) -> Any:
    """Skip the copy of a graph for the minifier, which is only needed if the compile fails, unless it is enabled."""
    return compiler if torch._dynamo.config.repro_after is None else real(compiler, *args, **kwargs)


@hook("torch._dynamo.repro.after_aot:save_graph_repro")
def write_repro(draft: Draft, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Skip the repro program that Inductor writes for torch's trace, unless the trace is in use."""
    inductors = _calling_module() == "torch._inductor.compile_fx"
    return None if inductors and not log_filters.is_traced() else real(*args, **kwargs)


DEBUG_FILTER = "torch._inductor.pattern_matcher:_should_debug_node"


def debug_filter(real: Callable[[str], bool]) -> Callable[[str], bool]:
    """Cache, during a capture, the environment variable that the pattern matcher reads for each pattern at each
    node."""
    debugs = bool(os.environ.get("TORCHINDUCTOR_PATTERN_MATCH_DEBUG"))

    def should_debug(node_name: str) -> bool:
        return real(node_name) if debugs or current() is None else False

    return should_debug


if torch_version() > (2, 11):  # torch 2.11 does not read it
    factory_hook(DEBUG_FILTER)(debug_filter)
