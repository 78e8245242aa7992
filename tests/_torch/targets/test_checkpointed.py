"""Random operators that a checkpoint recomputes, for an absent device.

For CUDA torch gives the forward and the backward a generator each, and runs the operator with it. The expected names
and order are those of a program that ran on a real GPU: inputs ``fwd_rng_state_0``, ``fwd_rng_state_1`` after all
others, and ``graphsafe_run_with_rng_state(operator, …, rng_state = fwd_rng_state_0)`` in the operator's place.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from suite import rand
from torch.utils.checkpoint import checkpoint

from compile_lens import versions
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


DROPPED = 0.1 if versions.torch_version() >= (2, 15) else 0.0
"""Torch 2.15 knows that attention without dropout draws nothing."""


def here(fn: Any, *args: Any, target: str = "h100") -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target), model=resolve(target)))[0]


def attention(q: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, q, q, dropout_p=DROPPED)


def without(q: torch.Tensor) -> Any:
    return checkpoint(lambda q: F.scaled_dot_product_attention(q, q, q), q, use_reentrant=False).sum()


def one(q: torch.Tensor) -> Any:
    return checkpoint(attention, q, use_reentrant=False).sum()


def two(q: torch.Tensor) -> Any:
    return checkpoint(attention, checkpoint(attention, q, use_reentrant=False), use_reentrant=False).sum()


def unkept(q: torch.Tensor) -> Any:
    return checkpoint(attention, q, use_reentrant=False, preserve_rng_state=False).sum()


def asked(q: torch.Tensor) -> torch.Tensor:
    return q.sin() if len(torch.cuda.default_generators) == 1 else q.cos()


def heads(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return rand(1, 2, 16, 16).to(dtype).requires_grad_()


def inputs(found: Capture, stage: str) -> list[str]:
    nodes = found.compilations[0].graphs[stage].nodes
    return [n.name for n in nodes if n.op == "placeholder"]


def runs(found: Capture, phase: str) -> list[tuple[str, str]]:
    """Operators that the code runs with a generator, each with the name of the generator."""
    text = found.compilations[0].code[phase].text
    return re.findall(r"graphsafe_run_with_rng_state\(torch\.ops\.aten\.(\w+).*rng_state=(\w+)\)", text)


EFFICIENT = "_scaled_dot_product_efficient_attention"
SHORT = "_scaled_dot_product_flash_attention" if DROPPED else "_scaled_dot_product_cudnn_attention"


@pytest.mark.parametrize(
    ("fn", "dtype", "operator", "count"),
    [
        (one, torch.float32, EFFICIENT, 1),
        (two, torch.float32, EFFICIENT, 2),
        (unkept, torch.float32, EFFICIENT, 1),
        (one, torch.bfloat16, SHORT, 1),
    ],
)
def test_attention_that_is_computed_again_runs_with_a_generator_of_the_device(
    fn: Any, dtype: torch.dtype, operator: str, count: int
) -> None:
    of_process, before = torch.cuda.default_generators, torch.get_rng_state()
    found = here(fn, heads(dtype))
    assert found.notes == ()
    states = [[f"{phase}_rng_state_{i}" for i in range(count)] for phase in ("fwd", "bwd")]
    assert inputs(found, "forward") == ["primals_1", *states[0]]
    assert [name for name in inputs(found, "backward") if "rng" in name] == states[1]
    assert sorted(runs(found, "forward")) == sorted((operator, state) for state in states[0])
    assert sorted(runs(found, "backward")) == sorted((operator, state) for state in states[1])
    assert torch.cuda.default_generators is of_process
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the generators of this process are those of a GPU")
def test_a_program_sees_the_generators_where_it_is_traced_alone() -> None:
    assert [n.name for n in here(asked, rand(8)).compilations[0].graphs["dynamo"].calls] == ["sin"]
    assert len(torch.cuda.default_generators) == 0


def test_a_mac_has_none() -> None:
    found = here(without, heads(), target="mps:m3max")
    assert not any("rng" in name for name in inputs(found, "forward") + inputs(found, "backward"))
