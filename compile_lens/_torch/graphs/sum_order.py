"""Eager PyTorch's sums in sequential order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

SUMS = frozenset(
    getattr(packet, name)
    for packet in (aten.sum, aten.mean, aten.convolution_backward, aten.cumsum, aten.cumprod)
    for name in packet.overloads()
)
"""Operators whose order of summation ``SequentialSums`` changes."""


class SequentialSums(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """A mode that computes sums, means and the gradient of a convolution's bias by sequential addition, and scans in
    the type of their result.

    Eager adds in a tree, whose error hardly grows with the length; a loop over rows adds sequentially. Eager's scans
    are in float64 on a CPU, a GPU's in float32. All are correct.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        if packet in (aten.sum, aten.mean) and not func._schema.is_mutable:
            dims = args[1] if len(args) > 1 else (kwargs or {}).get("dim")
            total = in_sequence(args[0], dims, result)
            if packet is aten.mean and result.numel():
                total = total / (args[0].numel() / result.numel())
            return total.to(result.dtype)
        if packet is aten.convolution_backward and result[2] is not None:
            over = [0, *range(2, args[0].dim())]
            return (*result[:2], in_sequence(args[0], over, result[2]).to(result[2].dtype))
        if packet in _STEPS and not func._schema.is_mutable and result.dim() and result.is_floating_point():
            return _scanned(args[0], args[1], _STEPS[packet], result)
        return result


_STEPS: dict[Any, Any] = {aten.cumsum: torch.add, aten.cumprod: torch.mul}


def _scanned(x: torch.Tensor, dim: int, step: Any, like: torch.Tensor) -> torch.Tensor:
    """Return the scan of a tensor, each number computed from the one before in at least float32, as ``like``."""
    wide = x.to(torch.promote_types(like.dtype, torch.float32)).movedim(dim, 0)
    scanned = wide.clone()
    for i in range(1, len(wide)):
        step(scanned[i - 1], wide[i], out=scanned[i])
    return torch.empty_like(like).copy_(scanned.movedim(0, dim))


def in_sequence(x: torch.Tensor, dims: Sequence[int] | None, like: torch.Tensor) -> torch.Tensor:
    """Return the sum of a tensor over ``dims`` (None or empty for all) in the shape of ``like``; ``like`` itself if the
    order cannot matter."""
    if not (x.dim() and x.numel() and like.is_floating_point() and x.layout == torch.strided):
        return like
    over = [d % x.dim() for d in dims] if dims else list(range(x.dim()))
    kept = [d for d in range(x.dim()) if d not in over]
    length = math.prod(x.shape[d] for d in over)
    # As in eager, half precision is summed in float32.
    rows = x.to(torch.promote_types(like.dtype, torch.float32)).permute(*over, *kept).reshape(length, -1)
    start = rows.new_zeros(1, rows.shape[1])
    return start.index_add_(0, torch.zeros(length, dtype=torch.int64), rows).reshape(like.shape)
