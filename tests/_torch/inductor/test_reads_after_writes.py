"""Bytes of loops that read a tensor after an earlier loop wrote part of it in place, counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compile_lens import capture

pytestmark = pytest.mark.torch

R = torch.rand


def row(cache: Any, key: Any) -> Any:
    cache[0] = key
    return cache.sin()


def cache_and_query(cache: Any, key: Any, query: Any) -> Any:
    cache[:, 5:6] = key
    return (cache[:, :6] * query).sum(1)


def rows_copied(x: Any, y: Any) -> Any:
    x[:10].copy_(y)
    return x * 2


def part_rectified(x: Any) -> Any:
    x[:2].relu_()
    return x * x


def of_a_clone(x: Any, y: Any) -> Any:
    z = x.clone()
    z[0] = y
    return z.sin()


def by_index(x: Any, places: Any, values: Any) -> Any:
    x.index_put_((places,), values)
    return x.cos()


def twice(x: Any, y: Any) -> Any:
    x[0] = y
    x[1] = y + 1
    return x.exp()


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], int, int]] = [
    (row, (R(100, 1000), R(1000)), 1000 + 100_000, 1000 + 100_000),
    (cache_and_query, (R(4, 128, 64), R(4, 1, 64), R(4, 6, 64)), 256 + 2 * 1536, 256 + 256),
    (rows_copied, (R(100, 10), R(10, 10)), 100 + 1000, 100 + 1000),
    (part_rectified, (R(8, 100),), 200 + 800, 200 + 800),
    (of_a_clone, (R(10, 100), R(100)), 1100, 1000),
    (by_index, (R(100, 10), torch.tensor([1, 2]), R(2, 10)), 4 + 20 + 1000, 20 + 1000),
    (twice, (R(50, 20), R(20)), 20 + 1000, 1000 + 1000),  # one loop, which stores all of x again
]
"""Functions, their inputs, and the float32 elements that all loops together read and write; an index takes two."""


@pytest.mark.parametrize("target", [None, "h100"])
@pytest.mark.parametrize(
    ("function", "args", "reads", "writes"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_the_whole_tensor_is_read(
    function: Callable[..., Any], args: tuple[Any, ...], reads: int, writes: int, target: str | None
) -> None:
    kernels = capture(function, *(a.clone() for a in args), target=target).kernels
    assert sum(k.reads or 0 for k in kernels) == 4 * reads
    assert sum(k.writes or 0 for k in kernels) == 4 * writes
