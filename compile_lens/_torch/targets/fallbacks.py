"""Operators without a fake implementation, which torch runs on the device with zeros for their result. Here the CPU's
kernel runs if the device has a kernel too, and the result's device is changed; ``RESULTS`` has the results of some
operators that only the device has.

An operator without a kernel for the device fails as on the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses import fake_tensor

from ..operators import native_functions
from .device_interfaces import PHASE
from .device_queries import DeviceQueries, traced_line
from .replacements import Replacements

KEYS = {"cuda": "CUDA", "mps": "MPS"}
"""Dispatch keys in ``native_functions.yaml`` by device type."""

NO_FAKE = (
    "which torch runs on the device to learn its outputs: a graph break or error here that comes from the absent "
    "device does not occur there"
)

RESERVE = "for whose backward cuDNN reserves memory, of a size that only cuDNN knows: none is counted here"


def place(places: Replacements, device: torch.device, queries: DeviceQueries) -> None:
    """Provide the results of operators without a fake implementation while a frame is compiled."""
    real: Any = getattr(fake_tensor, "run_fallback_kernel", None)

    def run(mode: Any, operator: Any, flat: Any, spec: Any, error: Any) -> Any:
        if not any(mode.is_our_fake(one) and one.fake_device == device for one in flat):
            return real(mode, operator, flat, spec, error)
        args, kwargs = torch.utils._pytree.tree_unflatten(flat, spec)
        known = RESULTS.get(operator.name())
        if known is not None:
            with mode:
                return known(*args, **kwargs)
        kernels = _kernels(operator.name())
        if "CPU" in kernels and kernels & {KEYS[device.type], *native_functions.COMPOSITE}:
            return _run_on_cpu(mode, operator, flat, spec, device, error)
        if kernels and KEYS[device.type] not in kernels:  # with the message of torch's dispatcher
            raise NotImplementedError(
                f"could not find kernel for {operator} at dispatch key DispatchKey.{KEYS[device.type]}"
            )
        name = str(operator).removesuffix(".default")
        queries.put("called", name, NO_FAKE, traced_line(), once=True)
        raise NotImplementedError(
            f"{name} has no fake implementation. With the device, torch would run it to learn its outputs; here there "
            "is neither the device nor its kernels"
        )

    def reserve(*given: Any) -> int:
        queries.put("called", "batch_norm", RESERVE, traced_line(), once=True)
        return 0

    places.attribute(fake_tensor, "run_fallback_kernel", PHASE, run)
    if device.type == "cuda":
        places.attribute(torch._C, "_get_cudnn_batch_norm_reserve_space_size", PHASE, reserve)


@functools.cache
def _kernels(name: str) -> frozenset[str]:
    """Return the dispatch keys of an operator's kernels (``aten::geqrf``), built into this torch or not."""
    entries = native_functions.table()  # empty in a build without the table
    entry = entries.get(name.removeprefix("aten::"))
    if entry is None:
        return frozenset()
    if entry.delegate:
        return _kernels(entry.delegate)
    return frozenset(native_functions.COMPOSITE[:1] if entry.dispatch is None else entry.dispatch)


def _run_on_cpu(mode: Any, operator: Any, flat: Any, spec: Any, device: torch.device, error: Any) -> Any:
    """Return an operator's fake result from a run on the CPU with zeros, as torch runs it on the device, and restore
    the random state."""
    given: dict[int, Any] = {}

    def zeros(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == device.type:
            return torch.device("cpu")
        if not mode.is_our_fake(value):
            return value
        zero = torch.zeros_like(value, device="cpu")
        given[id(zero)] = value
        return zero

    def there(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or id(value) in given:
            return given.get(id(value), value)
        if value.layout != torch.strided or value.untyped_storage()._cdata in memory:
            raise error  # as torch does, since a view would share no memory
        with mode:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)

    with fake_tensor.no_dispatch(), torch.random.fork_rng(devices=()):
        tensors = [zeros(one) for one in flat]
        args, kwargs = torch.utils._pytree.tree_unflatten(tensors, spec)
        result = operator(*args, **kwargs)
    strided = (t for t in tensors if isinstance(t, torch.Tensor) and t.layout == torch.strided)
    memory = {t.untyped_storage()._cdata for t in strided}
    return torch.utils._pytree.tree_map(there, result)


def _grid_sampler(x: Any, grid: Any) -> Any:
    """Return the result, by ``aten/src/ATen/native/cudnn/GridSampler.cpp``, or raise its errors."""
    check = "while checking arguments for cudnn_grid_sampler_forward"
    if x.dtype != grid.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'grid'; but type "
            f"{x.type()} does not equal {grid.type()} ({check})"
        )
    if grid.dim() != 4 or grid.shape[0] != x.shape[0] or grid.shape[3] != 2:
        raise RuntimeError(
            f"Expected a grid of size ({x.shape[0]}, height, width, 2), but it has size {tuple(grid.shape)} ({check})"
        )
    return x.new_empty((x.shape[0], x.shape[1], grid.shape[1], grid.shape[2]))


def _grid_sampler_backward(x: Any, grid: Any, grad: Any) -> Any:
    return x.new_empty(x.shape), grid.new_empty(grid.shape)


def _gru_cell(gates: Any, hidden: Any, hx: Any, bias: Any = None, hidden_bias: Any = None) -> Any:
    """Return the new state and the backward's workspace of five gates, by ``aten/src/ATen/native/cuda/RNN.cu``."""
    return hx.new_empty(hx.shape), hx.new_empty((hx.shape[0], hx.shape[1] * 5))


def _gru_cell_backward(grad: Any, workspace: Any, has_bias: bool) -> Any:
    gates = workspace.shape[0], workspace.shape[1] // 5 * 3
    biases = [workspace.new_empty(gates[1:]) if has_bias else None for _ in range(2)]
    return workspace.new_empty(gates), workspace.new_empty(gates), grad.new_empty(grad.shape), *biases


def _ctc_is_cudnns(
    probabilities: Any, targets: Any, lengths: Sequence[int], target_lengths: Sequence[int], blank: int
) -> bool:
    """Return True if cuDNN computes the loss, by ``aten/src/ATen/native/cudnn/LossCTC.cpp``; lengths are numbers only
    if the targets are on the CPU."""
    return (
        _fits_cudnns_ctc(probabilities, targets, blank)
        and targets.device.type == "cpu"
        and all(n == probabilities.shape[0] for n in lengths)
        and all(t < 256 and t <= n for t, n in zip(target_lengths, lengths))
    )


def _ctc_of_tensors_is_cudnns(
    probabilities: Any, targets: Any, lengths: Any, target_lengths: Any, blank: int
) -> bool:
    """Return True if cuDNN computes the loss. At torch's query all lengths are zeros, which are short enough."""
    whole = lengths.dtype == target_lengths.dtype == torch.int32
    return whole and _fits_cudnns_ctc(probabilities, targets, blank)


def _fits_cudnns_ctc(probabilities: Any, targets: Any, blank: int) -> bool:
    return (
        torch._C._get_cudnn_enabled()
        and blank == 0
        and (probabilities.dim(), targets.dim()) == (3, 1)
        and (probabilities.dtype, targets.dtype) == (torch.float32, torch.int32)
        and targets.is_contiguous()
    )


def _ctc(probabilities: Any, *more: Any) -> Any:
    return probabilities.new_empty(probabilities.shape[1:2]), probabilities.new_empty(probabilities.shape)


def _max_pool_backward(grad: Any, x: Any, *more: Any) -> Any:
    """Return a gradient in the input's memory format, by ``aten/src/ATen/native/mps/operations/Pooling.mm``."""
    return torch.empty_like(x, memory_format=torch._prims_common.suggest_memory_format(x))


RESULTS: dict[str, Callable[..., Any]] = {
    "aten::cudnn_grid_sampler": _grid_sampler,
    "aten::cudnn_grid_sampler_backward": _grid_sampler_backward,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_thnn_fused_gru_cell_backward": _gru_cell_backward,
    "aten::_use_cudnn_ctc_loss": _ctc_is_cudnns,
    "aten::_use_cudnn_ctc_loss.Tensor": _ctc_of_tensors_is_cudnns,
    "aten::_cudnn_ctc_loss": _ctc,
    "aten::_cudnn_ctc_loss.Tensor": _ctc,
    "aten::max_pool2d_backward": _max_pool_backward,
    "aten::_use_miopen_ctc_loss": lambda *given: False,  # MIOpen is AMD's
    "aten::_use_miopen_ctc_loss.Tensor": lambda *given: False,
}
"""Results for fake inputs of operators that only CUDA or only Metal has, by torch's source. Each runs in a fake mode
with sizes that are numbers, since torch breaks the graph for symbols."""
