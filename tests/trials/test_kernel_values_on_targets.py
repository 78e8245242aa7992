"""Values at each kernel of code for an absent GPU, which runs in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from cuda_only import only_on_cuda
from miscompiles import attend

import compile_lens
from compile_lens import UsageError

pytest.importorskip("triton")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm"), pytest.mark.full]


def weighted(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (torch.softmax(x @ w, -1) * torch.sin(x)).sum(0)


def test_values_that_triton_kernels_store_are_compared() -> None:
    generator = torch.Generator().manual_seed(2)
    x, w = torch.randn(16, 32, generator=generator), torch.randn(32, 32, generator=generator)
    divergence = compile_lens.divergence(weighted, x, w, target="h100")
    assert divergence.agrees and divergence.attempts == () and divergence.first_value is None
    values = {value.node: value for value in divergence.graphs[0].values}
    stored = {name for name, value in values.items() if value.compared}
    assert {"mm", "sum_1", "sum_2"} <= stored and {values[name].outcome for name in stored} == {"agrees"}
    exact = weighted(x.double(), w.double())
    assert values["sum_2"].kernel.startswith("triton_")
    eager = values["mm"].eager
    assert eager == pytest.approx(
        float((x @ w - x.double() @ w.double()).norm() / (x.double() @ w.double()).norm())
    )
    assert values["sum_2"].compiled is not None and values["sum_2"].compiled < 1e-5 < float(exact.norm())


def test_the_pattern_that_ignores_a_dimension_is_named_on_a_gpu() -> None:
    q = torch.randn(2, 4, 16, 64, generator=torch.Generator().manual_seed(7)).bfloat16()
    divergence = compile_lens.divergence(attend, q, target="h100")
    fused = any("_scaled_dot_product" in kernel.name for kernel in divergence.capture.kernels)
    if not fused:
        pytest.skip("this torch does not fuse it for the device")
    first = divergence.first_value
    assert divergence.agrees is False and first is not None and first.node == "bmm_1"
    assert first.frames[0].call == "weights @ q" and "_scaled_dot_product" in first.kernel
    text = " ".join(str(divergence).split())
    assert "left none of them to compare" in text and "Triton's interpreter" in text


def two_graphs(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.cumsum(0)
    torch._dynamo.graph_break()
    return y, only_on_cuda(x).cumsum(1)


def test_a_graph_that_cannot_run_has_the_reason() -> None:
    divergence = compile_lens.divergence(two_graphs, torch.rand(8, 8), target="h100")
    first, second = divergence.graphs
    assert [value.outcome for value in first.values] == ["agrees"]
    outcomes = {value.node: value for value in second.values}
    assert outcomes["cumsum"].outcome == "not compared" and "only_on_cuda" in outcomes["cumsum"].reason
    assert not any(value.compared for value in second.values) and divergence.agrees is None


def test_calls_for_a_target_are_refused() -> None:
    with pytest.raises(UsageError, match="one call"):
        compile_lens.divergence(weighted, calls=[(torch.rand(4, 4), torch.rand(4, 4))] * 2, target="h100")
