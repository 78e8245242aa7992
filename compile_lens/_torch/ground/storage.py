"""Tensors and their memory."""

from __future__ import annotations

import sys

import torch


def is_zero(tensor: torch.Tensor) -> bool:
    """Return True for torch's zero tensor, which has sizes and no memory: a gradient that is zero everywhere may be
    one, as that of ``torch.sgn``."""
    return bool(tensor._is_zerotensor())


def address(tensor: torch.Tensor) -> int:
    """Return the address of a strided tensor's memory; 0 for a zero tensor, of which torch raises where it is asked."""
    return 0 if is_zero(tensor) else int(tensor.untyped_storage().data_ptr())


def settled(tensor: torch.Tensor) -> torch.Tensor:
    """Return the plain tensor that a functional collective gives once it has ended; any other tensor as it is.

    Eager PyTorch returns a wrapper that waits at its first use; compiled code has waited.
    """
    functional = sys.modules.get("torch.distributed._functional_collectives")
    wrapper = getattr(functional, "AsyncCollectiveTensor", None)
    if wrapper is None or not isinstance(tensor, wrapper):
        return tensor
    plain: torch.Tensor = tensor.trigger_wait()
    return plain
