"""What the texts beside the sliders of lessons 2 to 4 say, by plain torch and by captures of the same programs."""

from __future__ import annotations

from typing import Any

import lessons
import pytest
import torch
from quiz_answers import compiled
from torch.utils.checkpoint import checkpoint

from compile_lens import capture

pytestmark = pytest.mark.torch


def _prose(number: str) -> str:
    return lessons.prose(lessons.named(number))["series-why"]


def test_a_choice_in_python_is_two_graphs() -> None:
    def decides(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        if x.sum() > 0:
            return torch.cos(y)
        return y

    def chooses(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        return torch.where(x.sum() > 0, torch.cos(y), y)

    assert [compiled(one, [(torch.rand(8),)]) for one in (chooses, decides)] == [1, 2]
    first = capture(decides, torch.rand(8)).compilations[0].graphs["inference"]
    sines = [call for call in first.calls if call.target.startswith("aten.sin")]
    assert len(sines) == 1 and "is two graphs on the left, and the sine of the first" in _prose("02")


def test_a_symbol_is_an_argument_of_the_kernel() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * 2

    marked = torch.rand(8)
    torch._dynamo.mark_dynamic(marked, 0)
    number, symbol = (capture(step, x).kernels[0].source for x in (torch.rand(8), marked))
    assert "const int64_t ks0" in symbol and "ks0" not in number and "(8L)" in number
    assert "where one has a number, the other has an argument" in _prose("03")


def test_a_checkpoint_changes_the_backward_alone() -> None:
    layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(4)]
    network = torch.nn.Sequential(*layers)

    def each_layer(y: torch.Tensor) -> Any:
        for layer in layers:
            y = checkpoint(layer, y, use_reentrant=False)
        return y

    def all_layers(y: torch.Tensor) -> Any:
        return checkpoint(network, y, use_reentrant=False)

    ledgers = [capture(one, torch.rand(4096, 64)).ledger for one in (network, each_layer, all_layers)]
    assert len({ledger.forward.launches for ledger in ledgers}) == 1
    assert len({ledger.backward.launches for ledger in ledgers}) == 3
    assert "what differs is what the backward launches" in _prose("04")
