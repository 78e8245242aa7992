"""Graphs that Inductor asks to run eagerly on a device: torch raises ``SkipFrame`` through its backend, and Python
runs the function (``OutputGraph.call_user_compiler``, ``compile_fx._check_triton_bf16_support``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from compile_lens._torch.targets import caveats
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.record.breaks import NOT_TRACED, WHOLE

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

HALVES = torch.randn(8, 4).bfloat16()


def added(x: torch.Tensor) -> torch.Tensor:
    return torch.index_add(x, 0, torch.tensor([0, 2], device=x.device), x[:2]).sin()


def put(x: torch.Tensor) -> torch.Tensor:
    return torch.index_put(x, [torch.tensor([1, 2], device=x.device)], x[:2])


def cast(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda", torch.bfloat16):
        return x @ x.t()


def within(x: torch.Tensor) -> torch.Tensor:
    return x.bfloat16().sin().float()


@pytest.mark.parametrize(
    ("fn", "x"), [(added, HALVES), (put, HALVES), (cast, HALVES.float())], ids=["added", "put", "cast"]
)
def test_bfloat16_is_left_to_eager_where_the_device_has_none(fn: Callable[..., Any], x: torch.Tensor) -> None:
    made, outcome = perform(
        Call.read(fn, (x,), None, CaptureOptions(target="t4", fullgraph=False), model=resolve("t4"))
    )
    (skip,) = made.skipped
    assert (skip.kind, skip.function, skip.file) == (WHOLE, fn.__name__, __file__)
    assert skip.cause.kind == NOT_TRACED and skip.cause.reason == "BF16 is not supported"
    assert "use float16" in skip.cause.hint
    assert not made.compilations and not made.kernels and made.failure is None
    assert outcome.error is None
    assert made.target is not None and caveats.UNTRACED in made.target.may_differ


def test_a_graph_that_has_it_inside_alone_is_compiled() -> None:
    made, _ = perform(
        Call.read(within, (HALVES.float(),), None, CaptureOptions(target="t4"), model=resolve("t4"))
    )
    assert [k.language for k in made.kernels] == ["triton"] and not made.skipped


def test_elsewhere_it_is_compiled() -> None:
    made, _ = perform(Call.read(added, (HALVES,), None, CaptureOptions(target="a100"), model=resolve("a100")))
    assert made.kernels and not made.skipped
