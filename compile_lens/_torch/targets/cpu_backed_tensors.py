"""Tensors with values on an absent device: their memory is the CPU's, their device is the target.

Torch creates such tensors during a compile, from a literal on the device or a folded constant, and their values affect
what is compiled. The CPU computes with them, and results are on the device again. The existence of a kernel for the
device matters too: torch decomposes some operators (``linear``, RMSNorm, the backward of SiLU) unless its build has a
kernel for the device, with which autograd keeps them whole.

Those kernels are registered here in a build without the device, so that its dispatcher chooses as on the device.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import dlpack

from ..operators import native_functions
from . import accelerator
from .device_interfaces import MARK, PHASE
from .replacements import Replacements, is_marked

_CODES = {"cpu": 1, "cuda": 2, "mps": 8}
"""DLPack's numbers of device types."""

_DEVICE_OFFSET = 8
"""Offset in bytes of the device (type and index) in DLPack's ``DLTensor``, after a pointer."""

_SHARED_KERNELS = ("copy_",)
"""Operators with one kernel for all devices, which dispatches to the device's own later."""

_WITHIN_MODES = (
    "_local_scalar_dense", "as_strided", "empty.memory_format", "empty_strided", "fill_.Scalar", "fill_.Tensor",
    "set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor", "view", "view.dtype", "zero_",
)  # fmt: skip
"""Operators that torch calls during dispatch to a mode, where only kernels registered by name are found; they create,
fill, view and read a tensor."""


def place(places: Replacements, device: torch.device) -> None:
    """Let tensors of ``device`` have values in compiles of marked threads, unless the device is present."""
    if accelerator.is_present(device.type):
        return
    key: Any = device.type.upper()
    everything, named = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    places.add(everything._destroy)
    # Untraced Python calls this too, and Dynamo would compile our frames there.
    compute: Any = torch.compiler.disable(_compute)
    everything.fallback(functools.partial(compute, device), key)
    places.add(named._destroy)
    # Each name once: a build for the device also has composites with kernels among its CPU kernels.
    names = dict.fromkeys((*_SHARED_KERNELS, *_names(key), *native_functions.beside_composites(key)))
    with warnings.catch_warnings():  # such a build warns once that a kernel is overridden
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        for name in names:
            base, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, base), overload or "default")
            op._dispatch_cache.clear()
            places.add(op._dispatch_cache.clear)
            named.impl(name, functools.partial(compute, device, op), key)
    places.attribute(
        torch.Tensor, "__deepcopy__", MARK, functools.partial(_copied, torch.Tensor.__deepcopy__)
    )


def _names(key: Any) -> Sequence[str]:
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::empty_strided", key):
        return _WITHIN_MODES
    # A build for the device has its own kernels, which would call the driver.
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
    return [name.removeprefix("aten::") for name in registered if name.startswith("aten::")]


def _copied(real: Any, tensor: torch.Tensor, memo: dict[int, Any]) -> Any:
    """Copy such a tensor during a deep copy of a graph, for which torch would allocate memory of the device."""
    cpu_backed = type(tensor) is torch.Tensor and tensor.device.type in ("cuda", "mps")
    if not cpu_backed or id(tensor) in memo:
        return real(tensor, memo)
    copy = memo[id(tensor)] = on_device(on_cpu(tensor).clone(), tensor.device)
    return copy


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return the same memory as a tensor on ``device``."""
    return _with_device(tensor, device.type)


def on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same memory as a tensor on the CPU."""
    return tensor if tensor.device.type == "cpu" else _with_device(tensor, "cpu")


def _with_device(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    if tensor.is_conj():  # only a bit of the view; the memory is shared
        return _with_device(tensor.conj(), kind).conj()
    if tensor.is_neg():
        return _with_device(tensor._neg_view(), kind)._neg_view()
    capsule = dlpack.to_dlpack(tensor.detach())
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    device = (ctypes.c_int32 * 2).from_address(pointer(capsule, b"dltensor") + _DEVICE_OFFSET)
    device[0], device[1] = _CODES[kind], 0
    return dlpack.from_dlpack(capsule)


def _compute(device: torch.device, op: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not is_marked(PHASE) and not is_marked(MARK):
        raise NotImplementedError(
            f"Could not run '{op.name()}' with arguments from the '{device.type.upper()}' backend: it is not here"
        )
    if _is_view(op):  # the CPU's kernel does not check the device of the memory
        return op.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), *args, **kwargs)
    given: dict[int, torch.Tensor] = {}

    def home(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == device.type else value
        if not isinstance(value, torch.Tensor):
            return value
        moved = on_cpu(value)
        given[id(moved)] = value
        return moved

    def back(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not is_marked(PHASE):
            return value
        return given[id(value)] if id(value) in given else on_device(value, device)

    # An empty output may have to grow, which borrowed memory cannot.
    outs = {name: kwargs.pop(name) for name in _out_names(op) if name in kwargs and not kwargs[name].numel()}
    args, kwargs = torch.utils._pytree.tree_map(home, (args, kwargs))
    fresh = {name: torch.empty(0, dtype=out.dtype) for name, out in outs.items()}
    result = op(*args, **kwargs, **fresh)
    for name, out in outs.items():
        out.set_(on_device(fresh[name], device))
        given[id(fresh[name])] = out
    return torch.utils._pytree.tree_map(back, result)


def _out_names(op: Any) -> list[str]:
    return [a.name for a in op._schema.arguments if a.is_out]


def _is_view(op: Any) -> bool:
    """Return True if an operator returns a view of its input."""
    aliases = [returned.alias_info for returned in op._schema.returns]
    view = bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
    return view or op.overloadpacket is torch.ops.aten.set_
