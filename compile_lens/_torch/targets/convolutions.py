"""Which convolution torch takes on the device, by which its result is laid out.

Of CUDA's torch says it by itself, once it is told of cuDNN (``cudnn.py``). On an Apple device it is torch's own for
Metal, which only torch for a Mac was built with.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .interfaces import PHASE
from .replaced import Places

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
