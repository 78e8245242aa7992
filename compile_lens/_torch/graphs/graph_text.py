"""The FX text of graphs, cached, since torch also generates it for its trace, and several stages have the same
graph."""

from __future__ import annotations

import dataclasses
import functools
import logging
import operator
import os
import re
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from ..ground import source_text
from ..ground.hooks import current, factory_hook, hook
from ..ground.recorder import Draft

TEXT_OPTIONS = {
    "print_output": False,
    "include_stride": True,
    "include_device": True,
    "fast_sympy_print": True,
}
"""Options of ``print_readable``: with shapes, strides and devices, and sympy's text for symbolic sizes."""

_TEXT = "compile_lens_text"
"""Attribute of a graph with its last text and the state from which that was generated."""

_NUMBERED = "mutation_region_id"
"""Key under which torch's pattern matcher numbers nodes, which does not affect the text."""

_PLACE = re.compile(r"(# File: (?P<file>.+?):(?P<line>\d+) in .*?), code: .*")

State = list[Any]


def readable(gm: torch.fx.GraphModule) -> str:
    """Return the FX text of a graph with shapes, strides and devices."""
    return _PLACE.sub(_compiled_text, str(gm.print_readable(**TEXT_OPTIONS)))


def _compiled_text(place: re.Match[str]) -> str:
    """Return the comment for a line, without the line's text if the file differs from the compiled code."""
    return place[1] if source_text.is_foreign(place["file"], int(place["line"])) else place[0]


@hook("torch.fx.graph_module:GraphModule.print_readable")
def cached_text(draft: Draft, real: Any, gm: Any, *args: Any, **options: Any) -> Any:
    """Return the text of a graph, from the cache if the options are ours and the graph is unchanged."""
    now = _state(gm) if not args and options == TEXT_OPTIONS else []
    if not now:
        return real(gm, *args, **options)
    known = vars(gm.graph).get(_TEXT)
    if known is None or not _same(known[0], now):
        known = vars(gm.graph)[_TEXT] = now, real(gm, **options)
    return known[1]


@factory_hook("torch.fx.graph:_parse_stack_trace")
def cached_stack_line(real: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the program's line of a stack trace, which many nodes share."""
    known = functools.lru_cache(maxsize=4096)(real)

    def parse(stack_trace: Any, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs or current() is None or type(stack_trace) is not str:
            return real(stack_trace, *args, **kwargs)
        return known(stack_trace)

    return parse


def _state(gm: torch.fx.GraphModule) -> State:
    """Return all data that determine a graph's text; empty for a graph with bodies, whose texts it includes, and if
    torch is set to print all metadata."""
    if next(gm.named_children(), None) is not None or "FX_GRAPH_SHOW_META" in os.environ:
        return []
    state: State = [type(gm), gm.graph._codegen]
    for node in gm.graph.nodes:
        state += (node, node.name, node.target, node._args, node._kwargs, node.type)
        state += [value for key, value in node.meta.items() if key != _NUMBERED]
    return state


def _same(one: State, other: State) -> bool:
    # By identity: torch replaces the objects that it changes, and comparing tensors would compute.
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _log_graphs(draft: Draft, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Log the joint graph or its halves only if torch's log or trace is in use."""
    return real(*_quiet(args), **kwargs)


for _name in ("_log_joint_graph", "_log_fw_bw_graphs"):
    hook(f"torch._functorch._aot_autograd.graph_compile:{_name}")(_log_graphs)


def _quiet(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a log function's arguments, with logging off if neither log nor trace is in use, since torch would
    generate the texts anyway."""
    from torch._functorch._aot_autograd import graph_compile

    logs = [getattr(graph_compile, name, None) for name in ("aot_joint_log", "aot_graphs_log")]
    if logging.getLogger("torch.__trace").handlers or any(
        log is None or log.isEnabledFor(logging.INFO) for log in logs
    ):
        return args
    return tuple(
        dataclasses.replace(arg, enable_log=False) if type(arg).__name__ == "AOTConfig" else arg
        for arg in args
    )
