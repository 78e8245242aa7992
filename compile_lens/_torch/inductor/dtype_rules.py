"""Torch's rules for the types of operators' results, which it sets up anew for every expression that it writes.

There is one object that has them, but Python initialises it each time that it is asked for: thousands of times in a
compile, a twentieth of its time. Torch 2.15 does so only where a rule came since; here it is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...versions import torch_version
from ..ground.hooks import current, made_hook

SET_UP = "torch._inductor.dtype_propagation:DtypePropagationOpsHandler.__init__"


def set_up(real: Callable[[Any], None]) -> Callable[[Any], None]:
    """The object is asked for: its rules are set up if they were not while captures ran, or if one came since."""
    from torch._inductor.utils import op_dtype_propagation_rules as rules

    done: list[Any] = []

    def init(handler: Any) -> None:
        if current() is not None:
            now = [handler, *rules.values()]  # of two lists, what is the very same is not looked into
            if now == done:
                return
            done[:] = now
        real(handler)

    return init


if torch_version() < (2, 15):
    made_hook(SET_UP)(set_up)
