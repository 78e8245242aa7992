"""Forward operators of derivatives that the program itself takes (``torch.func.grad``, ``torch.autograd.grad``).

Torch attributes all nodes of such a derivative to the one call that requested it. While the call is traced, a hook on
each of autograd's backward nodes records the graph nodes that it creates, under the forward operator's sequence number.
Hooks of torch and of the program are unchanged.
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
"""Key in ``node.meta`` of a derivative's node with the ``from_node`` trail of its forward operator, one per level of
derivatives; the operator itself may be removed as unused."""


@hook("torch.autograd:_engine_run_backward", claims.ORIGINS)
def note_derivatives(draft: Draft, real: Any, outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """Run autograd's engine; if an operator of the program that is being traced calls it, record the backward node of
    each new graph node. AOTAutograd's own call for the joint graph belongs to no operator."""
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
    """Return the graph being traced, or None."""
    return getattr(getattr(get_proxy_mode(), "tracer", None), "graph", None)


def _backward_nodes(start: Iterable[Any]) -> list[Any]:
    """Return autograd's backward nodes reachable from ``start``, each once."""
    seen: dict[Any, None] = dict.fromkeys(function for function in start if function is not None)
    pending = list(seen)
    while pending:
        for function, _ in pending.pop().next_functions:
            if function is not None and function not in seen:
                seen[function] = None
                pending.append(function)
    return list(seen)


def _trails(graph: torch.fx.Graph, numbers: list[int]) -> dict[int, tuple[Any, ...]]:
    """Return the ``from_node`` trails of the operators with these sequence numbers of autograd.

    With several levels of derivatives an operator has a number at each, and its node has the last: the node is the
    first whose number is at least the operator's and below the next operator's.
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
    """Return the hooks before and after a backward node, which mark the graph nodes created in between."""
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
