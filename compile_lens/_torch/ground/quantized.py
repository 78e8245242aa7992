"""The types of quantized tensors, of which fake values are float32."""

from __future__ import annotations

import torch
import torch.fx


def quantized_dtype(node: torch.fx.Node) -> torch.dtype | None:
    """Return the type that a node quantizes to; None for other nodes."""
    name = getattr(node.target, "__name__", "") if node.op == "call_function" else ""
    if not name.startswith("quantize_per_"):
        return None
    given = (*node.args, *node.kwargs.values())
    return next((value for value in given if isinstance(value, torch.dtype)), None)
