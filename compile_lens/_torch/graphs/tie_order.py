"""Another order of equal elements where torch guarantees none: ``sort`` without ``stable``, ``topk``, ``median``."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

UNORDERED = frozenset(
    (
        aten.sort.default,
        aten.sort.stable,
        aten.topk.default,
        aten.kthvalue.default,
        aten.median.dim,
        aten.nanmedian.dim,
        aten.mode.default,
    )
)
"""Operators that return values along a dimension with their indices, in unspecified order for equal values."""


class Ties(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """A mode in which such operators take the last of equal elements instead of the first, so that a changed result
    depends on an unspecified order. With ``last=False`` nothing changes, for a comparable run under a mode.

    Attributes:
        count: number of calls of these operators.
    """

    def __init__(self, last: bool) -> None:
        super().__init__()
        self.last = last
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = {**{a.name: value for a, value in zip(func._schema.arguments, args)}, **kwargs}
        if func not in UNORDERED or given.get("stable") or not given["self"].dim():
            return func(*args, **kwargs)
        self.count += 1
        if not self.last:
            return func(*args, **kwargs)
        dim = given.get("dim", -1)
        values, indices = func(given["self"].flip(dim), *args[1:], **kwargs)
        return values, given["self"].shape[dim] - 1 - indices
