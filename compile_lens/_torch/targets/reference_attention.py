"""The GPU's fused attention operators on the CPU, computed by products and a softmax in float32.

PyTorch has these operators only on GPUs. Without a CPU implementation, a graph that calls one could not run here, and
none of its values could be compared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

OPERATORS = {
    "_scaled_dot_product_flash_attention": False,
    "_scaled_dot_product_efficient_attention": False,
    "_scaled_dot_product_cudnn_attention": False,
    "_scaled_dot_product_flash_attention_backward": True,
    "_scaled_dot_product_efficient_attention_backward": True,
    "_scaled_dot_product_cudnn_attention_backward": True,
}
"""Operators by name, with True for a backward."""


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Register CPU kernels for these operators, where PyTorch has none, for the duration."""
    with contextlib.ExitStack() as stack:
        library = torch.library.Library("aten", "IMPL")
        stack.callback(library._destroy)
        for name, derivative in OPERATORS.items():
            full = f"aten::{name}"
            packet = getattr(torch.ops.aten, name, None)
            if packet is None or torch._C._dispatch_has_kernel_for_dispatch_key(full, "CPU"):
                continue
            library.impl(name, _cpu_kernel(packet.default, _backward if derivative else _forward), "CPU")
        yield


def _cpu_kernel(operator: Any, compute: Callable[..., list[torch.Tensor | None]]) -> Callable[..., Any]:
    names = [argument.name for argument in operator._schema.arguments]

    def run(*args: Any, **kwargs: Any) -> Any:
        arguments = {**dict(zip(names, args)), **kwargs}
        if arguments.get("dropout_p"):
            raise NotImplementedError(f"{operator.name()} drops elements by the GPU's random numbers")
        # Shapes, strides and dtypes of all results come from torch's own meta function.
        shapes = operator(*map(_on_meta, args), **{name: _on_meta(value) for name, value in kwargs.items()})
        values = compute(arguments)
        return tuple(_as(shape, values[at] if at < len(values) else None) for at, shape in enumerate(shapes))

    return run


def _on_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _as(shape: Any, value: torch.Tensor | None) -> Any:
    """Return a value with the shape, strides and dtype of a meta tensor; zeros where nothing was computed."""
    if not isinstance(shape, torch.Tensor):
        return shape
    result = torch.empty_strided(shape.shape, shape.stride(), dtype=shape.dtype, device="cpu").zero_()
    if value is not None and result.numel():
        # Some operators pad the sums of exponentials to a multiple of rows.
        value = value.reshape(*value.shape, *(1,) * (result.dim() - value.dim()))
        result[tuple(slice(size) for size in value.shape)].copy_(value)
    return result


def _probabilities(arguments: dict[str, Any]) -> tuple[torch.Tensor, float, torch.Tensor]:
    """Return the softmax, the scale of the products, and the log-sum-exp of each row."""
    query, key = arguments["query"].float(), arguments["key"].float()
    scale = arguments.get("scale")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    products = query @ key.transpose(-1, -2) * scale
    if arguments.get("attn_bias") is not None and arguments["attn_bias"].numel():
        products = products + arguments["attn_bias"].float()
    if arguments.get("is_causal"):
        seen = torch.ones(products.shape[-2:], dtype=torch.bool).tril()
        products = products.masked_fill(~seen, float("-inf"))
    return products.softmax(-1), scale, products.logsumexp(-1)


def _forward(arguments: dict[str, Any]) -> list[torch.Tensor | None]:
    probabilities, _, sums = _probabilities(arguments)
    return [probabilities @ arguments["value"].float(), sums]


def _backward(arguments: dict[str, Any]) -> list[torch.Tensor | None]:
    probabilities, scale, _ = _probabilities(arguments)
    query, key, value, out = (arguments[name].float() for name in ("query", "key", "value", "out"))
    gradient = (arguments["grad_out"] if "grad_out" in arguments else arguments["grad_out_"]).float()
    of_products = probabilities * (
        gradient @ value.transpose(-1, -2) - (gradient * out).sum(-1, keepdim=True)
    )
    bias = arguments.get("attn_bias")
    of_bias = None if bias is None or not bias.numel() else of_products.sum_to_size(bias.shape)
    return [
        of_products @ key * scale,
        of_products.transpose(-1, -2) @ query * scale,
        probabilities.transpose(-1, -2) @ gradient,
        of_bias,
    ]
