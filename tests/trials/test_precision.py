"""``verify`` and rounding: the run in double precision is a real one, and some values depend on rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full
from planted import plant

from compile_lens import capture
from compile_lens._torch.graphs.double_precision import NotInDoubleError, double_precision

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch._dynamo.reset()
    torch.manual_seed(3)
    yield
    torch._dynamo.reset()


def orthogonal(g: torch.Tensor, narrow: bool = True) -> torch.Tensor:
    """Newton-Schulz in bfloat16, as in the optimizer Muon."""
    x = g.bfloat16() if narrow else g
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return (x * 0.001).to(g.dtype)


def test_a_cast_of_the_program_keeps_its_values_in_double_precision() -> None:
    g = torch.randn(32, 32, dtype=torch.float64)
    with double_precision():
        wide = orthogonal(g)
    assert torch.equal(wide, orthogonal(g, narrow=False))
    with double_precision():
        assert torch.ones(2).dtype == torch.float64 and (g.half() + 1).dtype == torch.float64
        assert (torch.arange(3) + g.float()[:3, 0]).dtype == torch.float64
    assert torch.ones(2).dtype == torch.float32


@pytest.mark.parametrize(
    "fn", [lambda x: x.view(torch.int32), lambda x: x.untyped_storage().resize_(4)], ids=["bits", "bytes"]
)
def test_what_depends_on_bits_or_bytes_has_no_run_in_double_precision(fn: Callable[..., Any]) -> None:
    with pytest.raises(NotInDoubleError), double_precision():
        fn(torch.ones(4))
    storage = torch.ones(4).untyped_storage()
    storage.resize_(4)
    assert storage.nbytes() == 4


@pytest.mark.full
def test_a_step_that_casts_to_bfloat16_itself_agrees() -> None:
    g = torch.randn(64, 64)
    report = capture(orthogonal, g).verify(orthogonal, g)
    assert report.ok is True, full(report)
    assert (report.comparisons[0].eager_abs or 0) > 1e-6  # the run in double precision is a real one


def edges(x: torch.Tensor) -> Any:
    """Numbers at a rounding boundary: eager itself jumps if the input changes by one unit in the last place."""
    y = torch.arange(4096) / 2 + 0.5
    return (y * (x.exp().log() / x)).floor().int()


@pytest.mark.full
def test_a_number_on_the_edge_of_a_rounding_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(4096) + 0.5
    ran = plant(monkeypatch, lambda outputs, inputs: (edges(inputs[0] * (1 + 1.2e-7)),))
    report = capture(edges, x).verify(edges, x)
    assert ran and report.ok is None and report.verdict == "was not compared", full(report)
    assert "rounded" in full(report) and "DIFFERS" not in full(report)


@pytest.mark.full
def test_an_error_beside_numbers_on_an_edge_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(4096) + 0.5
    plant(monkeypatch, lambda outputs, inputs: (edges(inputs[0]) + 1,))
    assert capture(edges, x).verify(edges, x).ok is False
