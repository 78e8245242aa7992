"""What torch makes of its graphs for readers that are not there: while a capture compiles, it is left out.

Nothing else hangs on it, and whoever asks for it (by a setting, a variable of the environment, a trace) has it as ever.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from ...versions import torch_version
from ..ground import hook_points, log_filters
from ..ground.hooks import current, factory_hook, hook
from ..ground.recorder import Draft

_LAZY = hook_points.find("torch.fx._lazy_graph_module:_LazyGraphModule")
LazyModule: type[torch.fx.GraphModule] = torch.fx.GraphModule if _LAZY is None else getattr(*_LAZY)
"""Torch's module of a graph that writes its Python when it is called: most graphs never are."""

_MODULE_CLASS = "torch.fx._lazy_graph_module:_get_graph_module_cls"


@hook("torch.fx.graph_module:GraphModule.__new__")
def new_module(draft: Draft, real: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A graph gets a module. Some of torch's passes make one that writes its Python, and compiles it, each time that
    the graph changes; where nothing is built, nobody calls it."""
    if cls is torch.fx.GraphModule and not _runs(draft):
        found = hook_points.find(_MODULE_CLASS)
        cls = cls if found is None else getattr(*found)()  # as the program's own setting has it
    return real(cls, *args, **kwargs)


@hook("torch.fx.graph_module:GraphModule.__deepcopy__")
def copy_for_late_backward(draft: Draft, real: Any, gm: Any, *args: Any) -> Any:
    """AOTAutograd has a copy of the backward compiled, and keeps the graph itself for a backward that is compiled when
    it is called; where nothing is built none is."""
    asked_by = _caller(3)  # past the wrapper, ``deepcopy``
    if _runs(draft) or asked_by != "torch._functorch._aot_autograd.graph_compile":
        return real(gm, *args)
    return gm


def _runs(draft: Draft) -> bool:
    """Whether what is compiled will be called."""
    return draft.recorder.spec.build or draft.recorder.spec.interpret is not None


def _caller(depth: int) -> str:
    """The module of a function that is in progress."""
    return str(sys._getframe(depth + 1).f_globals.get("__name__"))


@hook("torch._inductor.compile_fx:wrap_compiler_debug")
def copy_for_minifier(draft: Draft, real: Any, compiler: Any, *args: Any, **kwargs: Any) -> Any:
    """A graph is copied before it is compiled, for the case that this fails and the minifier is to run."""
    return compiler if torch._dynamo.config.repro_after is None else real(compiler, *args, **kwargs)


@hook("torch._dynamo.repro.after_aot:save_graph_repro")
def write_repro(draft: Draft, real: Any, *args: Any, **kwargs: Any) -> Any:
    """A graph is written as a program of its own: by Inductor, for torch's trace."""
    inductors = _caller(2) == "torch._inductor.compile_fx"  # past the wrapper
    return None if inductors and not log_filters.is_traced() else real(*args, **kwargs)


DEBUG_FILTER = "torch._inductor.pattern_matcher:_should_debug_node"


def debug_filter(real: Callable[[str], bool]) -> Callable[[str], bool]:
    """The pattern matcher asks the environment, for each pattern at each node, whether it is to be told of. That does
    not change while a capture runs."""
    told = bool(os.environ.get("TORCHINDUCTOR_PATTERN_MATCH_DEBUG"))

    def should_debug(node_name: str) -> bool:
        return real(node_name) if told or current() is None else False

    return should_debug


if torch_version() > (2, 11):  # that one never asks
    factory_hook(DEBUG_FILTER)(debug_filter)
