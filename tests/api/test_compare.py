"""Functions compared for targets that are not in the machine."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import compile_lens
from compile_lens import CaptureError, UsageError
from compile_lens.results.comparison import Comparison

pytestmark = pytest.mark.torch


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def attention(q: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, q, q, is_causal=True)


def scanned(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x + 1, -1)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return (x.double() * 2).sum()


def refuses(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("not today")


def kinds(found: Comparison) -> set[str]:
    return {d.kind for d in found.differences}


def kernels(found: Comparison) -> dict[str, int]:
    return {target: len(capture.kernels) for target, capture in found.captures.items()}


@pytest.mark.full
def test_a_long_softmax_is_several_kernels_on_cuda_since_it_is_split() -> None:
    comparison = compile_lens.compare(softmax, torch.randn(64, 50_000))
    count = kernels(comparison)
    assert count["cpu"] == count["mps"] == 1 and count["h100"] >= 3  # five if torch has no online softmax
    assert {"split", "fusion"} <= kinds(comparison) and "unexplained" not in kinds(comparison)
    (row,) = comparison.rows
    assert row.text == "return torch.softmax(x, -1)" and not row.alike
    (split,) = (d for d in comparison.differences if d.kind == "split")
    assert {f.target for f in split.facts} >= {"cpu", "h100", "mps"} and "h100 132" in str(split.facts)


@pytest.mark.full
def test_attention_is_a_library_call_of_another_name_on_each() -> None:
    comparison = compile_lens.compare(attention, torch.randn(2, 4, 64, 64))
    assert kinds(comparison) == {"library"}
    names = {use.called for row in comparison.rows for cell in row.cells for use in cell.kernels}
    assert len(names) == 3 and "aten._scaled_dot_product_flash_attention_for_cpu" in names


def test_a_scan_is_generated_where_the_backend_can() -> None:
    comparison = compile_lens.compare(scanned, torch.randn(64, 100), targets=["cpu", "cuda:sm_80"])
    assert kinds(comparison) == {"library", "fusion"}
    (library,) = (d for d in comparison.differences if d.kind == "library")
    assert "aten.cumsum is a library call on cpu, and generated on cuda:sm_80" in library.sentence
    assert "BackendFeature.SCAN" in str(library.facts)


def test_a_target_that_fails_is_a_column() -> None:
    comparison = compile_lens.compare(doubled, torch.randn(8, 8), targets=["cpu", "mps"])
    assert list(comparison.captures) == ["cpu"] and "float64" in comparison.failures["mps"]
    (failed,) = (d for d in comparison.differences if d.kind == "failed")
    assert "a type that mps does not have" in str(failed.facts)
    comparison = compile_lens.compare(scanned, torch.randn(4, 4), targets=["cpu", "h101"])
    assert "target='h101' is not known" in comparison.failures["h101"]


def test_where_every_target_fails_it_raises() -> None:
    with pytest.raises(CaptureError, match="not today") as raised:
        compile_lens.compare(refuses, torch.randn(4), targets=["cpu", "mps"])
    assert raised.value.capture.failure is not None
    with pytest.raises(UsageError, match=r"no target could be captured: h101: .*h102: "):
        compile_lens.compare(softmax, torch.randn(4), targets=["h101", "h102"])
    with pytest.raises(UsageError, match="callable first"):
        compile_lens.compare(3, torch.randn(4), targets=["cpu", "mps"])  # one error for both targets


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"targets": "h100"}, "is not a list of targets"),
        ({"targets": []}, "names no target"),
        ({"targets": ["cpu", "cpu"]}, "cpu more than once"),
        ({"target": "h100"}, "compare has no argument .target. .* did you mean .targets."),
    ],
)
def test_targets_that_are_no_list_of_targets_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compile_lens.compare(softmax, torch.randn(4), **options)


@pytest.mark.full
def test_options_and_keywords_reach_every_capture() -> None:
    x = torch.randn(16, requires_grad=True)
    comparison = compile_lens.compare(torch.sin, kwargs={"input": x}, targets=["cpu", "mps"], backward=False)
    assert all(c.options.backward == "no" for c in comparison.captures.values())
    assert {row.phase for row in comparison.rows} == {"forward"} and x.grad is None
