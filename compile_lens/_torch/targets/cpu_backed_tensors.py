"""Tensors with values on an absent device: their memory is the CPU's, and their device is the target.

Torch makes such tensors while it compiles: from a literal that the program makes on the device, from a constant that
it folds. Their existence and their values affect what is compiled. The CPU computes with them, and the result is on
the device again.

Whether an operator has a kernel for the device at all affects more: torch composes some of others (``linear``,
RMSNorm, the backward of SiLU), unless its build has a kernel for the device, with which autograd takes them whole. A
build without the device gets those here too, so that its dispatcher chooses as the device's.
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

_DEVICE = 8
"""Offset of the device, a type and an index, in DLPack's description of a tensor: after a pointer."""

_SHARED_KERNELS = ("copy_",)
"""Operators with one kernel for all devices, which looks for the device's own further in."""

_WITHIN_MODES = (
    "_local_scalar_dense", "as_strided", "empty.memory_format", "empty_strided", "fill_.Scalar", "fill_.Tensor",
    "set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor", "view", "view.dtype", "zero_",
)  # fmt: skip
"""Operators that torch calls while it dispatches to a mode, where it finds those that are registered by name alone:
with them a tensor is made, filled, viewed and read."""


def place(places: Replacements, device: torch.device) -> None:
    """Let tensors of ``device`` have values in what marked threads compile, unless the device is present."""
    if accelerator.is_present(device.type):
        return
    key: Any = device.type.upper()
    everything, named = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    places.add(everything._destroy)
    # Python that is not traced gets here too, where Dynamo would compile our own frames.
    compute: Any = torch.compiler.disable(_compute)
    everything.fallback(functools.partial(compute, device), key)
    places.add(named._destroy)
    # A name once: a build for the device lists those beside composites among its CPU's.
    names = dict.fromkeys((*_SHARED_KERNELS, *_names(key), *native_functions.beside_composites(key)))
    with warnings.catch_warnings():  # such a build tells once that a kernel takes another's place
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
    # A build for the device has kernels of its own, that would ask its driver.
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
    return [name.removeprefix("aten::") for name in registered if name.startswith("aten::")]


def _copied(real: Any, tensor: torch.Tensor, memo: dict[int, Any]) -> Any:
    """Copy such a tensor in a graph that is copied whole. Torch would request memory of the device."""
    held = type(tensor) is torch.Tensor and tensor.device.type in ("cuda", "mps")
    if not held or id(tensor) in memo:
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
    if tensor.is_conj():  # one bit of the view; the memory is another tensor's
        return _with_device(tensor.conj(), kind).conj()
    if tensor.is_neg():
        return _with_device(tensor._neg_view(), kind)._neg_view()
    capsule = dlpack.to_dlpack(tensor.detach())
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    device = (ctypes.c_int32 * 2).from_address(pointer(capsule, b"dltensor") + _DEVICE)
    device[0], device[1] = _CODES[kind], 0
    return dlpack.from_dlpack(capsule)


def _compute(device: torch.device, op: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not is_marked(PHASE) and not is_marked(MARK):
        raise NotImplementedError(
            f"Could not run '{op.name()}' with arguments from the '{device.type.upper()}' backend: it is not here"
        )
    if _is_view(op):  # the CPU's kernel does not ask where the memory is
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

    # What is empty may have to grow, which borrowed memory cannot.
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
    """Return True if an operator returns another view of its input's memory."""
    aliases = [returned.alias_info for returned in op._schema.returns]
    view = bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
    return view or op.overloadpacket is torch.ops.aten.set_
