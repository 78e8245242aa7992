"""Lesson 4, the joint graph and its cut: what it prints, and what its text says of it."""

from __future__ import annotations

import lessons
import pytest
import torch

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("04")


def f(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def test_it_shows_the_cut() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    rows = [line.split(maxsplit=1) for line in cells["halves"].splitlines()]
    assert len(rows) == 17 and sum("derivative" in row[1] for row in rows) == 12
    both = [row[0] for row in rows if row[1].endswith("forward and backward")]
    assert both == ["sin", "cos", "sin_1", "cos_1"]
    default, chosen, again = cells["kept"].splitlines()
    assert default == "default     keeps 3: primals_1, sin, cos"
    assert chosen == "Inductor's  keeps 1: primals_1"
    assert again == "computed in both halves: cos, sin"
    assert "without recomputing: you said 2, but the capture has 3 values kept" in cells["reveal"]
    assert "with recomputing: you said 2, but the capture has 1 value kept" in cells["reveal"]
    assert "loads 2 tensors" in cells["cost"] and "it would load 4 and" in cells["cost"]
    assert "bytes of their own: 16384" in cells["product"] and "computed again: ()" in cells["product"]


def test_a_checkpoint_moves_the_peak() -> None:
    """The order that the text speaks of; kept and peaks also against a count by hand."""
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    rows = {
        name: tuple(int(number.replace(",", "")) for number in numbers)
        for name, *numbers in map(str.split, cells["checkpoint"].splitlines()[1:])
    }
    plain, each, every = rows["plain"], rows["each_layer"], rows["all_layers"]
    activation = 4096 * 64 * 4
    assert plain[0] == 7 * activation, "four products and three results of GELU"
    assert each[0] == 3 * activation, "what goes into the second, third and fourth layer"
    assert every[0] == 0
    assert every[1] < each[1] < plain[1], "the forward's peak"
    assert each[2] < plain[2] and abs(every[2] - plain[2]) < 0.01 * plain[2], "the backward's peak"
    assert plain[3] < each[3] < every[3], "launches"


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    one = capture(f, torch.rand(1000, requires_grad=True)).compilations[0]
    assert one.partition is not None and one.partition.default is not None
    default, chosen = len(one.partition.default), len(one.partition.chosen)
    sentence = r"would keep (\w+) tensors for sin² \+ cos², Inductor keeps (\w+)"
    assert lessons.said(prose["take-home"], sentence) == (default, chosen)
    assert lessons.said(prose["kept-meaning"], r"cross it: (\w+) tensor") == (chosen,)
    loaded_and_stored = 2 * (default - chosen)
    numbers = lessons.said(prose["cost-meaning"], r"(\w+) tensors less to move, for (\w+) functions more")
    assert numbers == (loaded_and_stored, len(one.partition.recomputed))
    assert lessons.said(prose["checkpoint-why"], r"(\w+) layers, on a batch") == (4,)
    merged = {node.name: node.origins for node in one.graphs["backward"].calls}
    assert "sin_1" in merged["sin"] and "cos_1" in merged["cos"]


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME, 4)
