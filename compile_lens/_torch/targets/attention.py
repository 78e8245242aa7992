"""``scaled_dot_product_attention`` picks its kernel in C++, by the device of its inputs: here by the target's."""

from __future__ import annotations

from typing import Any

import torch

from ...record.device import DeviceModel
from .interfaces import MARK
from .replaced import Places, on

MAY_DIFFER = (
    "which fused attention is called is PyTorch's choice at run time (by versions, shapes and settings of its "
    "backends); here it follows the rules for shapes and types alone"
)


def place(places: Places, model: DeviceModel) -> None:
    """Choose as the target would, while this thread traces for it."""
    operator = torch.ops.aten.scaled_dot_product_attention.default
    major = model.figure("major")
    choose = _mps if model.device == "mps" else _Cuda(major if isinstance(major, int) else 0)
    for key in (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd):
        places.entry(operator.py_kernels, key, _Chosen(operator, key, choose))
    operator._dispatch_cache.clear()
    places.add(operator._dispatch_cache.clear)


class _Chosen:
    def __init__(self, operator: Any, key: Any, choose: Any) -> None:
        self._operator, self._key, self._choose = operator, key, choose

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not on(MARK):
            return self._operator._op_dk(self._key, *args, **kwargs)
        return self._choose(*args, **kwargs)


def _mps(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if enable_gqa:
        key, value = _repeated(query, key, value)
    aten = torch.ops.aten
    if dropout_p == 0 and not _needs_gradient(query, key, value):
        return aten._scaled_dot_product_attention_math_for_mps(
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale
        )[0]
    return aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale
    )[0]


class _Cuda:
    def __init__(self, major: int) -> None:
        self._major = major

    def __call__(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if enable_gqa:
            key, value = _repeated(query, key, value)
        aten = torch.ops.aten
        width = query.size(-1)
        half = query.dtype in (torch.float16, torch.bfloat16)
        if half and attn_mask is None and self._major >= 8 and width <= 256 and width % 8 == 0:
            return aten._scaled_dot_product_flash_attention(
                query, key, value, dropout_p, is_causal, False, scale=scale
            )[0]
        if query.dtype == torch.float64:
            return aten._scaled_dot_product_attention_math(
                query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale
            )[0]
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                nothing = torch.zeros_like(attn_mask, dtype=query.dtype)
                attn_mask = nothing.masked_fill(~attn_mask, float("-inf"))
            attn_mask = attn_mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))
        return aten._scaled_dot_product_efficient_attention(
            query,
            key,
            value,
            attn_mask,
            _needs_gradient(query, key, value),
            dropout_p,
            is_causal,
            scale=scale,
        )[0]


def _repeated(query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    return (
        key.repeat_interleave(query.size(-3) // key.size(-3), -3),
        value.repeat_interleave(query.size(-3) // value.size(-3), -3),
    )


def _needs_gradient(*tensors: Any) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
