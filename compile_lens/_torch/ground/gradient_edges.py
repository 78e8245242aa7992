"""Edges of autograd's graph that lead from results to the leaves that they depend on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from .program_hooks import without_torch_function


@without_torch_function
def gradient_edges(roots: list[torch.Tensor]) -> list[tuple[torch.Tensor, GradientEdge]]:
    """Return the autograd leaves that ``roots`` depend on, each with the edge to it.

    A leaf whose ``data`` compiled code replaced has a new edge: by the tensor, ``torch.autograd.grad`` does not find it
    in the graph of that call, though ``backward()`` does. A leaf with both edges is there twice.
    """
    leaves = {id(r): r for r in roots if r.grad_fn is None}
    edges = [(leaf, get_gradient_edge(leaf)) for leaf in leaves.values()]
    seen: set[Any] = {edge.node for _, edge in edges}
    pending = [r.grad_fn for r in roots if r.grad_fn is not None]
    while pending:
        function = pending.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        variable = getattr(function, "variable", None)
        if isinstance(variable, torch.Tensor):
            edges.append((variable, GradientEdge(function, 0)))
        pending.extend(f for f, _ in function.next_functions)
    return edges


def sum_by_leaf(
    leaves: Iterable[torch.Tensor], gradients: Iterable[torch.Tensor | None]
) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    """Return each leaf once, with the sum of the gradients along its edges; None if none of them has one."""
    sums: dict[int, tuple[torch.Tensor, torch.Tensor | None]] = {}
    for leaf, gradient in zip(leaves, gradients, strict=True):
        _, before = sums.get(id(leaf), (leaf, None))
        parts = [part for part in (before, gradient) if part is not None]
        sums[id(leaf)] = leaf, parts[0] + parts[1] if len(parts) == 2 else next(iter(parts), None)
    return list(sums.values())
