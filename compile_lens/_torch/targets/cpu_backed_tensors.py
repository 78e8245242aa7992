"""Tensors with values on a device that is not there: their memory is the CPU's, and their device is the target.

Torch makes such tensors while it compiles: of a literal that the program makes on the device, of a constant that it
folds. That they are there, and what they hold, decides what is compiled. Where an operator computes with them the CPU
does, and its result is on the device again.

That an operator has a kernel for the device at all decides more: torch makes some of others (``linear``, RMSNorm, the
backward of SiLU), unless its build has a kernel for the device, with which autograd takes them whole. A build without
the device gets those here too, so that its dispatcher chooses as the device's.
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
from .replacements import Places, on

_CODES = {"cpu": 1, "cuda": 2, "mps": 8}
"""DLPack's numbers of device types."""

_DEVICE = 8
"""Where its description of a tensor has the device, a type and an index: after a pointer."""

_ONE_FOR_ALL = ("copy_",)
"""Operators of which torch has one kernel for all devices, that looks for the device's own further in."""

_WITHIN_MODES = (
    "_local_scalar_dense", "as_strided", "empty.memory_format", "empty_strided", "fill_.Scalar", "fill_.Tensor",
    "set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor", "view", "view.dtype", "zero_",
)  # fmt: skip
"""Operators that torch asks for while it dispatches to a mode, where it finds those that are registered by name alone:
with them a tensor is made, filled, viewed and read."""


def place(places: Places, device: torch.device) -> None:
    """Let tensors of ``device`` have values in what marked threads compile, unless it is there."""
    if accelerator.is_there(device.type):
        return
    key: Any = device.type.upper()
    everything, named = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    places.add(everything._destroy)
    # Python that is not traced gets here too, where Dynamo would compile our own frames.
    compute: Any = torch.compiler.disable(_compute)
    everything.fallback(functools.partial(compute, device), key)
    places.add(named._destroy)
    # A name once: a build for the device lists those beside composites among its CPU's.
    names = dict.fromkeys((*_ONE_FOR_ALL, *_names(key), *native_functions.beside_composites(key)))
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
    found = torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
    return [name.removeprefix("aten::") for name in found if name.startswith("aten::")]


def _copied(real: Any, tensor: torch.Tensor, memo: dict[int, Any]) -> Any:
    """A graph with such a tensor in it may be copied whole. Torch would ask the device for memory."""
    held = type(tensor) is torch.Tensor and tensor.device.type in ("cuda", "mps")
    if not held or id(tensor) in memo:
        return real(tensor, memo)
    found = memo[id(tensor)] = there(here(tensor).clone(), tensor.device)
    return found


def there(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The same memory, said to be on ``device``."""
    return _said(tensor, device.type)


def here(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, said to be where it is."""
    return tensor if tensor.device.type == "cpu" else _said(tensor, "cpu")


def _said(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    if tensor.is_conj():  # one bit of the view; the memory is another tensor's
        return _said(tensor.conj(), kind).conj()
    if tensor.is_neg():
        return _said(tensor._neg_view(), kind)._neg_view()
    capsule = dlpack.to_dlpack(tensor.detach())
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    device = (ctypes.c_int32 * 2).from_address(pointer(capsule, b"dltensor") + _DEVICE)
    device[0], device[1] = _CODES[kind], 0
    return dlpack.from_dlpack(capsule)


def _compute(device: torch.device, op: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not on(PHASE) and not on(MARK):
        raise NotImplementedError(
            f"Could not run '{op.name()}' with arguments from the '{device.type.upper()}' backend: it is not here"
        )
    if _moves_nothing(op):  # the CPU's kernel does not ask where the memory is
        return op.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), *args, **kwargs)
    given: dict[int, torch.Tensor] = {}

    def home(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == device.type else value
        if not isinstance(value, torch.Tensor):
            return value
        moved = here(value)
        given[id(moved)] = value
        return moved

    def back(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not on(PHASE):
            return value
        return given[id(value)] if id(value) in given else there(value, device)

    # What is empty may have to grow, which borrowed memory cannot.
    outs = {name: kwargs.pop(name) for name in _outs(op) if name in kwargs and not kwargs[name].numel()}
    args, kwargs = torch.utils._pytree.tree_map(home, (args, kwargs))
    fresh = {name: torch.empty(0, dtype=out.dtype) for name, out in outs.items()}
    found = op(*args, **kwargs, **fresh)
    for name, out in outs.items():
        out.set_(there(fresh[name], device))
        given[id(fresh[name])] = out
    return torch.utils._pytree.tree_map(back, found)


def _outs(op: Any) -> list[str]:
    return [a.name for a in op._schema.arguments if a.is_out]


def _moves_nothing(op: Any) -> bool:
    """Whether it gives another view of the memory that it is given."""
    aliases = [returned.alias_info for returned in op._schema.returns]
    view = bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
    return view or op.overloadpacket is torch.ops.aten.set_
