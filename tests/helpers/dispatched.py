"""Operators that plain PyTorch dispatches."""

from __future__ import annotations

import collections
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Dispatched(TorchDispatchMode):
    """Counts in ``work``, by its name, each operator that is dispatched and is no view."""

    def __init__(self) -> None:
        super().__init__()
        self.work: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.work.update([] if func.is_view else [str(func)])
        return func(*args, **(kwargs or {}))
