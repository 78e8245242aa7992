"""A module with objects that cannot be sent to another process beside ones that can, under consecutive names."""

from __future__ import annotations

import threading
from typing import Any

import torch


class Held:
    def __init__(self) -> None:
        self.values = [1, 2, 3]


a_first: Any = torch.ones(3)
_both = Held()
b_broken: Any = (_both, threading.Lock())
c_after: Any = (_both, _both)
d_lock: Any = threading.Lock()
e_last: Any = torch.zeros(2)


def asks() -> Any:
    return a_first, b_broken, c_after, d_lock, e_last
