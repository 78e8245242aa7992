"""Inductor loops, fused groups and bytes of graphs whose sizes the wrapper reads from tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


@pytest.fixture(autouse=True)
def numbers_in_the_graph() -> Iterator[None]:
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def checked(n: torch.Tensor, most: int) -> Any:
    length = n.item()
    torch._check(length >= 0)
    torch._check(length <= most)
    return length


def beginning(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return x.narrow(0, 0, checked(n, 12)).cos().amax(1)


def product(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return x.t()[:, : checked(n, 12)] @ torch.ones(12, 2)[: checked(n, 12)]


def row(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return x.select(0, checked(n, 11)).exp()


def filled(x: torch.Tensor, n: torch.Tensor) -> None:
    x.narrow(0, 0, checked(n, 12)).fill_(2.0)


@pytest.mark.parametrize(
    ("fn", "bytes_after"), [(beginning, None), (product, None), (row, 2 * 6 * 4), (filled, None)]
)
def test_a_number_that_the_wrapper_reads_or_checks_is_no_loop(
    fn: Callable[..., Any], bytes_after: int | None
) -> None:
    """Bytes by hand: 6 numbers of the row are read and 6 written; the size of the others is unknown before the call."""
    record = capture(fn, torch.rand(12, 6), torch.tensor(3))
    (code,) = record.code.values()
    calls = re.findall(r"^ +(?:cpp_fused\w+|extern_kernels\.\w+)\(", code, re.MULTILINE)
    assert ".item()" in code and "raise RuntimeError" in code
    total = record.ledger.total
    assert total.launches == total.loops == total.groups == len(calls)
    assert total.bytes_after == bytes_after or (
        bytes_after is None and not isinstance(total.bytes_after, int)
    )
    assert not any(d.reason == "extern" and fn is not product for d in record.decisions)
