"""Operators without a fake implementation. Torch runs such a one on the device, on zeros, to see what it gives.

Here its kernel for the CPU is run where the device has one too, and the result is said to be on the device; of some
that only the device has, ``libraries.py`` knows the result. What the device has no kernel for fails as it does there.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._subclasses import fake_tensor

from ..operators import native_functions
from . import libraries
from .interfaces import PHASE
from .questions import Questions, line_traced
from .replaced import Places

KEYS = {"cuda": "CUDA", "mps": "MPS"}
"""Kinds of devices, as ``native_functions.yaml`` names them."""

UNKNOWN = (
    "which torch runs on the device to see what it gives: where the graph broke or failed at it for want of the "
    "device, there it does not"
)

RESERVE = "for whose backward cuDNN keeps bytes, of which only it knows how many: none here"


def place(places: Places, device: torch.device, questions: Questions) -> None:
    """Let the results of such operators be known while a frame is compiled."""
    real: Any = getattr(fake_tensor, "run_fallback_kernel", None)

    def run(mode: Any, operator: Any, flat: Any, spec: Any, error: Any) -> Any:
        if not any(mode.is_our_fake(one) and one.fake_device == device for one in flat):
            return real(mode, operator, flat, spec, error)
        args, kwargs = torch.utils._pytree.tree_unflatten(flat, spec)
        known = libraries.RESULTS.get(operator.name())
        if known is not None:
            with mode:
                return known(*args, **kwargs)
        kernels = _kernels(operator.name())
        if "CPU" in kernels and kernels & {KEYS[device.type], *native_functions.COMPOSITE}:
            return _run_here(mode, operator, flat, spec, device, error)
        if kernels and KEYS[device.type] not in kernels:  # in the words of torch's dispatcher
            raise NotImplementedError(
                f"could not find kernel for {operator} at dispatch key DispatchKey.{KEYS[device.type]}"
            )
        name = str(operator).removesuffix(".default")
        questions.put("called", name, UNKNOWN, line_traced(), once=True)
        raise NotImplementedError(
            f"{name} has no fake implementation. Where the device is, torch runs it there to see what it gives, and "
            "goes on; here is no device, and none of its kernels"
        )

    def reserve(*given: Any) -> int:
        questions.put("called", "batch_norm", RESERVE, line_traced(), once=True)
        return 0

    places.attribute(fake_tensor, "run_fallback_kernel", PHASE, run)
    if device.type == "cuda":
        places.attribute(torch._C, "_get_cudnn_batch_norm_reserve_space_size", PHASE, reserve)


@functools.cache
def _kernels(name: str) -> frozenset[str]:
    """For what torch has kernels of an operator (``aten::geqrf``), whether it was built with them or not."""
    entries = native_functions.table()  # empty in a build without it
    entry = entries.get(name.removeprefix("aten::"))
    if entry is None:
        return frozenset()
    if entry.delegate:
        return _kernels(entry.delegate)
    return frozenset(native_functions.COMPOSITE[:1] if entry.dispatch is None else entry.dispatch)


def _run_here(mode: Any, operator: Any, flat: Any, spec: Any, device: torch.device, error: Any) -> Any:
    """What torch's own function does for the device, on the CPU; random numbers that it draws are put back."""
    given: dict[int, Any] = {}

    def zeros(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == device.type:
            return torch.device("cpu")
        if not mode.is_our_fake(value):
            return value
        made = torch.zeros_like(value, device="cpu")
        given[id(made)] = value
        return made

    def there(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or id(value) in given:
            return given.get(id(value), value)
        if value.layout != torch.strided or value.untyped_storage()._cdata in memory:
            raise error  # as torch's own: a view's memory would be another's
        with mode:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)

    with fake_tensor.no_dispatch(), torch.random.fork_rng(devices=()):
        tensors = [zeros(one) for one in flat]
        args, kwargs = torch.utils._pytree.tree_unflatten(tensors, spec)
        found = operator(*args, **kwargs)
    strided = (t for t in tensors if isinstance(t, torch.Tensor) and t.layout == torch.strided)
    memory = {t.untyped_storage()._cdata for t in strided}
    return torch.utils._pytree.tree_map(there, found)
