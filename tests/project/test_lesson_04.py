"""Lesson 4, the joint graph and its cut: its output, and the claims of its text."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import lessons
import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.compile_utils import fx_graph_cse
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.utils import run_and_get_code

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("04")


def f(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


@pytest.mark.exhaustive
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
    assert "default: no guess; the capture has 3 values saved" in cells["reveal"]
    assert "Inductor's: no guess; the capture has 1 value saved" in cells["reveal"]
    assert cells["cost"].splitlines() == [
        "default     stores 3, loads 4, computes sin_1 and cos_1",
        "Inductor's  stores 1, loads 2, computes cos and sin",
        "the kernel of the backward loads 2",
    ]
    assert "bytes of their own: 16384" in cells["product"] and "computed again: ()" in cells["product"]


@pytest.mark.exhaustive
def test_a_checkpoint_moves_the_peak() -> None:
    """The order in the text; saved bytes and peaks are also counted by hand."""
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
    default, chosen = len(one.partition.default), len(one.partition.saved)
    sentence = r"would keep (\w+) tensors for sin² \+ cos², Inductor keeps (\w+)"
    assert lessons.said(prose["take-home"], sentence) == (default, chosen)
    assert lessons.said(prose["kept-meaning"], r"bytes cross: (\w+) tensor") == (chosen,)
    assert lessons.said(prose["checkpoint-why"], r"(\w+) layers, on a batch") == (4,)
    merged = {node.name: node.origins for node in one.graphs["backward"].calls}
    assert "sin_1" in merged["sin"] and "cos_1" in merged["cos"]


@pytest.fixture(scope="module")
def counted() -> dict[str, tuple[Counter[str], Counter[str]]]:
    """Return the counts in Inductor's code of both directions for each of three partitioners, without a capture.

    The third is the default one on a graph whose equal calls are merged.
    """

    def merged(joint: torch.fx.GraphModule, inputs: Any, **more: Any) -> Any:
        joint.graph = fx_graph_cse(joint.graph)
        joint.recompile()
        return default_partition(joint, inputs, **more)

    partitioners = {
        "default": default_partition,
        "merged": merged,
        "chosen": min_cut_rematerialization_partition,
    }

    def trained(compiled: Any) -> None:
        x = torch.rand(1024, requires_grad=True)  # a multiple of every register, so that a body appears once
        compiled(x).sum().backward()

    counted = {}
    for name, partitioner in partitioners.items():
        backend = aot_autograd(
            fw_compiler=lambda graph, inputs: compile_fx_inner(graph, inputs),
            bw_compiler=lambda graph, inputs: compile_fx_inner(graph, inputs, is_backward=True),
            partition_fn=partitioner,
            decompositions=select_decomp_table(),
        )
        torch._dynamo.reset()
        codes = run_and_get_code(trained, torch.compile(f, backend=backend))[1]
        forward, backward = (Counter(re.findall(r"\b(loadu|store|sin|cos)\(", code)) for code in codes)
        counted[name] = forward, backward
    torch._dynamo.reset()
    return counted


def test_what_it_says_of_three_cuts_is_so_in_the_code_of_each(
    counted: dict[str, tuple[Counter[str], Counter[str]]],
) -> None:
    prose = lessons.prose(NAME)

    def moved(name: str) -> int:
        return counted[name][0]["store"] + counted[name][1]["loadu"]

    def functions(name: str) -> int:
        return counted[name][1]["sin"] + counted[name][1]["cos"]

    numbers = lessons.said(prose["cost-meaning"], r"Inductor's cut moves (\w+) tensors fewer")
    assert numbers == (moved("default") - moved("chosen"),)
    assert "computes no extra function: both backwards compute a sine and a cosine" in prose["cost-meaning"]
    assert functions("default") == functions("chosen") == 2
    forward, backward = counted["merged"]
    numbers = lessons.said(prose["cost-meaning"], r"forward stores (\w+), its backward loads (\w+)")
    assert numbers == (forward["store"], backward["loadu"]) and functions("merged") == 0
    kept = lessons.said(prose["cost-meaning"], r"keeps (\w+) tensors; its forward")
    assert kept == (forward["store"] - 1,)
    numbers = lessons.said(
        prose["cost-meaning"], r"moves (\w+) tensors fewer, at the price of (\w+) more functions"
    )
    assert numbers == (moved("merged") - moved("chosen"), functions("chosen"))


@pytest.mark.exhaustive
def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
