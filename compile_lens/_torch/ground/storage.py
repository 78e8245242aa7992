"""Tensors and their memory."""

from __future__ import annotations

import torch


def is_zero(tensor: torch.Tensor) -> bool:
    """Return True for torch's zero tensor, which has sizes and no memory: a gradient that is zero everywhere may be
    one, as that of ``torch.sgn``."""
    return bool(tensor._is_zerotensor())


def address(tensor: torch.Tensor) -> int:
    """Return the address of a strided tensor's memory; 0 for a zero tensor, of which torch raises where it is asked."""
    return 0 if is_zero(tensor) else int(tensor.untyped_storage().data_ptr())
