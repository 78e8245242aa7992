"""Operators without a fake implementation. Torch runs such an operator on the device, on zeros, for its result.

Here its kernel for the CPU runs if the device has one too, with the device changed in the result; ``RESULTS`` has the
result of some that only the device has. An operator without a kernel on the device fails as it does there.
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
"""Kinds of devices in ``native_functions.yaml``."""

NO_FAKE = (
    "which torch runs on the device to see what it gives: where the graph broke or failed at it for want of the "
    "device, there it does not"
)

RESERVE = "for whose backward cuDNN keeps bytes, of which only it knows how many: none here"


def place(places: Replacements, device: torch.device, queries: DeviceQueries) -> None:
    """Provide the results of such operators while a frame is compiled."""
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
        if kernels and KEYS[device.type] not in kernels:  # in the words of torch's dispatcher
            raise NotImplementedError(
                f"could not find kernel for {operator} at dispatch key DispatchKey.{KEYS[device.type]}"
            )
        name = str(operator).removesuffix(".default")
        queries.put("called", name, NO_FAKE, traced_line(), once=True)
        raise NotImplementedError(
            f"{name} has no fake implementation. Where the device is, torch runs it there to see what it gives, and "
            "goes on; here is no device, and none of its kernels"
        )

    def reserve(*given: Any) -> int:
        queries.put("called", "batch_norm", RESERVE, traced_line(), once=True)
        return 0

    places.attribute(fake_tensor, "run_fallback_kernel", PHASE, run)
    if device.type == "cuda":
        places.attribute(torch._C, "_get_cudnn_batch_norm_reserve_space_size", PHASE, reserve)


@functools.cache
def _kernels(name: str) -> frozenset[str]:
    """Return torch's kernels of an operator (``aten::geqrf``), whether it was built with them or not."""
    entries = native_functions.table()  # empty in a build without it
    entry = entries.get(name.removeprefix("aten::"))
    if entry is None:
        return frozenset()
    if entry.delegate:
        return _kernels(entry.delegate)
    return frozenset(native_functions.COMPOSITE[:1] if entry.dispatch is None else entry.dispatch)


def _run_on_cpu(mode: Any, operator: Any, flat: Any, spec: Any, device: torch.device, error: Any) -> Any:
    """Do on the CPU what torch's own function does for the device; restore the random state."""
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
            raise error  # as torch's own: a view's memory would be another's
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
    """``aten/src/ATen/native/cudnn/GridSampler.cpp``."""
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
    """``aten/src/ATen/native/cuda/RNN.cu``: the new state, and what the backward needs of each of five gates."""
    return hx.new_empty(hx.shape), hx.new_empty((hx.shape[0], hx.shape[1] * 5))


def _gru_cell_backward(grad: Any, workspace: Any, has_bias: bool) -> Any:
    gates = workspace.shape[0], workspace.shape[1] // 5 * 3
    biases = [workspace.new_empty(gates[1:]) if has_bias else None for _ in range(2)]
    return workspace.new_empty(gates), workspace.new_empty(gates), grad.new_empty(grad.shape), *biases


def _ctc_is_cudnns(
    probabilities: Any, targets: Any, lengths: Sequence[int], target_lengths: Sequence[int], blank: int
) -> bool:
    """Follow ``aten/src/ATen/native/cudnn/LossCTC.cpp``: lengths are numbers only if the targets are on the CPU."""
    return (
        _fits_cudnns_ctc(probabilities, targets, blank)
        and targets.device.type == "cpu"
        and all(n == probabilities.shape[0] for n in lengths)
        and all(t < 256 and t <= n for t, n in zip(target_lengths, lengths))
    )


def _ctc_of_tensors_is_cudnns(
    probabilities: Any, targets: Any, lengths: Any, target_lengths: Any, blank: int
) -> bool:
    """Return True if it is cuDNN's. All lengths are zeros at torch's query, which are short enough."""
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
    """``aten/src/ATen/native/mps/operations/Pooling.mm``: as the input is, its channels first or last."""
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
    "aten::_use_miopen_ctc_loss": lambda *given: False,  # of AMD's
    "aten::_use_miopen_ctc_loss.Tensor": lambda *given: False,
}
"""Results for fake inputs, by operator: only CUDA has it, or only Metal, and torch has no fake implementation. By
torch's source. Each is called with fake tensors on, of sizes that are numbers: for symbols torch breaks the graph."""
