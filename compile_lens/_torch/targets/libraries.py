"""What operators give that only CUDA has, or only Metal, and of which torch has no fake implementation: by its source.

Each is asked with fake tensors on, of sizes that are numbers: of symbols torch asks nothing, and breaks the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


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
    """``aten/src/ATen/native/cudnn/LossCTC.cpp``: of lengths that are numbers only where the targets are on the CPU."""
    return (
        _fits_cudnns_ctc(probabilities, targets, blank)
        and targets.device.type == "cpu"
        and all(n == probabilities.shape[0] for n in lengths)
        and all(t < 256 and t <= n for t, n in zip(target_lengths, lengths))
    )


def _ctc_of_tensors_is_cudnns(
    probabilities: Any, targets: Any, lengths: Any, target_lengths: Any, blank: int
) -> bool:
    """All lengths are zeros when torch asks, which are short enough."""
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
"""By an operator's name, its result for fake inputs."""
