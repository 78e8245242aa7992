"""Tensors and their memory."""

from __future__ import annotations

import sys

import torch


def is_zero(tensor: torch.Tensor) -> bool:
    """Return True for torch's zero tensor, which has sizes but no memory: gradients that are zero everywhere may be
    one, such as that of ``torch.sgn``."""
    return bool(tensor._is_zerotensor())


def address(tensor: torch.Tensor) -> int:
    """Return the address of a strided tensor's memory; 0 for a zero tensor, for which torch would raise."""
    return 0 if is_zero(tensor) else int(tensor.untyped_storage().data_ptr())


def settled(tensor: torch.Tensor) -> torch.Tensor:
    """Wait for a functional collective and return its plain tensor; return any other tensor unchanged.

    Eager PyTorch returns a wrapper that waits on first use; compiled code has already waited.
    """
    functional = sys.modules.get("torch.distributed._functional_collectives")
    wrapper = getattr(functional, "AsyncCollectiveTensor", None)
    if wrapper is None or not isinstance(tensor, wrapper):
        return tensor
    plain: torch.Tensor = tensor.trigger_wait()
    return plain
