"""The dtypes of quantized tensors, whose fake values are float32."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx


def quantized_dtype(node: torch.fx.Node) -> torch.dtype | None:
    """Return the dtype that a node quantizes to; None for other nodes."""
    name = getattr(node.target, "__name__", "") if node.op == "call_function" else ""
    if not name.startswith("quantize_per_"):
        return None
    arguments = (*node.args, *node.kwargs.values())
    return next((value for value in arguments if isinstance(value, torch.dtype)), None)


def buffer_dtype(buffer: Any) -> torch.dtype:
    """Return the true dtype of an Inductor buffer, whose own ``get_dtype()`` is that of the fake value."""
    node = getattr(buffer, "origin_node", None)
    return (None if node is None else quantized_dtype(node)) or buffer.get_dtype()
