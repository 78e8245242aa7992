"""What torch's C++ asks of cuDNN before any of its kernels runs: whether it is there decides which convolution is taken
and in which layout its result comes, how ``grid_sample`` is computed, and which batch norm.

The answers are those of ``aten/src/ATen/cuda/detail/CUDAHooks.cpp`` where torch was built with cuDNN. The rules that
follow from them are in torch's own C++, and are not repeated here.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch

from ...versions import torch_version
from .device_interfaces import PHASE
from .replacements import Places

_COMPILED, _DILATED, _DEPTHWISE, _BFLOAT16, _VERSION, _RUNTIME, _EPSILON = 28, 30, 31, 32, 34, 35, 41
"""Places in the table of CUDA's hooks, by ATen/detail/CUDAHooksInterface.h (the same in torch 2.11 to 2.15)."""

OF_WHEELS = {(2, 11): 91900, (2, 12): 92000, (2, 13): 92000, (2, 14): 92400, (2, 15): 92600}
"""The cuDNN that each torch's wheel for CUDA 13 brings (``nvidia-cudnn-cu13`` in what it requires)."""

VERSION = OF_WHEELS.get(torch_version(), OF_WHEELS[max(OF_WHEELS)])
"""The one that is taken to be there. Torch asks which it is where it chooses an attention (it takes cuDNN's first from
9.15.1 on), and where tensors have more than 2 ** 31 elements: from 9.3 on a convolution is cuDNN's, between 9.10 and
9.15 not a depthwise one."""

_version = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: VERSION)
_epsilon = ctypes.CFUNCTYPE(ctypes.c_double)(lambda: 0.0)  # CUDNN_BN_MIN_EPSILON of cudnn.h
"""They are held for ever: torch's C++ calls them."""


def tell(functions: Any, head: int, major: int, yes: Any, no: Any) -> None:
    """Let the table ``functions`` say that cuDNN is there, and what it can on a device of capability ``major``."""
    functions[head + _DEPTHWISE] = yes if major >= 7 else no
    functions[head + _BFLOAT16] = yes if major >= 8 else no
    if torch._C._has_cudnn:  # a CUDA build has it, without a driver too
        return
    functions[head + _COMPILED] = functions[head + _DILATED] = yes
    functions[head + _VERSION] = functions[head + _RUNTIME] = _address(_version)
    functions[head + _EPSILON] = _address(_epsilon)


def _address(function: Any) -> Any:
    return ctypes.cast(function, ctypes.c_void_p).value


def taken(kind: str) -> bool:
    """Whether torch takes cuDNN for a fake tensor of ``kind``, in its layout. Fake tensors must be on."""
    x = torch.empty(2, 4, 8, 8, dtype=torch.float32, device=kind).to(memory_format=torch.channels_last)
    if not torch._C._get_cudnn_enabled():  # the program's wish
        return True
    y = torch.nn.functional.conv2d(x, torch.empty(4, 4, 3, 3, dtype=torch.float32, device=kind))
    return bool(torch.cudnn_is_acceptable(x) and y.is_contiguous(memory_format=torch.channels_last))


LARGEST = 2**31 - 1
"""Elements of one example, of the input or of the result, that Metal's convolution can take."""


def place(places: Places, kind: str) -> None:
    """Let a fake convolution be laid out as on the device."""
    if kind == "mps":
        _metal(places)


def _metal(places: Places) -> None:
    backends: Any = getattr(torch._C, "_ConvBackend", None)
    real: Any = getattr(torch._C, "_select_conv_backend", None)
    if real is None or not hasattr(backends, "Mps"):
        return

    def select(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        if found != backends.Overrideable:
            return found
        given = {**dict(zip(("input", "weight"), args)), **kwargs}  # torch 2.11 names all of them
        return backends.Mps if given["input"].is_mps and _is_taken(given) else found

    places.attribute(torch._C, "_select_conv_backend", PHASE, select)


def _is_taken(given: dict[str, Any]) -> bool:
    from torch._meta_registrations import calc_conv_nd_return_shape

    named = "input", "weight", "stride", "padding", "dilation", "transposed", "groups", "output_padding"
    result = calc_conv_nd_return_shape(*(given[name] for name in named))
    return bool(math.prod(given["input"].shape[1:]) <= LARGEST and math.prod(result[1:]) <= LARGEST)
