"""Untraced Python that creates a tensor on the device, or moves one there, gets a CPU tensor like its arguments,
whatever ran before."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.attention.flex_attention as flex_attention_module
from torch.nn.attention.flex_attention import flex_attention

from compile_lens import CaptureError
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def named(x: torch.Tensor, kind: str = "cuda") -> torch.Tensor:
    """Dynamo breaks at the count with the method already on the stack, and Python calls the method."""
    return x.to(f"{kind}:{torch.cuda.device_count() - (kind == 'cuda')}") + 1


def within(x: torch.Tensor, kind: str = "cuda") -> torch.Tensor:
    with torch.device(kind):
        made = torch.ones(8) * 2
    return (made + x).sin()


@torch.compiler.disable
def apart(x: torch.Tensor, kind: str) -> torch.Tensor:
    return x.to(kind) + torch.tensor([1.0] * 8, device=kind) + torch.zeros(8).to(torch.device(kind))


def left(x: torch.Tensor, kind: str = "cuda") -> torch.Tensor:
    return apart(x.cos(), kind).sin()


@torch.compiler.disable
def attended(x: torch.Tensor) -> torch.Tensor:
    q = x.view(1, 1, 4, 2)
    return flex_attention(q, q, q).view(8)


def attending(x: torch.Tensor, kind: str = "cuda") -> torch.Tensor:
    return attended(x.cos()).sin() + torch.ones(8, device=kind)


FUNCTIONS = [named, within, left, attending]


@pytest.mark.parametrize("target", ["h100", "mps"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_it_goes_on_as_on_the_device(fn: Callable[..., Any], target: str) -> None:
    """Graphs and results are those of plain PyTorch for the same function on the CPU."""
    kind = resolve(target).device
    if fn is named and kind == "mps":
        pytest.skip("what it counts are CUDA's devices")
    if fn is attending and f'"{kind}"' not in inspect.getsource(flex_attention_module._validate_device):
        pytest.skip("torch has no FlexAttention on Apple GPUs before 2.12")
    x = torch.rand(8)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found, outcome = perform(
            Call.read(fn, (x, kind), None, CaptureOptions(target=target), model=resolve(target))
        )
    assert outcome.error is None and outcome.result.device.type == "cpu"
    torch.testing.assert_close(outcome.result, fn(x, "cpu"))
    torch._dynamo.reset()
    plain = torch._dynamo.explain(fn)(x, "cpu")
    assert len([c for c in found.compilations if c.graphs]) == plain.graph_count
    assert not any("dlpack" in str(one.message) or "from_address" in str(one.message) for one in heard)


@pytest.mark.exhaustive
def test_also_where_nothing_ran_before() -> None:
    program = "import sys, torch, compile_lens, tests._torch.targets.test_moved_untraced as t\n" + (
        "found = [compile_lens.capture(fn, torch.rand(8), target='h100') for fn in t.FUNCTIONS]\n"
        "assert not any(one.failure for one in found), found"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=240)


def test_the_driver_is_refused_there_too() -> None:
    @torch.compiler.disable
    def asks() -> None:
        torch.cuda.current_stream().synchronize()

    def asking(x: torch.Tensor) -> torch.Tensor:
        asks()
        return x.sin()

    with pytest.raises(CaptureError, match="the driver creates this"):
        perform(
            Call.read(asking, (torch.rand(8),), None, CaptureOptions(target="h100"), model=resolve("h100"))
        )
