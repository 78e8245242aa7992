"""Derivatives that the program takes itself (``torch.func.grad``, ``torch.autograd.grad``): the op that each is of.

All that autograd computes then bears the mark of the one call that asked for it. While the call is traced, a hook on
each backward node of autograd notes which nodes of the graph it makes, under the number that autograd gave its forward
operator. The hooks of torch and of the program are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.fx
from torch.fx import traceback
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from ...record import claims
from ..ground.hooks import hook
from ..ground.recorder import Draft

FORWARD = "compile_lens_derivative_of"
"""Key in ``node.meta`` under which a node of a derivative keeps what tracing noted for its forward operator, a trail
for each of several levels: that operator itself may be gone, since nothing reads its result."""


@hook("torch.autograd:_engine_run_backward", claims.ORIGINS)
def note_derivatives(draft: Draft, real: Any, outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """Run autograd's engine; if an operator of the program calls it and is traced, note for each node which backward
    node made it. AOTAutograd's own call for the joint graph is of no operator."""
    graph = traced_graph()
    if graph is None or not traceback.get_current_meta().get("from_node"):
        return real(outputs, *args, **kwargs)
    functions = _backward_nodes(one.grad_fn for one in outputs if isinstance(one, torch.Tensor))
    trails = _trails(graph, sorted({function._sequence_nr() for function in functions}))
    handles: list[Any] = []
    for function in functions:
        begin, end = _notes(graph, trails.get(function._sequence_nr(), ()))
        handles += [function.register_prehook(begin), function.register_hook(end)]
    try:
        return real(outputs, *args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()


def traced_graph() -> torch.fx.Graph | None:
    """Return the graph that is being traced; None while nothing is."""
    return getattr(getattr(get_proxy_mode(), "tracer", None), "graph", None)


def _backward_nodes(start: Iterable[Any]) -> list[Any]:
    """Return the backward nodes of autograd from some on, each once."""
    seen: dict[Any, None] = dict.fromkeys(function for function in start if function is not None)
    pending = list(seen)
    while pending:
        for function, _ in pending.pop().next_functions:
            if function is not None and function not in seen:
                seen[function] = None
                pending.append(function)
    return list(seen)


def _trails(graph: torch.fx.Graph, numbers: list[int]) -> dict[int, tuple[Any, ...]]:
    """Return what tracing noted for the operators with these numbers of autograd's.

    Under several levels of derivatives an operator has a number at each, and its node the last of them: it is the first
    node whose number is not below the operator's, and below the next one's.
    """
    first: dict[int, torch.fx.Node] = {}
    for node in graph.nodes:
        first.setdefault(node.meta.get("seq_nr", -1), node)
    trails: dict[int, tuple[Any, ...]] = {}
    for number, after in zip(numbers, (*numbers[1:], max(first, default=0) + 1)):
        node = next((first[one] for one in range(max(number, 0), after) if one in first), None)
        if node is not None:
            trails[number] = (*node.meta.get(FORWARD, ()), node.meta.get("from_node", ()))
    return trails


def _notes(graph: torch.fx.Graph, trails: tuple[Any, ...]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the hooks before and after a backward node, which mark the nodes made meanwhile."""
    last: list[torch.fx.Node] = []

    def begin(*_: Any) -> None:
        last.append(graph._root._prev)

    def end(*_: Any) -> None:
        node = last.pop() if last else graph._root._prev
        while node._next is not graph._root:
            node = node._next
            if trails:
                node.meta.setdefault(FORWARD, trails)

    return begin, end
