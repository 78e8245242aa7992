"""Graphs that plain torch makes of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._dynamo.testing import CompileCounter


def compiled(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], **settings: Any) -> int:
    """Return the number of graphs in a series of calls, whose results are those of eager PyTorch."""
    torch._dynamo.reset()
    counter = CompileCounter()
    call = torch.compile(function, backend=counter, **settings)
    for inputs in calls:
        torch.testing.assert_close(call(*inputs), function(*inputs))
    torch._dynamo.reset()
    return counter.frame_count


def whole(function: Callable[..., Any], *inputs: Any) -> bool:
    """Return True if there is one graph of all of it."""
    try:
        return compiled(function, [inputs], fullgraph=True) == 1
    except torch._dynamo.exc.TorchDynamoException:
        torch._dynamo.reset()
        return False
