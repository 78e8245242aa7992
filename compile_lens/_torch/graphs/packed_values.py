"""Compact storage of float64 values until they are read, as differences from the same values in their own dtypes.

A difference is as large as eager's own error and is stored in as many bits as the value, so it is exact to 2**-24 of
that error for float32, and to 2**-8 for half precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.fx
from torch.utils import _pytree

from ..ground.storage import address

MIN_ELEMENTS = 1 << 14
"""Number of elements below which a value is not packed."""


class PackedValue:
    """A float64 tensor, stored as the tensor in its own dtype and the difference from it, None if that is zero."""

    def __init__(self, own: torch.Tensor, difference: torch.Tensor | None) -> None:
        self._own, self._difference = own, difference

    def tensor(self) -> torch.Tensor:
        """Return the float64 tensor."""
        value = self._own.to(torch.float64)
        return value if self._difference is None else value.add_(self._difference)


def unpacked(value: Any) -> Any:
    """Return an operator's value with its packed tensors unpacked."""
    return _pytree.tree_map(lambda one: one.tensor() if isinstance(one, PackedValue) else one, value)


def pack(wide: dict[torch.fx.Node, Any], own: dict[torch.fx.Node, Any]) -> None:
    """Pack the float64 tensors of nodes' values, with one difference for all views of the same memory."""
    views: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
    nodes = [node for node in wide if node.op != "placeholder" and node in own]
    for node in nodes:
        for one, other in _pairs(wide[node], own[node]):
            views.setdefault(address(one), []).append((one, other))
    packed: dict[int, PackedValue] = {}
    for pairs in views.values():
        difference = _difference(pairs)
        if difference is not False:
            for one, other in pairs:
                part = difference if difference is None else _view(difference, one)
                packed[id(one)] = PackedValue(other, part)
    if packed:
        for node in nodes:
            wide[node] = _pytree.tree_map(lambda one: packed.get(id(one), one), wide[node])


def _pairs(wide: Any, own: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for one, other in zip(_pytree.tree_leaves(wide), _pytree.tree_leaves(own)):
        tensors = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
        if (
            tensors
            and one.dtype == torch.float64
            and one.layout == torch.strided
            and one.numel() >= MIN_ELEMENTS
            and address(one)
        ):
            yield one, other


def _difference(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor | bool | None:
    """Return the difference of two memories with the same views: None if it is zero, False if it is not finite or the
    views differ or do not cover the memory."""
    if not all(_is_same_view(one, other) for one, other in pairs):
        return False
    if len({address(other) for _, other in pairs}) > 1:
        return False
    one, other = pairs[0]
    difference = (one - other).to(torch.float32 if other.dtype == torch.float32 else torch.bfloat16)
    largest = float(difference.abs().max())
    if largest == 0.0:
        return None
    return difference if largest < float("inf") else False


def _is_same_view(one: torch.Tensor, other: torch.Tensor) -> bool:
    narrow = other.is_floating_point() and other.layout == torch.strided and other.itemsize < one.itemsize
    return (
        narrow
        and one.shape == other.shape
        and one.stride() == other.stride()
        and all(x.untyped_storage().nbytes() == x.numel() * x.itemsize for x in (one, other))
        and torch.empty_like(one, device="meta").stride() == one.stride()  # the tensor is dense
    )


def _view(memory: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return memory.as_strided(like.size(), like.stride())
