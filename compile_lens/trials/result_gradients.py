"""Gradients of what a call returns, call after call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge

from .._torch.ground.gradient_edges import gradient_edges
from .._torch.session import differentiable, result_tensors
from ..errors import UsageError

_GRAPH_OF_AN_EARLIER_CALL = "backward through the graph a second time"
"""In torch's error for a result that depends on a call whose backward was taken already."""

_KEEPS_A_GRAPH = (
    "the function keeps a tensor with its autograd graph from one call to the next, so that the backward of its second "
    "call fails, as in a loop of plain PyTorch: detach what it keeps (self.total = (self.total + y).detach()), or "
    "measure the forward alone with benchmark(..., backward=False)"
)


@dataclasses.dataclass
class ResultGradients:
    """Gradients of the sum of a result's tensors, for every leaf that they depend on.

    Where a call replaces the data of a leaf (``moves``), each result is asked for its edges to the leaves.
    """

    at: tuple[int, ...]
    leaves: tuple[torch.Tensor, ...]
    ones: tuple[torch.Tensor, ...]
    alone: bool
    moves: bool = False

    @classmethod
    def of(cls, result: Any) -> ResultGradients | None:
        """Return the gradients to take from results like this one; None where nothing needs a gradient."""
        roots = differentiable(result)
        leaves = {id(leaf): leaf for leaf, _ in gradient_edges(roots)}
        if not leaves:
            return None
        places = [id(t) for t in result_tensors(result)]
        gradients = cls(
            at=tuple(places.index(id(t)) for t in roots),
            leaves=tuple(leaves.values()),
            ones=tuple(torch.ones_like(t) for t in roots),
            alone=isinstance(result, torch.Tensor),
        )
        gradients.observe(result)
        return gradients

    def observe(self, result: Any) -> None:
        """Note whether autograd would find the leaves of a result by the tensors."""
        edges = gradient_edges(self._roots(result))
        self.moves |= any(get_gradient_edge(leaf).node is not edge.node for leaf, edge in edges)

    def _place(self, leaf: torch.Tensor) -> int:
        return next((i for i, one in enumerate(self.leaves) if one is leaf), len(self.leaves))

    def _roots(self, result: Any) -> list[torch.Tensor]:
        results = [result] if self.alone else result_tensors(result)
        return [results[i] for i in self.at]

    def take(self, result: Any) -> tuple[torch.Tensor | None, ...]:
        """The gradients. No ``.grad`` is touched; the result's graph is used up."""
        roots = self._roots(result)
        edges = sorted(gradient_edges(roots), key=lambda e: self._place(e[0])) if self.moves else []
        inputs = [edge for _, edge in edges] or self.leaves
        try:
            return tuple(torch.autograd.grad(roots, inputs, self.ones, allow_unused=True))
        except RuntimeError as error:
            if _GRAPH_OF_AN_EARLIER_CALL in str(error):
                raise UsageError(_KEEPS_A_GRAPH) from error
            raise

    def after(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """The call and then the gradients of what it returned."""
        return lambda: self.take(call())
