"""Choice of the kernel of ``scaled_dot_product_attention`` for the target; its C++ chooses by the device of its
inputs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.attention import SDPBackend

from ...record.device import DeviceModel
from . import attention_rules, torch_settings
from .attention_rules import Call
from .device_interfaces import MARK, PHASE
from .device_queries import DeviceQueries, traced_line
from .replacements import Replacements, is_marked

MAY_DIFFER = (
    "which fused attention is called is PyTorch's choice at run time, also by its version and its libraries'; here it "
    "follows PyTorch's rules for shapes, types and the switches of its back ends"
)

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd

ALIGNED = 8
"""Multiple of elements to which PyTorch pads the inputs of flash and efficient attention (``attention.cpp``)."""


def place(places: Replacements, model: DeviceModel, queries: DeviceQueries) -> None:
    """Make this thread choose as the target would while it traces for it."""
    operator = torch.ops.aten.scaled_dot_product_attention.default
    batched = _adds_batch_dimension(operator)  # before the operator is replaced
    capability = int(model.figure("major") or 0), int(model.figure("minor") or 0)
    choose = _mps if model.device == "mps" else _Cuda(capability, queries)
    if model.device == "cuda":
        _place_queries(places, capability)
        _place_order(places, capability)
    chosen = _Attention(operator, choose, model.device, batched)
    places.entry(operator.py_kernels, _COMPOSITE, chosen)  # for a mode that decomposes it in inference mode
    operator._dispatch_cache.clear()
    places.add(operator._dispatch_cache.clear)
    # For everything else, such as the count of eager operators, which only uses the dispatcher's kernels.
    library = torch.library.Library("aten", "IMPL")
    places.add(library._destroy)
    library.impl("scaled_dot_product_attention", chosen, f"Autograd{model.device.upper()}")


def _place_order(places: Replacements, capability: tuple[int, int]) -> None:
    """Set the device's order of back ends, as PyTorch does on first use, unless the program has set an order."""
    before = torch_settings.attention_order()
    set_by_device = tuple(before) == attention_rules.CUDNN_ORDER and torch.cuda.is_available()
    if tuple(before) == attention_rules.DEFAULT_ORDER or set_by_device:
        torch_settings.set_attention(({}, [*attention_rules.device_order(capability)]))
        places.add(torch_settings.set_attention, ({}, before))


def _place_queries(places: Replacements, capability: tuple[int, int]) -> None:
    """Answer the program's queries of the rules during tracing, consistently with the choice here."""
    places.attribute(torch.backends.cuda, "is_flash_attention_available", PHASE, lambda: True)
    for name, backend in (
        ("flash", SDPBackend.FLASH_ATTENTION),
        ("efficient", SDPBackend.EFFICIENT_ATTENTION),
        ("cudnn", SDPBackend.CUDNN_ATTENTION),
    ):
        places.attribute(torch.backends.cuda, f"can_use_{name}_attention", PHASE, _can(backend, capability))


def _can(backend: Any, capability: tuple[int, int]) -> Callable[..., bool]:
    def can(params: Any, debug: bool = False) -> bool:
        call = Call(
            params.query,
            params.key,
            params.value,
            params.attn_mask,
            params.dropout,
            params.is_causal,
            params.enable_gqa,
        )
        there = params.query.device.type == "cuda" and attention_rules.is_enabled(backend)
        return bool(there and attention_rules.CAN[backend](call, capability))

    return can


@functools.cache
def _adds_batch_dimension(operator: Any) -> bool:
    """Return True if this PyTorch turns three-dimensional inputs into a batch of one before it chooses a kernel, as
    2.15 does on each device; older ones use the math implementation."""
    with torch.inference_mode(False), torch.enable_grad():
        q = torch.empty(1, 1, 8, dtype=torch.float32, device="meta", requires_grad=True)
        return str(operator(q, q, q).grad_fn.name()).startswith("Squeeze")


class _Attention:
    def __init__(self, operator: Any, choose: Any, device: str, batched: bool) -> None:
        self._operator, self._choose, self._device = operator, choose, device
        self._batched = batched

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_marked(MARK) or self._is_torchs(*args, **kwargs):
            return self._operator._op_dk(_COMPOSITE, *args, **kwargs)
        if self._batched:
            return self._with_batch_dimension(*args, **kwargs)
        return self._choose(*args, **kwargs)

    def _with_batch_dimension(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, *more: Any, **by: Any
    ) -> Any:
        given = (query, key, value)
        if any(t.dim() != 3 for t in given):
            return self._choose(*given, attn_mask, *more, **by)
        given = tuple(t.unsqueeze(0) for t in given)
        while attn_mask is not None and attn_mask.dim() < 4:
            attn_mask = attn_mask.unsqueeze(0)
        return self._choose(*given, attn_mask, *more, **by).squeeze(0)

    def _is_torchs(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, *more: Any, **by: Any
    ) -> bool:
        """Return True if the C++ does the same as on the device: for tensors of the CPU, empty ones, and invalid
        ones."""
        given = (query, key, value)
        masks = (None, torch.bool, torch.float32, query.dtype)
        return (
            any(t.device.type != self._device or t.dtype != query.dtype or t.dim() < 2 for t in given)
            or getattr(attn_mask, "dtype", None) not in masks
            or any(isinstance(size, int) and size == 0 for t in given for size in t.shape)
        )


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
    aten = torch.ops.aten
    mask = _additive(attn_mask, query, float("-inf"))
    call = Call(query, key, value, mask, dropout_p, is_causal, enable_gqa)
    if dropout_p == 0 and not call.needs_gradient:
        if enable_gqa:
            key, value = _repeated(query, key, value)
        return aten._scaled_dot_product_attention_math_for_mps(
            query, key, value, mask, dropout_p, is_causal, None, scale=scale
        )[0]
    return _math_attention(call, mask, scale)


class _Cuda:
    def __init__(self, capability: tuple[int, int], queries: DeviceQueries) -> None:
        self._capability, self._queries = capability, queries

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
        call = Call(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
        taken = attention_rules.choice(call, self._capability)
        self._report(call, taken)
        lowest = -65504.0 if taken == SDPBackend.CUDNN_ATTENTION else float("-inf")
        mask = _additive(attn_mask, query, lowest)
        if taken == SDPBackend.MATH:
            return _math_attention(call, mask, scale)
        if taken == SDPBackend.FLASH_ATTENTION:
            return _flash(call, scale)
        aten = torch.ops.aten
        if taken == SDPBackend.CUDNN_ATTENTION:
            results = aten._scaled_dot_product_cudnn_attention(
                query, key, value, mask, call.needs_gradient, dropout_p, is_causal, False, scale=scale
            )
        else:
            if mask is not None:
                mask = _padded_rows(mask).expand(query.size(0), query.size(1), query.size(2), key.size(2))
            results = aten._scaled_dot_product_efficient_attention(
                query, key, value, mask, call.needs_gradient, dropout_p, is_causal, scale=scale
            )
        return results[0]

    def _report(self, call: Call, taken: Any) -> None:
        line = traced_line()
        instead = attention_rules.uncertainty(call, self._capability, taken) if line is not None else ""
        if instead:
            self._queries.put(
                "chosen",
                "scaled_dot_product_attention",
                f"{attention_rules.BACKEND_NAMES[taken]} ({instead})",
                line,
                once=True,
            )


@contextlib.contextmanager
def all_backends() -> Iterator[None]:
    """Let the CPU use any of its back ends for the duration, whichever the program enabled for the device, since only
    the values matter."""
    on, order = torch_settings.attention()
    torch_settings.set_attention(({name: True for name in on}, order))
    try:
        yield
    finally:
        torch_settings.set_attention((on, order))


def _math_attention(call: Call, mask: Any, scale: float | None) -> Any:
    return torch.ops.aten._scaled_dot_product_attention_math(
        call.query,
        call.key,
        call.value,
        mask,
        call.dropout,
        call.causal,
        None,
        scale=scale,
        enable_gqa=call.grouped,
    )[0]


def _flash(call: Call, scale: float | None) -> Any:
    width = call.query.size(-1)
    if scale is None:  # by the head size before padding
        scale = float(1.0 / torch.sym_sqrt(width))
    given = [_padded_head(t) for t in (call.query, call.key, call.value)]
    result = torch.ops.aten._scaled_dot_product_flash_attention(
        *given, call.dropout, call.causal, False, scale=scale
    )[0]
    return result if result.size(-1) == width else result[..., :width]


def _padded_head(tensor: Any) -> Any:
    over = tensor.size(-1) % ALIGNED
    return tensor if over == 0 else torch.nn.functional.pad(tensor, [0, ALIGNED - over])


def _additive(mask: Any, query: Any, lowest: float) -> Any:
    """Return a boolean mask as an additive one; any other unchanged."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    nothing = torch.scalar_tensor(lowest, dtype=query.dtype, device=mask.device)
    return torch.ops.aten.where.ScalarSelf(mask, 0.0, nothing)


def _padded_rows(mask: Any) -> Any:
    """Return a mask whose rows are aligned as efficient attention requires."""
    strides = mask.stride()
    dense = all(isinstance(s, int) and s % ALIGNED == 0 for s in strides[:-1]) and strides[-1] == 1
    if dense:
        return mask
    width = mask.size(-1)
    return torch.nn.functional.pad(mask, [0, ALIGNED - width % ALIGNED])[..., :width]


def _repeated(query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    return (
        key.repeat_interleave(query.size(-3) // key.size(-3), -3),
        value.repeat_interleave(query.size(-3) // value.size(-3), -3),
    )
