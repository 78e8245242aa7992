"""Kernels that are not generated from loops, for an absent device: FlexAttention's, and the user's own."""

from __future__ import annotations

import re
import types
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from compile_lens import CaptureError
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


def here(fn: Any, *args: Any, target: str = "h100", build: bool = False) -> Capture:
    return perform(
        Call.read(fn, args, None, CaptureOptions(target=target, build=build), model=resolve(target))
    )[0]


def queries(grad: bool) -> list[torch.Tensor]:
    return [torch.rand(1, 2, 128, 64, requires_grad=grad) for _ in range(3)]


def biased(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.01)


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device=str(q.device))
    return flex_attention(q, k, v, block_mask=mask)


@pytest.mark.parametrize("fn", [biased, masked])
def test_flex_attention_forward_and_backward(fn: Any) -> None:
    found = here(fn, *queries(grad=True))
    templates = {k.phase: k for k in found.kernels if k.kind == "template"}
    assert [*templates] == ["forward", "backward"] and found.coverage().unexplained == ()
    for phase, kernel in templates.items():
        assert kernel.language == "triton" and "flex_attention" in kernel.name and "tl.dot" in kernel.source
        functions = {f.function for f in found.chain.lines(kernel)}
        assert fn.__name__ in functions and functions <= {fn.__name__, "<lambda>"}, (
            phase
        )  # the kernel inlines the body


@pytest.mark.skipif(
    torch.__version__.startswith("2.11."), reason="its FlexAttention runs a graph on the device itself"
)
def test_flex_attention_for_a_mac() -> None:
    found = here(biased, *queries(grad=False), target="mps")
    (kernel,) = [k for k in found.kernels if k.kind == "template"]
    assert kernel.language == "metal" and [f.function for f in found.chain.lines(kernel)] == ["biased"]
    assert "simdgroup" in kernel.source or "kernel void" in kernel.source
    q, k, v = (types.SimpleNamespace(device=torch.device("mps"), requires_grad=True) for _ in range(3))
    with pytest.raises(
        NotImplementedError, match="MPS"
    ) as there:  # the error that torch itself raises on a Mac
        torch.nn.attention.flex_attention._validate_device(q, k, v)
    with pytest.raises(CaptureError, match=re.escape(str(there.value))) as raised:
        here(biased, *queries(grad=True), target="mps")
    assert "in biased\n  return flex_attention(" in str(raised.value)


@triton.jit
def added(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(o_ptr + at, tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside), mask=inside)


def launched(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    o = torch.empty_like(x)
    added[(triton.cdiv(x.numel(), 256),)](x, y, o, x.numel(), BLOCK=256)  # here
    return o.relu() * 2


@torch.library.triton_op("compile_lens_tests::added", mutates_args={})
def operator(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    o = torch.empty_like(x)
    torch.library.wrap_triton(added)[(triton.cdiv(x.numel(), 256),)](x, y, o, x.numel(), BLOCK=256)
    return o


def through_an_operator(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return operator(x, y).relu() * 2  # here


@triton.autotune(configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def doubled(x_ptr, o_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


def tuned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    o = torch.empty_like(x)
    doubled[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, o, x.numel())  # here
    return o.sin() + y


@pytest.mark.parametrize(
    ("fn", "name", "text"),
    [
        (launched, "added", "tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)"),
        (through_an_operator, "added", "tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside)"),
        (tuned, "doubled", "tl.load(x_ptr + at, mask=at < n) * 2"),
    ],
    ids=["launched", "an operator", "autotuned"],
)
def test_a_kernel_of_the_users_own(fn: Any, name: str, text: str) -> None:
    found = here(fn, torch.rand(1000), torch.rand(1000), build=True)
    own, ours = found.kernels
    assert own.name.startswith(name) and own.kind == "user-written" and text in own.source
    assert [f.text.endswith("# here") for f in found.chain.lines(own)] == [True]
    assert ours.name.startswith("triton_poi") and own.launches == ours.launches == 1
    assert found.ledger.total.launches == 2 and found.coverage().unexplained == ()
    assert own.machine is not None and own.sass
    assert found.target is not None and found.target.queries == ()  # test_user_kernels.py has their values
