"""The FX text of graphs, generated once: torch writes it too, for its trace, and so do several stages of one graph."""

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
"""Options of ``print_readable``: shapes, strides and devices; symbolic sizes as sympy writes them."""

_TEXT = "compile_lens_text"
"""Attribute of a graph: its state at its last text, and that text."""

_NUMBERED = "mutation_region_id"
"""Key under which torch's pattern matcher numbers all nodes that it looks at; no text shows it."""

_PLACE = re.compile(r"(# File: (?P<file>.+?):(?P<line>\d+) in .*?), code: .*")

State = list[Any]


def readable(gm: torch.fx.GraphModule) -> str:
    """The FX text of a graph, with shapes, strides and devices."""
    return _PLACE.sub(_compiled_text, str(gm.print_readable(**TEXT_OPTIONS)))


def _compiled_text(place: re.Match[str]) -> str:
    """Return the comment that names a line, without its text if that is not what was compiled."""
    return place[1] if source_text.is_foreign(place["file"], int(place["line"])) else place[0]


@hook("torch.fx.graph_module:GraphModule.print_readable")
def cached_text(draft: Draft, real: Any, gm: Any, *args: Any, **options: Any) -> Any:
    """Return the text of a graph, written for the record, or by torch for its trace in the same form."""
    now = _state(gm) if not args and options == TEXT_OPTIONS else []
    if not now:
        return real(gm, *args, **options)
    known = vars(gm.graph).get(_TEXT)
    if known is None or not _same(known[0], now):
        known = vars(gm.graph)[_TEXT] = now, real(gm, **options)
    return known[1]


@factory_hook("torch.fx.graph:_parse_stack_trace")
def cached_stack_line(real: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the program's line for a stack trace, which many nodes have, in one text after another."""
    known = functools.lru_cache(maxsize=4096)(real)

    def parse(stack_trace: Any, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs or current() is None or type(stack_trace) is not str:
            return real(stack_trace, *args, **kwargs)
        return known(stack_trace)

    return parse


def _state(gm: torch.fx.GraphModule) -> State:
    """Return everything from which a text is made; empty for a graph with bodies, whose text includes theirs, and if
    torch is to show all that it keeps of a node."""
    if next(gm.named_children(), None) is not None or "FX_GRAPH_SHOW_META" in os.environ:
        return []
    state: State = [type(gm), gm.graph._codegen]
    for node in gm.graph.nodes:
        state += (node, node.name, node.target, node._args, node._kwargs, node.type)
        state += [value for key, value in node.meta.items() if key != _NUMBERED]
    return state


def _same(one: State, other: State) -> bool:
    # The very objects: torch replaces what it changes in a node, and to compare tensors would compute.
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _log_graphs(draft: Draft, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Log the joint graph, or its halves, for torch's log and trace, if somebody listens."""
    return real(*_quiet(args), **kwargs)


for _name in ("_log_joint_graph", "_log_fw_bw_graphs"):
    hook(f"torch._functorch._aot_autograd.graph_compile:{_name}")(_log_graphs)


def _quiet(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a function that logs, with torch's own switch off if nobody listens: it would write the
    graphs all the same."""
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
