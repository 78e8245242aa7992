"""The attention kernel that a CUDA device uses, by the rules of PyTorch's ``sdp_utils.cpp`` and the device model.

PyTorch's own C++ queries the device, which is absent. These are its rules for dense tensors, in its order; the
program's switches (``sdpa_kernel``, ``enable_flash_sdp`` and the like) are read when the call is traced.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import guard_or_false
from torch.nn.attention import SDPBackend

from ...versions import torch_version
from . import cudnn
from .torch_settings import attention_on, attention_order

HALF_TYPES = (torch.float16, torch.bfloat16)

DEFAULT_ORDER = (1, 2, 0, 3, 4)
"""PyTorch's default order of back ends (``aten/src/ATen/Context.h``)."""

CUDNN_ORDER = (3, 1, 2, 0, 4)
"""The order on some devices (``priority_order``)."""

BACKEND_NAMES = {
    SDPBackend.MATH: "PyTorch's own operators",
    SDPBackend.FLASH_ATTENTION: "flash attention",
    SDPBackend.EFFICIENT_ATTENTION: "efficient attention",
    SDPBackend.CUDNN_ATTENTION: "cuDNN's attention",
}
"""Names of the back ends for users."""

NO_KERNEL = "No available kernel. Aborting execution."
"""PyTorch's error if no enabled back end can run."""


@dataclass(frozen=True)
class Call:
    """One call of attention."""

    query: Any
    key: Any
    value: Any
    mask: Any
    dropout: float
    causal: bool
    grouped: bool

    @property
    def needs_gradient(self) -> bool:
        return torch.is_grad_enabled() and any(t.requires_grad for t in (self.query, self.key, self.value))


def is_enabled(backend: Any) -> bool:
    """Return True if the program has not disabled a back end."""
    names = {
        SDPBackend.MATH: "math",
        SDPBackend.FLASH_ATTENTION: "flash",
        SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
        SDPBackend.CUDNN_ATTENTION: "cudnn",
    }
    return backend in names and attention_on(names[backend])


def device_order(capability: tuple[int, int]) -> tuple[int, ...]:
    """Return PyTorch's order on a device unless the program sets one (``check_prefer_cudnn_attention``)."""
    preferred = os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") != "1"
    return CUDNN_ORDER if preferred and capability[0] in (9, 10) and cudnn.VERSION > 91500 else DEFAULT_ORDER


def choice(call: Call, capability: tuple[int, int], order: Iterable[int] | None = None) -> Any:
    """Return the back end that is used.

    Raises:
        RuntimeError: if no enabled back end can run, with PyTorch's message.
    """
    for number in order or attention_order():
        backend = SDPBackend(number)
        if is_enabled(backend) and CAN[backend](call, capability):
            return backend
    raise RuntimeError(NO_KERNEL)


def uncertainty(call: Call, capability: tuple[int, int], taken: Any) -> str:
    """Return what the device may use instead with other versions of its libraries; ``""`` if the choice is certain."""
    if tuple(attention_order()) == CUDNN_ORDER:
        older = choice(call, capability, DEFAULT_ORDER)
        if older != taken:
            others = "" if _cudnn(call, capability, width=128) else ", and with others for heads of this size"
            wheels = "as PyTorch's wheels for CUDA 12 may have"
            return f"with a cuDNN up to 9.15.0, {wheels}{others}, it takes {BACKEND_NAMES[older]}"
    if taken == SDPBackend.MATH and call.grouped and is_enabled(SDPBackend.EFFICIENT_ATTENTION):
        if _efficient(call, capability, groups=True):
            return "newer versions of PyTorch take efficient attention for groups of heads"
    return ""


def _flash(call: Call, capability: tuple[int, int]) -> bool:
    width = call.query.size(-1)
    if not (
        _four_dimensions(call)
        and call.mask is None
        and _same(width, call.key.size(-1))
        and _same(width, call.value.size(-1))
        and guard_or_false(width <= 256)
        and (8, 0) <= capability <= (12, 1)
        and call.query.dtype in HALF_TYPES
    ):
        return False
    if call.needs_gradient and ((8, 6) <= capability <= (8, 9) or capability >= (12, 0)):
        if not (guard_or_false(width <= 192) or (call.dropout == 0 and guard_or_false(width > 224))):
            return False
    if call.causal and not _same(call.query.size(-2), call.key.size(-2)):
        return False
    return _heads(call, True) and _some_length(call) and _last_is_dense(call, singletons=True)


def _efficient(call: Call, capability: tuple[int, int], groups: bool = False) -> bool:
    half = call.query.dtype in HALF_TYPES
    aligned = (16 // (2 if half else 4)) if capability[0] >= 8 or (capability[0] == 7 and half) else 1
    kinds = (*HALF_TYPES, torch.float32) if capability[0] >= 8 else (torch.float16, torch.float32)
    return (
        (5, 0) <= capability <= (12, 1)
        and _four_dimensions(call)
        and call.query.dtype in kinds
        and _same(call.query.size(-1), call.key.size(-1))
        and all(
            guard_or_false(t.size(-1) % aligned == 0) and guard_or_false(t.size(-1) > 0)
            for t in (call.query, call.value)
        )
        and _some_length(call)
        and _last_is_dense(call, singletons=False)
        and _heads(call, groups)
    )


def _cudnn(call: Call, capability: tuple[int, int], width: int = 0) -> bool:
    """Return True if cuDNN can run the call, with heads of at most ``width`` elements, by default as many as this
    PyTorch supports with its wheel's cuDNN."""
    width = width or _widest_of_cudnn(call, capability)
    return (
        (8, 0) <= capability <= (12, 1)
        and _four_dimensions(call)
        and call.query.dtype in HALF_TYPES
        and not (
            torch.are_deterministic_algorithms_enabled()
            and not torch.is_deterministic_algorithms_warn_only_enabled()
        )
        and _mask_fits(call)
        and (call.dropout * 16 == int(call.dropout * 16) or torch_version() < (2, 12))
        and _some_length(call)
        and _last_is_dense(call, singletons=True)
        and _heads(call, True, same=False)
        and all(
            guard_or_false(t.size(-1) <= width) and guard_or_false(t.size(-1) % 8 == 0)
            for t in (call.query, call.value)
        )
        and guard_or_false(call.key.size(-2) != 1)
        and (call.dropout == 0 or guard_or_false(call.query.size(-2) != 1))
    )


def _widest_of_cudnn(call: Call, capability: tuple[int, int]) -> int:
    """Return the largest head size for cuDNN, by ``check_cudnn_tensor_shapes`` and, from torch 2.14 on,
    ``check_cudnn_d256_bprop_head_dim``."""
    width, of_values = call.query.size(-1), call.value.size(-1)
    narrower = _same(width, 192) and _same(of_values, 128)
    if torch_version() < (2, 14):
        return 256 if capability == (9, 0) else 192 if capability[0] == 10 and narrower else 128
    if capability != (9, 0) and capability[0] != 10:
        return 128
    trainable = narrower or (_same(width, 256) and _same(of_values, 256))
    return 256 if trainable or not call.needs_gradient else 128


def _math(call: Call, capability: tuple[int, int]) -> bool:
    return True


CAN = {
    SDPBackend.MATH: _math,
    SDPBackend.FLASH_ATTENTION: _flash,
    SDPBackend.EFFICIENT_ATTENTION: _efficient,
    SDPBackend.CUDNN_ATTENTION: _cudnn,
}


def _same(one: Any, other: Any) -> bool:
    return bool(guard_or_false(one == other))


def _four_dimensions(call: Call) -> bool:
    return all(t.dim() == 4 for t in (call.query, call.key, call.value))


def _heads(call: Call, groups: bool, same: bool = True) -> bool:
    """Return True if batch sizes are equal, and numbers of heads are equal or, with ``groups``, divisible for grouped
    heads."""
    query, key, value = call.query, call.key, call.value
    if not (_same(query.size(0), key.size(0)) and _same(query.size(0), value.size(0))):
        return False
    if call.grouped and groups:
        if same and not _same(key.size(-3), value.size(-3)):
            return False
        return all(guard_or_false(query.size(-3) % t.size(-3) == 0) for t in (key, value))
    return _same(query.size(-3), key.size(-3)) and _same(query.size(-3), value.size(-3))


def _some_length(call: Call) -> bool:
    return not any(_same(t.size(-2), 0) for t in (call.query, call.key))


def _last_is_dense(call: Call, singletons: bool) -> bool:
    given = all(_same(t.stride(-1), 1) for t in (call.query, call.key, call.value))
    if singletons:
        given = given or _same(call.query.size(-1), 1)
    return bool(given) and (call.mask is None or _same(call.mask.stride(-1), 1))


def _mask_fits(call: Call) -> bool:
    mask, query, key = call.mask, call.query, call.key
    if mask is None:
        return True
    if mask.requires_grad or mask.dim() not in (2, 4):
        return False
    whole = (query.size(0), query.size(1), query.size(2), key.size(2))[-mask.dim() :]
    return all(_same(have, want) or _same(have, 1) for have, want in zip(mask.shape, whole))
