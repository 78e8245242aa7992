"""Convolutions and cuDNN on the target.

The presence of cuDNN decides which convolution is used and the layout of its result, the implementation of
``grid_sample``, and the batch norm. The answers are those of ``aten/src/ATen/cuda/detail/CUDAHooks.cpp`` in a torch
built with cuDNN; the rules based on them are in torch's own C++. On an Apple device the convolution is torch's own for
Metal, which only torch for a Mac includes.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch

from ...versions import torch_version
from .device_interfaces import PHASE
from .replacements import Replacements

_COMPILED, _DILATED, _DEPTHWISE, _BFLOAT16, _VERSION, _RUNTIME, _EPSILON = 28, 30, 31, 32, 34, 35, 41
"""Indices in the virtual function table of CUDA's hooks, by ATen/detail/CUDAHooksInterface.h (torch 2.11 to 2.15)."""

WHEEL_VERSIONS = {(2, 11): 91900, (2, 12): 92000, (2, 13): 92000, (2, 14): 92400, (2, 15): 92600}
"""The cuDNN of each torch's wheel for CUDA 13 (``nvidia-cudnn-cu13`` in its requirements)."""

VERSION = WHEEL_VERSIONS.get(torch_version(), WHEEL_VERSIONS[max(WHEEL_VERSIONS)])
"""The assumed version. Torch queries it to choose an attention (cuDNN's comes first from 9.15.1 on), and for tensors of
more than 2 ** 31 elements, with which cuDNN runs a convolution from 9.3 on, but no depthwise one from 9.10 to 9.15."""

_version = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: VERSION)
_epsilon = ctypes.CFUNCTYPE(ctypes.c_double)(lambda: 0.0)  # CUDNN_BN_MIN_EPSILON of cudnn.h
"""Kept alive forever, since torch's C++ calls them."""


def place_cudnn(functions: Any, head: int, major: int, yes: Any, no: Any) -> None:
    """Make the table ``functions`` report cuDNN, with its features on a device of capability ``major``."""
    functions[head + _DEPTHWISE] = yes if major >= 7 else no
    functions[head + _BFLOAT16] = yes if major >= 8 else no
    if torch._C._has_cudnn:  # a CUDA build has cuDNN even without a driver
        return
    functions[head + _COMPILED] = functions[head + _DILATED] = yes
    functions[head + _VERSION] = functions[head + _RUNTIME] = _address(_version)
    functions[head + _EPSILON] = _address(_epsilon)


def _address(function: Any) -> Any:
    return ctypes.cast(function, ctypes.c_void_p).value


def is_used(kind: str) -> bool:
    """Return True if torch uses cuDNN, in channels-last layout, for a fake tensor of ``kind``. Needs an active fake
    mode."""
    x = torch.empty(2, 4, 8, 8, dtype=torch.float32, device=kind).to(memory_format=torch.channels_last)
    if not torch._C._get_cudnn_enabled():  # the program disabled it
        return True
    y = torch.nn.functional.conv2d(x, torch.empty(4, 4, 3, 3, dtype=torch.float32, device=kind))
    return bool(torch.cudnn_is_acceptable(x) and y.is_contiguous(memory_format=torch.channels_last))


MAX_EXAMPLE_ELEMENTS = 2**31 - 1
"""Limit on the elements of one example, in the input or the result, for Metal's convolution."""


def place(places: Replacements, kind: str) -> None:
    """Give a fake convolution the layout that it would have on the device."""
    if kind == "mps":
        _metal(places)


def _metal(places: Replacements) -> None:
    backends: Any = getattr(torch._C, "_ConvBackend", None)
    real: Any = getattr(torch._C, "_select_conv_backend", None)
    if real is None or not hasattr(backends, "Mps"):
        return

    def select(*args: Any, **kwargs: Any) -> Any:
        backend = real(*args, **kwargs)
        if backend != backends.Overrideable:
            return backend
        arguments = {**dict(zip(("input", "weight"), args)), **kwargs}  # torch 2.11 names all of them
        return backends.Mps if arguments["input"].is_mps and _fits_metal(arguments) else backend

    places.attribute(torch._C, "_select_conv_backend", PHASE, select)


def _fits_metal(arguments: dict[str, Any]) -> bool:
    from torch._meta_registrations import calc_conv_nd_return_shape

    named = "input", "weight", "stride", "padding", "dilation", "transposed", "groups", "output_padding"
    result = calc_conv_nd_return_shape(*(arguments[name] for name in named))
    return bool(
        math.prod(arguments["input"].shape[1:]) <= MAX_EXAMPLE_ELEMENTS
        and math.prod(result[1:]) <= MAX_EXAMPLE_ELEMENTS
    )
