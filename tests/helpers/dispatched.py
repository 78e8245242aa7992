"""Operators that plain PyTorch dispatches."""

from __future__ import annotations

import collections
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class Dispatched(TorchDispatchMode):
    """Counts each dispatched operator that is not a view by its name, in ``work``."""

    def __init__(self) -> None:
        super().__init__()
        self.work: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.work.update([] if func.is_view else [str(func)])
        return func(*args, **(kwargs or {}))
