"""Another order of equal elements, where torch promises none: ``sort`` without ``stable``, ``topk``, ``median``."""

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
"""Operators that return values of one dimension and the index of each, of equal ones whichever they like."""


class Ties(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """For the duration, such operators take the last of equal elements where they took the first: a result that then
    differs depends on what torch does not promise. With ``last=False`` they do as ever: that run has a mode as well.

    Attributes:
        count: how often one of the operators was called.
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
