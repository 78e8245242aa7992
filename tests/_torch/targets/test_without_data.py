"""Inputs and modules without data, for a device that is not there: shapes are enough."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from compile_lens import capture
from compile_lens.child import crossing
from compile_lens.devices.models import resolve
from compile_lens.engine.perform import perform
from compile_lens.engine.request import Asked
from compile_lens.errors import UsageError
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

COMPUTED = "inputs or parameters are on meta: nothing was computed"


class Net(torch.nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.up, self.norm = torch.nn.Linear(width, 4 * width), torch.nn.LayerNorm(4 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.up(x)))


def told(found: Capture) -> Any:
    return [
        (
            c.phases,
            [(k.name, k.source, k.launches) for k in found.kernels],
            [(m.phase, m.peak) for m in c.memory],
        )
        for c in found.compilations
    ]


@pytest.mark.parametrize("target", ["h100", "mps"])
def test_what_is_on_meta_gives_the_code_that_values_give(target: str) -> None:
    real = capture(Net(), torch.rand(8, 64), target=target)
    with torch.device("meta"):
        net, x = Net(), torch.empty(8, 64)
    found = capture(net, x, target=target)
    assert told(found) == told(real) and found.kernels
    assert found.target is not None and COMPUTED in found.target.may_differ
    assert real.target is not None and COMPUTED not in real.target.may_differ
    assert found.inputs == ("x: float32[8, 64] meta",)


def test_results_are_on_meta_too_and_a_break_goes_on() -> None:
    def broken(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.bfloat16() @ y.bfloat16(), x

    x = torch.empty(8, 8, device="meta")
    found, outcome = perform(broken, (x,), None, Asked(target="h100"), model=resolve("h100"))
    product, same = outcome.result
    assert product.is_meta and product.dtype == torch.bfloat16 and product.shape == (8, 8) and same is x
    assert len(found.compilations) == 2 and found.failure is None


def test_fake_tensors() -> None:
    with FakeTensorMode():
        net, x = Net(), torch.empty(8, 64)
    assert isinstance(x, FakeTensor)
    assert told(capture(net, x, target="h100")) == told(capture(Net(), torch.rand(8, 64), target="h100"))
    with FakeTensorMode():
        whole = torch.empty(10)[2:]
        first, second = pickle.loads(crossing.packed((whole[:4], whole[1:])).data)
    assert first.is_meta and first.shape == (4,) and first.storage_offset() == 2
    assert first.untyped_storage()._cdata == second.untyped_storage()._cdata


@pytest.mark.parametrize("target", [None, "cpu:avx2"])
def test_without_a_device_the_error_says_how(target: str | None) -> None:
    with torch.device("meta"):
        net, x = Net(), torch.empty(8, 64)
    with FakeTensorMode():
        fake = torch.empty(8, 64)
    with pytest.raises(UsageError, match=r"argument 0 is on device 'meta'.*target=\"h100\""):
        capture(torch.sin, x, target=target)
    with pytest.raises(UsageError, match=r"up\.weight is on device 'meta'.*target=\"h100\""):
        capture(net, torch.rand(8, 64), target=target)
    with pytest.raises(UsageError, match=r"argument 0 is a fake tensor.*target=\"h100\""):
        capture(torch.sin, fake, target=target)


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    """A matrix of 200,000 by 250,000 halves is 100 GB; an H100 has 80."""
    with torch.device("meta"):
        x, w = (
            torch.empty(1, 200_000, dtype=torch.bfloat16),
            torch.empty(200_000, 250_000, dtype=torch.bfloat16),
        )
    found = capture(lambda x, w: x @ w, x, w, target="h100")
    for ending in ("html", "md", "txt"):
        text = re.sub(r"\s+", " ", found.save(tmp_path / f"a.{ending}").read_text())
        assert "which does not fit: NVIDIA H100 SXM has" in text, ending
    small = capture(lambda x, w: x @ w, x[:, :1000], w[:1000, :1000], target="h100")
    assert "does not fit" not in str(found.target) and "does not fit" not in str(small)
