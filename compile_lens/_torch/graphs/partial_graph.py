"""A graph with some operators compiled and the others run eagerly, to find those that a compiler gets wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch.fx
from torch.fx.passes.split_module import split_module

from ...record.divergence import OPERATOR, Transformation
from ..ground.limit import Limit
from ..ground.recorder import Draft
from ..ground.transformations import described
from .fx_values import target_text

Compile = Callable[[torch.fx.GraphModule, list[Any]], Callable[..., Any]]

BEFORE, COMPILED, AFTER = range(3)
"""Parts of the graph in execution order."""


def partly_compiled(gm: torch.fx.GraphModule, limit: Limit, draft: Draft, compile_graph: Compile) -> Any:
    """Return a callable for a graph, which on its first call compiles the operators that ``limit`` allows."""
    parts: dict[torch.fx.Node, int] = {}
    for node in gm.graph.nodes:
        if node.op.startswith("call_"):
            allowed = limit.allows(OPERATOR, functools.partial(_described, node, draft))
            parts[node] = COMPILED if allowed else AFTER if COMPILED in parts.values() else BEFORE
    if COMPILED not in parts.values():
        return gm.forward
    split = split_module(gm, None, lambda node: parts.get(node, BEFORE), keep_original_order=True)
    inner = getattr(split, f"submod_{COMPILED}")
    setattr(split, f"submod_{COMPILED}", _Compiled(inner, compile_graph))
    return split.forward


def _described(node: torch.fx.Node, draft: Draft) -> Transformation:
    """Return the description of one operator of a graph."""
    name = target_text(node.target)
    return described(OPERATOR, name, [node.meta.get("stack_trace")], [node.name], [name], draft)


class _Compiled(torch.nn.Module):  # type: ignore[misc]
    """A part of a graph, compiled for the inputs of its first call."""

    def __init__(self, gm: torch.fx.GraphModule, compile_graph: Compile) -> None:
        super().__init__()
        (output,) = (node for node in gm.graph.nodes if node.op == "output")
        self.single = not isinstance(output.args[0], (tuple, list))
        if self.single:  # backends require graphs that return a tuple
            output.args = ((output.args[0],),)
            gm.recompile()
        self.graph = gm
        self.compile_graph = compile_graph
        self.compiled: Callable[..., Any] | None = None

    def forward(self, *inputs: Any) -> Any:
        """Run the compiled part."""
        if self.compiled is None:
            self.compiled = self.compile_graph(self.graph, list(inputs))
        results = self.compiled(*inputs)
        return results[0] if self.single else results
