"""Zoo: calls inside a context of the caller's, and functions that open one themselves."""

from __future__ import annotations

import contextlib

import torch
from torch import nn
from zoo import Call, Table, rand

TABLE = Table()
add, op = TABLE.add, TABLE.op


def _sin(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(a @ b)


op("no_grad_outside", lambda: Call(_sin, (rand(6, grad=True),)), context=torch.no_grad)
op("inference_mode_outside", lambda: Call(_sin, (rand(6, grad=True),)), context=torch.inference_mode)
op(
    "autocast_outside",
    lambda: Call(_product, (rand(6, 5, grad=True), rand(5, 4))),
    backward=True,
    context=lambda: torch.autocast("cpu", dtype=torch.bfloat16),
)
op(
    "default_device_outside",
    lambda: Call(lambda n: torch.ones(n) * 2, (5,)),
    context=lambda: torch.device("cpu"),
)


@add("no_grad_inside", backward=True)
def _no_grad_inside() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = x.abs().mean()
        return x * scale

    return Call(fn, (rand(6, grad=True),))


@add("no_grad_decorated")
def _no_grad_decorated() -> Call:
    return Call(torch.no_grad()(_sin), (rand(6, grad=True),))


@add("inference_mode_inside")
def _inference_mode_inside() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return torch.sin(x) * 2

    return Call(fn, (rand(6),))


@add("autocast_inside", backward=True)
def _autocast_inside() -> Call:
    net = nn.Linear(6, 4)

    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
        return y.float().sum()

    return Call(fn, (rand(3, 6),), watch=(net,))


@add("grad_mode_set_inside", backward=True)
def _grad_mode_set_inside() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.set_grad_enabled(True):
            y = x * 2
        return y + 1

    return Call(fn, (rand(6, grad=True),))


@add("null_context", backward=True)
def _null_context() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        with contextlib.nullcontext():
            return torch.cos(x)

    return Call(fn, (rand(6, grad=True),))


@add("user_context", backward=True, graphs=None)
def _user_context() -> Call:
    @contextlib.contextmanager
    def scaled(log: list[str]):
        log.append("in")
        try:
            yield 2.0
        finally:
            log.append("out")

    def fn(x: torch.Tensor, log: list[str]) -> torch.Tensor:
        with scaled(log) as by:
            y = x * by
        return y + 1

    return Call(fn, (rand(6, grad=True), []))


@add("sdpa_kernel_inside", backward=True, graphs=None)
def _sdpa_kernel_inside() -> Call:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def fn(q: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return nn.functional.scaled_dot_product_attention(q, q, q)

    return Call(fn, (rand(1, 1, 4, 8, grad=True),))
