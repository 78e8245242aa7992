"""A custom operator with a kernel for NVIDIA GPUs only: code on the CPU cannot run it."""

from __future__ import annotations

import torch


@torch.library.custom_op("compile_lens_tests::only_on_cuda", mutates_args=(), device_types="cuda")
def only_on_cuda(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@only_on_cuda.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)
