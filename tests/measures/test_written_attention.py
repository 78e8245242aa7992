"""Attention that a program writes out: the suggested call computes the same, and no other code counts as attention."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import compile_lens
from compile_lens.measures.written_attention import WrittenAttention, written_attention

pytestmark = pytest.mark.torch

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
SCORES = 2 * 3 * 8 * 8 * 4


def found(program: Attention) -> tuple[WrittenAttention, ...]:
    """Written-out attentions of a program on two batches of three heads: eight positions, with four numbers each."""
    return written_attention(compile_lens.capture(program, *(torch.rand(2, 3, 8, 4) for _ in range(3))))


MASK = torch.ones(8, 8).tril()


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.matmul((q @ k.transpose(-2, -1) / math.sqrt(4)).softmax(dim=-1), v)


def of_views(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).transpose(-2, -1)) / math.sqrt(4)
    weights = torch.softmax(scores, dim=2)
    return (weights.float() @ v.flatten(0, 1)).view(v.shape)


def scaled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.where(MASK == 1, 0.3 * torch.matmul(q, k.mT), -math.inf).softmax(-1) @ v


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = (q @ k.mT) * 0.5
    return F.softmax(scores.masked_fill(MASK == 0, -math.inf), dim=-1) @ v


@pytest.mark.parametrize(
    ("program", "call"),
    [
        (of_views, "F.scaled_dot_product_attention(q, k, v)"),
        (scaled, "F.scaled_dot_product_attention(q, k, v, attn_mask=…, scale=0.3)"),
        (masked, "F.scaled_dot_product_attention(q, k, v, attn_mask=…)"),
    ],
)
def test_the_call_that_is_named_computes_the_same(program: Attention, call: str) -> None:
    (one,) = found(program)
    assert one.call == call and one.scores == SCORES and one.moved == 4 * SCORES
    q, k, v = (torch.rand(2, 3, 8, 4) for _ in range(3))
    named = eval(call.replace("…", "MASK == 1"), {"F": F, "q": q, "k": k, "v": v, "MASK": MASK})
    torch.testing.assert_close(named, program(q, k, v))
    lines = {frame.line - program.__code__.co_firstlineno for frame in one.frames}
    assert lines == {scaled: {1}, masked: {1, 2}}.get(program, {1, 2, 3})
    assert one.kernels and all(key == "inference.code" for _, key, _ in one.kernels)


def of_one_call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def with_weights(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    weights = (q @ k.mT).softmax(-1)
    return weights @ v, weights


def over_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT).softmax(1) @ v


def squared(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return ((q @ k.mT) ** 2).softmax(-1) @ v


def scaled_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return ((q @ k.mT + MASK) / 2).softmax(-1) @ v


def no_product(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return q.softmax(-1) @ k.mT @ v


@pytest.mark.parametrize("program", [of_one_call, with_weights, over_heads, squared, scaled_mask, no_product])
def test_what_is_followed_or_cannot_be_is_not_advised(program: Attention) -> None:
    assert found(program) == ()


def test_what_inductor_replaces_is_not_advised() -> None:
    """Inductor's pattern matches this program: its graph already has the call."""
    whole = compile_lens.capture(plain, *(torch.rand(2, 3, 8, 4) for _ in range(3)))
    targets = [node.target for node in whole.compilations[0].graphs["inference"].nodes]
    assert any("scaled_dot_product" in target for target in targets)
    assert written_attention(whole) == ()
