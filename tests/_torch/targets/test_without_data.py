"""Inputs and modules without data, for an absent device: shapes suffice."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from compile_lens import capture
from compile_lens.child import pickling
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
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


@pytest.mark.full
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
    found, outcome = perform(
        Call.read(broken, (x,), None, CaptureOptions(target="h100"), model=resolve("h100"))
    )
    product, same = outcome.result
    assert product.is_meta and product.dtype == torch.bfloat16 and product.shape == (8, 8) and same is x
    assert len(found.compilations) == 2 and found.failure is None


@pytest.mark.full
def test_fake_tensors() -> None:
    with FakeTensorMode():
        net, x = Net(), torch.empty(8, 64)
        inside = capture(net, x, target="h100")
    assert isinstance(x, FakeTensor)
    of_values = capture(Net(), torch.rand(8, 64), target="h100")
    assert told(inside) == told(capture(net, x, target="h100")) == told(of_values)
    assert inside.target is not None and inside.target.queries == ()
    with FakeTensorMode():
        whole = torch.empty(10)[2:]
        first, second = pickle.loads(pickling.pack((whole[:4], whole[1:])).data)
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
    """A matrix of 200,000 by 250,000 halves takes 100 GB; an H100 has 80."""
    with torch.device("meta"):
        x, w = (
            torch.empty(1, 200_000, dtype=torch.bfloat16),
            torch.empty(200_000, 250_000, dtype=torch.bfloat16),
        )
    found = capture(lambda x, w: x @ w, x, w, target="h100")
    assert found.target is not None and found.target.resident_bytes == (200_000 + 200_000 * 250_000) * 2
    for ending in ("html", "md", "txt"):
        text = re.sub(r"\s+", " ", found.save(tmp_path / f"a.{ending}").read_text())
        assert "which does not fit: NVIDIA H100 SXM has 79.2 GiB" in text, ending
        assert "~93.1 GiB" in text, ending  # 100,000,000,000 / 2**30
    x, w = torch.empty_like(x[:, :1000]), torch.empty_like(w[:1000, :1000])  # slices keep the whole alive
    small = capture(lambda x, w: x @ w, x, w, target="h100")
    assert "does not fit" not in str(found.target) and "does not fit" not in str(small)


class Parts(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    """Two graphs with a break in between, and a submodule that the call does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.unused = (torch.nn.Linear(1000, 1000, bias=False) for _ in range(3))
        self.unused.weight.grad = torch.empty_like(self.unused.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x)


@pytest.mark.full
def test_what_the_function_holds_is_counted_once_whatever_reads_it() -> None:
    """Three weights and a gradient of 4,000,000 bytes, and an input of 4,000, whatever path leads to them."""
    with torch.device("meta"):
        parts, x = Parts(), torch.empty(1, 1000)
    step = torch.optim.SGD(parts.parameters()).step
    for fn in (parts, parts.forward, lambda x: parts(x) + x[0]):
        found = capture(fn, x, target="h100")
        assert found.target is not None and found.target.resident_bytes == 4 * 4_000_000 + 4_000
    found = capture(step, target="h100")
    assert found.target is not None and found.target.resident_bytes == 4 * 4_000_000


def test_weights_that_no_graph_reads_are_there_too(tmp_path: Path) -> None:
    """Each graph reads one of three matrices of 40 GB: an H100 has room for one, but not for all three."""
    with torch.device("meta"):
        parts = Parts()
        for part in (parts.first, parts.second, parts.unused):
            part.weight = torch.nn.Parameter(torch.empty(100_000, 100_000), requires_grad=False)
        x = torch.empty(1, 100_000)
    file = capture(parts, x, target="h100").save(tmp_path / "a.md")
    said = re.sub(r"\s+", " ", file.read_text().replace("\\", ""))
    assert "that the function and its arguments hold and this graph does not read" in said
    assert "at least ~112 GiB, which does not fit" in said  # 120,000,000,000 / 2**30
