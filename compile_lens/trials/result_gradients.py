"""Gradients of the results of repeated calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from .._torch.ground.gradient_edges import gradient_edges, sum_by_leaf
from .._torch.session import differentiable, result_tensors
from ..errors import UsageError

_GRAPH_OF_AN_EARLIER_CALL = "backward through the graph a second time"
"""Part of torch's error for a result that depends on an earlier call whose backward has already run."""

_KEEPS_A_GRAPH = (
    "the function keeps a tensor with its autograd graph from one call to the next, so the backward of its second call "
    "fails, as in a loop of plain PyTorch: detach what it keeps (self.total = (self.total + y).detach()), or "
    "measure the forward single with benchmark(..., backward=False)"
)


@dataclasses.dataclass
class ResultGradients:
    """Gradients of the sum of a result's tensors, for every leaf that they depend on.

    If a call replaces the data of a leaf (``replaces_data``), the gradient edges are looked up in each result.
    """

    at: tuple[int, ...]
    leaves: tuple[torch.Tensor, ...]
    ones: tuple[torch.Tensor, ...]
    single: bool
    replaces_data: bool = False

    @classmethod
    def of(cls, result: Any) -> ResultGradients | None:
        """Return the gradients to take from results like this one; None if no leaf requires grad."""
        roots = differentiable(result)
        leaves = {id(leaf): leaf for leaf, _ in gradient_edges(roots)}
        if not leaves:
            return None
        places = [id(t) for t in result_tensors(result)]
        gradients = cls(
            at=tuple(places.index(id(t)) for t in roots),
            leaves=tuple(leaves.values()),
            ones=tuple(torch.ones_like(t) for t in roots),
            single=isinstance(result, torch.Tensor),
        )
        gradients.observe(result)
        return gradients

    def observe(self, result: Any) -> None:
        """Set ``replaces_data`` if autograd would not find the leaves of a result by their tensors."""
        edges = gradient_edges(self._roots(result))
        self.replaces_data |= any(get_gradient_edge(leaf).node is not edge.node for leaf, edge in edges)

    def _position(self, leaf: torch.Tensor) -> int:
        return next((i for i, one in enumerate(self.leaves) if one is leaf), len(self.leaves))

    def _roots(self, result: Any) -> list[torch.Tensor]:
        results = [result] if self.single else result_tensors(result)
        return [results[i] for i in self.at]

    def take(self, result: Any) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients, one for each leaf. No ``.grad`` is changed; the result's autograd graph is freed."""
        roots = self._roots(result)
        edges = gradient_edges(roots) if self.replaces_data else []
        edges.sort(key=lambda edge: self._position(edge[0]))
        inputs = [edge for _, edge in edges] or self.leaves
        try:
            gradients = torch.autograd.grad(roots, inputs, self.ones, allow_unused=True)
        except RuntimeError as error:
            if _GRAPH_OF_AN_EARLIER_CALL in str(error):
                raise UsageError(_KEEPS_A_GRAPH) from error
            raise
        if edges:
            return tuple(x for _, x in sum_by_leaf((leaf for leaf, _ in edges), gradients))
        return tuple(gradients)

    def after(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function that makes the call and takes the gradients of its result."""
        return lambda: self.take(call())
