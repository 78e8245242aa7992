"""Sequential sums, against Python's own loop over the rows and against float64."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F

from compile_lens import capture
from compile_lens._torch.graphs.sum_order import SequentialSums

pytestmark = pytest.mark.torch


def filled(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def looped(rows: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(rows.shape[1:])
    for row in rows:
        total = total + row
    return total


def test_rows_are_added_one_after_another() -> None:
    x = filled(300, 5)
    with SequentialSums():
        sums = [x.sum(0), x.sum(), x.sum((1, 0), keepdim=True), x.sum(1), x.mean(0), x.half().sum(0)]
    assert torch.equal(sums[0], looped(x)) and not torch.equal(sums[0], x.sum(0))
    assert torch.equal(sums[1], looped(x.flatten()))
    assert torch.equal(sums[2], looped(x.t().flatten()).reshape(1, 1))
    assert torch.equal(sums[3], looped(x.t())) and torch.equal(sums[4], looped(x) / 300)
    assert torch.equal(sums[5], looped(x.half().float()).half())


def test_scans_are_in_the_type_of_their_result() -> None:
    """Eager scans accumulate in float64 on a CPU, but not on a GPU: NumPy accumulates in float32."""
    x = filled(3, 500)
    with SequentialSums():
        total, product = x.cumsum(-1), (x.t() * 0.1 + 1).cumprod(0)
        half, whole = x.half().cumsum(1), x.long().cumsum(1)
    assert numpy.array_equal(total.numpy(), numpy.add.accumulate(x.numpy(), axis=1))
    assert numpy.array_equal(product.numpy(), numpy.multiply.accumulate((x.t() * 0.1 + 1).numpy(), axis=0))
    assert not torch.equal(total, x.cumsum(-1)) and product.stride() == x.t().cumprod(0).stride()
    assert half.dtype == torch.float16 and torch.equal(whole, x.long().cumsum(1))


@pytest.mark.full
def test_a_scan_of_a_gpu_is_no_wrong_number() -> None:
    """The exponential turns the rounding error of a sum into as many ulps as the sum has units."""
    pytest.importorskip("triton")
    x = (filled(8, 64) * 2).requires_grad_()
    report = capture(lambda x: x.cumsum(-1).exp(), x, target="h100", keep_inputs=True).verify()
    assert report.ok and not report.not_compared


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.long().sum(),
        lambda x: (x > 0).sum(0),
        lambda x: x[:0].sum(0),
        lambda x: x[0, 0].sum(),
        lambda x: x.sum(0, dtype=torch.float64),
        lambda x: x.to(torch.complex64).sum(0),
        lambda x: torch.sum(x, 0, out=torch.empty(5)),
    ],
)
def test_what_else_is_summed_is_as_in_eager(call: Any) -> None:
    x = filled(300, 5)
    with SequentialSums():
        actual = call(x)
    torch.testing.assert_close(actual, call(x))


def test_the_gradient_of_a_bias_is_in_sequence() -> None:
    def gradients(dtype: torch.dtype) -> list[torch.Tensor]:
        given = [t.to(dtype).requires_grad_() for t in (filled(2, 3, 900), filled(4, 3, 2), filled(4))]
        (F.conv1d(*given).sin() * 3).sum().backward()
        return [t.grad for t in given if t.grad is not None]

    exact, eager = gradients(torch.float64), gradients(torch.float32)
    with SequentialSums():
        sequential = gradients(torch.float32)
    for one, other, truth in zip(sequential, eager, exact, strict=True):
        torch.testing.assert_close(one, truth.float(), rtol=1e-4, atol=1e-3)
        assert one.dtype == other.dtype and one.shape == other.shape
    assert torch.equal(sequential[1], eager[1]) and not torch.equal(sequential[2], eager[2])
