"""Uninitialized memory (``torch.empty`` and its like), filled with a chosen number."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..ground import values
from . import operator_kinds

OPERATORS = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
"""Operators that return uninitialized memory."""


class Filled(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """For the duration, uninitialized memory holds ``number``: what differs with another number depends on it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if operator_kinds.base_name(func) in OPERATORS:
            for tensor in values.tensors(out):
                with torch.no_grad():
                    tensor.fill_(self.number)
        return out
