"""Kernels written by a program in Triton, and functions that launch them. Imported with ``TRITON_INTERPRET=1`` they
are plain Triton's own, for its interpreter."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def summed(a, b):  # type: ignore[no-untyped-def]
    return a + b


@triton.jit
def added(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = summed(tl.load(x_ptr + at, mask=inside), tl.load(y_ptr + at, mask=inside))
    tl.store(o_ptr + at, total, mask=inside)


def launched(x: Any, y: Any) -> Any:
    o = torch.empty_like(x)
    added[(triton.cdiv(x.numel(), 256),)](x, y, o, x.numel(), BLOCK=256)
    return o.relu() * 2


@triton.jit
def rows(x_ptr, o_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    start = tl.program_id(0) * n
    x = tl.load(x_ptr + start + at, mask=at < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + start + at, e / e.sum(axis=0), mask=at < n)


def softmax(x: Any, y: Any) -> Any:
    o = torch.empty_like(x)
    rows[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o + y


@triton.autotune(
    configs=[triton.Config({"BM": 32, "BN": 32}), triton.Config({"BM": 64, "BN": 16})], key=["m"]
)
@triton.jit
def tiles(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        x = tl.load(a + i[:, None] * k + at[None, :], mask=(i[:, None] < m) & (at[None, :] < k), other=0.0)
        y = tl.load(b + at[:, None] * n + j[None, :], mask=(j[None, :] < n) & (at[:, None] < k), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + i[:, None] * n + j[None, :], acc, mask=(i[:, None] < m) & (j[None, :] < n))


def product(x: Any, y: Any) -> Any:
    c = torch.empty(x.shape[0], x.shape[0], device=x.device)
    w = y.t().contiguous()
    m, k = x.shape
    grid = lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(m, meta["BN"]))  # noqa: E731
    tiles[grid](x, w, c, m, m, k, BK=16)
    return c.sin()


@triton.jit
def counts(x_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(x_ptr + at * 0, tl.where(at < n, 1.0, 0.0))


def in_place(x: Any, y: Any) -> Any:
    """Take a branch that depends on what the kernel wrote."""
    total = x * 0
    counts[(4,)](total, 1000, BLOCK=256)
    return y.sin() if total.flatten()[0] > 999 else y.cos()


@triton.jit
def mixed(x_ptr, BLOCK: tl.constexpr, o_ptr, n, scale, one, plus, TIMES: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + at * one, mask=at < n) * scale * TIMES
    if plus:
        value = value + 1
    tl.store(o_ptr + at, value, mask=at < n)


def constants_anywhere(x: Any, y: Any, plus: Any = 1) -> Any:
    o = torch.empty_like(x)
    mixed[(triton.cdiv(x.numel(), 128),)](x, 128, o, x.numel(), 0.5, 1, plus, TIMES=2)
    return o.cos() + y


def truth(x: Any, y: Any) -> Any:
    return constants_anywhere(x, y, plus=True)


def after_a_break(x: Any, y: Any) -> Any:
    """Launch the second kernel in plain Python."""
    o = launched(x, y)
    torch._dynamo.graph_break()
    return untraced(o, y) + 1


@torch.compiler.disable  # type: ignore[misc]
def untraced(x: Any, y: Any) -> Any:
    return launched(x, y)


@triton.jit
def beyond(x_ptr, o_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    tl.store(o_ptr + at, tl.load(x_ptr + at) * 2)


def outside(x: Any, y: Any) -> Any:
    o = torch.zeros_like(x.flatten()[:1000])
    beyond[(1,)](y, o, BLOCK=2048)  # reads an argument that it was not given
    return o + 1


@triton.jit
def endless(x_ptr, o_ptr):  # type: ignore[no-untyped-def]
    a = tl.load(x_ptr)
    tl.store(o_ptr, a)
    for _ in range(1_000_000_000):
        a = a * 1.5
    tl.store(o_ptr, a)


def long(x: Any, y: Any) -> Any:
    o = torch.zeros_like(x)
    endless[(1,)](x, o)
    return o + 1


@triton.jit
def assembled(x_ptr, o_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(o_ptr + at, y)


def instructions(x: Any, y: Any) -> Any:
    o = torch.zeros_like(x)
    assembled[(1,)](x, o, BLOCK=64)
    return o + 1


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], key=[])
@triton.heuristics({"EVEN": lambda given: True})
@triton.jit
def tiles_assembled(x_ptr, o_ptr, BLOCK: tl.constexpr, EVEN: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(o_ptr + at, y)


def tuned(x: Any, y: Any) -> Any:
    o = torch.zeros_like(x)
    tiles_assembled[(1,)](x, o)
    return o + 1


def left_to_python(fn: Any) -> Any:
    """Return a function that calls ``fn`` eagerly after a graph break, and is traced again after it."""
    fn = torch.compiler.disable(fn)

    def calls(x: Any, y: Any) -> Any:
        return fn(x.cos(), y).sin()

    return calls


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        o = torch.zeros_like(grad)
        assembled[(1,)](grad, o, BLOCK=64)
        return o


def stepped(x: Any, y: Any) -> Any:
    x = x.detach().requires_grad_()
    loss = (Backward.apply(x) * 2).sum()
    torch._dynamo.graph_break()
    loss.backward()
    return x.grad
