"""A Triton kernel for the quiz answers; as a script it runs in Triton's interpreter."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, at < count), at < count)


def doubled(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


def around(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(doubled(torch.sin(x)) + 1)


if __name__ == "__main__":
    x = torch.rand(1000)
    sys.exit(not torch.equal(doubled(x), 2 * x))
