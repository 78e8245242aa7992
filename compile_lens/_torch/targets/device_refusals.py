"""Library calls in generated code for which the device raises an error, by torch's source.

Nothing checks them earlier: fake tensors have results, and Inductor generates the call. On the device the first run of
the compiled code raises, so running the captured graph here raises the same error. Operators for which Inductor
generates a kernel never raise, so only generated calls are checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...record.device import DeviceModel

BLAS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)
"""Dtypes of matrices for which cuBLAS is called: ``AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2`` in ``Blas.cpp``."""

_BLAS, _SCALED = "aten/src/ATen/native/cuda/Blas.cpp", "aten/src/ATen/native/cuda/ScaledBlas.cpp"

_NAMED = re.compile(r"\b(?:extern_kernels|aten)\.(\w+)")


def refusal(model: DeviceModel, called: str, inputs: Sequence[Any]) -> tuple[Exception, str] | None:
    """Return the device's error for a generated call, and the rule; None if the call runs or no rule is known.

    ``called`` is the name in the code (``extern_kernels.mm``), ``inputs`` are Inductor's nodes of its inputs.
    """
    named = _NAMED.search(called)
    rule = _RULES.get((model.device, named[1])) if named else None
    if rule is None:
        return None
    given = []
    for one in inputs:
        if hasattr(one, "get_dtype") and hasattr(one, "get_size"):
            given.append((one.get_dtype(), [_number(size) for size in one.get_size()]))
    return rule(model, given)


def second_device_refusal(
    gm: torch.fx.GraphModule, device: torch.device
) -> tuple[Exception, str, Any] | None:
    """Return the error for a graph with a tensor on a second device of this type, the rule, and the tensor's node; None
    if there is none. This is consistent with ``torch.cuda.set_device`` and ``torch.cuda.device_count()``."""
    for node in gm.graph.nodes:
        value = node.meta.get("example_value")
        index = (
            value.device.index
            if isinstance(value, torch.Tensor) and value.device.type == device.type
            else None
        )
        if index:
            words = f"CUDA error: invalid device ordinal: the target is one device, and {index} is requested"
            return RuntimeError(words), f"a target is one {device.type} device, with the index 0", node
    return None


def _number(size: Any) -> int | None:
    """Return a size as a number; None for a symbol."""
    try:
        return int(size)
    except TypeError:
        return None


Given = Sequence[tuple[torch.dtype, Sequence["int | None"]]]
"""Dtype and sizes of each input tensor."""


def _product(name: str, first: int) -> Callable[[DeviceModel, Given], tuple[Exception, str] | None]:
    """Return the rule for a matrix product (``addmm_out_cuda_impl``, ``baddbmm_out_cuda_impl``); ``first`` is the index
    of its left matrix."""

    def rule(model: DeviceModel, given: Given) -> tuple[Exception, str] | None:
        if len(given) < first + 2:
            return None
        (dtype, left), (_, right) = given[first : first + 2]
        if dtype in BLAS or 0 in left or 0 in right:  # an empty product is not computed
            return None
        words = f"\"{name}\" not implemented for '{_name(dtype)}'"
        why = f"PyTorch multiplies only matrices of floating-point and complex numbers on CUDA ({_BLAS})"
        return NotImplementedError(words), why

    return rule


def _int_mm(model: DeviceModel, given: Given) -> tuple[Exception, str] | None:
    """Return the error of the first failed check in ``_int_mm_out_cuda``, and the rule."""
    if len(given) < 2:
        return None
    (_, left), (_, right) = given[:2]
    words = ""
    if (rows := left[0]) is not None and rows <= 16:
        words = f"self.size(0) needs to be greater than 16, but got {rows}"
    else:
        for name, size in (("self", left[1]), ("mat2", right[1])):
            if not words and size is not None and (size == 0 or size % 8):
                words = f"{name}.size(1) needs to be greater than 0 and a multiple of 8, but got {size}"
    return (RuntimeError(words), f"torch._int_mm has limits of its own on CUDA ({_BLAS})") if words else None


def _scaled_mm(model: DeviceModel, given: Given) -> tuple[Exception, str] | None:
    """Return the error of ``_scaled_mm_allowed_device``, and the rule."""
    major, minor = model.figure("major"), model.figure("minor")
    if not isinstance(major, int) or major >= 9 or (major, minor) == (8, 9):
        return None
    words = "torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9, or ROCm MI300+"
    return RuntimeError(words), f"its compute capability is {major}.{minor} ({_SCALED})"


_RULES = {
    ("cuda", "mm"): _product("addmm_cuda", 0),
    ("cuda", "addmm"): _product("addmm_cuda", 1),
    ("cuda", "bias_addmm"): _product("addmm_cuda", 1),
    ("cuda", "bmm"): _product("baddbmm_cuda", 0),
    ("cuda", "baddbmm"): _product("baddbmm_cuda", 1),
    ("cuda", "_int_mm"): _int_mm,
    ("cuda", "_scaled_mm"): _scaled_mm,
}
"""Rules by device type and library function."""


def _name(dtype: torch.dtype) -> str:
    """Return a dtype's name in torch's C++: ``Long`` for ``torch.LongTensor``."""
    kind: str = torch.empty(0, dtype=dtype, device="cpu").type()
    return kind.removeprefix("torch.").removesuffix("Tensor")
