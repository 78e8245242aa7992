"""Lesson 9, why it did not fuse: its output, and the claims of its text."""

from __future__ import annotations

import re
from collections.abc import Callable

import lessons
import pytest
import torch
from torch._inductor.utils import run_and_get_code

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("09")


@pytest.mark.exhaustive
def test_it_shows_the_walls() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert cells["op"].startswith("in stage dynamo\n") and "There was no fake impl registered" in cells["op"]
    launches = re.findall(r"no guess; the capture has (\d)", cells["reveal"])
    assert launches == ["1", "3", "3"]
    rows = {row[0]: row[1:] for row in map(str.split, cells["table"].splitlines()[1:])}
    assert rows["plain"][:4] == ["1", "1", "1", "2"]
    assert rows["wrapped"][:5] == ["3", "3", "3", "≥", "4"], (
        "sin and cos load and store; of my_tanh, nobody knows"
    )
    assert rows["ordered"][:4] == ["3", "3", "3", "8"], "the places of the sorted numbers are 64 bits each"
    assert "not fused, extern" in cells["why"] and "op1 (lesson.my_tanh.default)" in cells["why"]
    assert "saved at most 8,388,608 bytes" in cells["why"]
    assert "to try: Write the custom operator with ordinary PyTorch operators" in cells["why"]
    assert cells["backward"].strip() == "launches forward 3 backward 1"
    head, both, share = cells["walls"].splitlines()
    assert head.startswith("head_and_all: They loop over different numbers of elements")
    assert both.startswith("rows_and_columns: Both touch a buffer, but")
    assert share.startswith("share_of_sum: The second needs finished results of a reduction")


@pytest.mark.exhaustive
def test_a_softmax_over_the_last_dimension_is_one_group() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    matches = re.findall(r"softmax over (\d): loops (\d), groups (\d), bytes ([\d,]+)", cells["try"])
    (dim0, loops0, groups0, bytes0), (dim1, loops1, groups1, bytes1) = matches
    assert (dim0, dim1, loops0, loops1) == ("0", "1", "4", "4")
    assert int(groups0) > int(groups1) == 1
    assert int(bytes1.replace(",", "")) == 2 * 64 * 64 * 4 < int(bytes0.replace(",", ""))
    assert "The second needs finished results of a reduction" in cells["try"]


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    x = torch.rand(64)
    wall = capture(lambda x: torch.cos(torch.sort(torch.sin(x))[0]), x).ledger.total
    plain = capture(lambda x: torch.cos(torch.tanh(torch.sin(x))), x).ledger.total
    sentence = r"(\w+) launches where (\w+) would do"
    assert lessons.said(prose["take-home"], sentence) == (wall.launches, plain.launches)
    softmax = capture(lambda x: torch.softmax(x, 1), torch.rand(64, 64)).ledger.total
    assert lessons.said(prose["try-meaning"], r"the same (\w+) loops") == (softmax.loops,)
    assert lessons.said(prose["backward-meaning"], r"the whole backward is (\w+) kernel") == (1,)
    assert lessons.said(prose["walls-why"], r"each of them stays in (\w+) groups") == (2,)
    for function in (
        lambda x: (x.sin(), x[:32].cos()),
        lambda x: (x.sum(0), x.sum(1)),
        lambda x: x / x.sum(),
    ):
        total = capture(function, torch.rand(64, 64)).ledger.total
        assert (total.groups, total.launches) == (2, 1)


def test_a_sum_behind_a_product_is_the_librarys() -> None:
    """The text names this exception; the code that plain torch generates confirms it."""

    def written(function: Callable[..., torch.Tensor]) -> tuple[int, list[str]]:
        torch._dynamo.reset()
        _, (code,) = run_and_get_code(torch.compile(function), torch.rand(64, 64), torch.rand(64))
        return code.count("= async_compile.cpp_pybinding("), re.findall(r"extern_kernels\.(\w+)\(", code)

    assert written(lambda x, b: x @ x + b) == (0, ["addmm"])
    assert written(lambda x, b: torch.relu(x @ x)) == (1, ["mm"])
    assert "`x @ y + b`, is one call" in lessons.prose(NAME)["table-meaning"]
    (fake,) = re.findall(r"tensors that have a (.*): everything", lessons.prose(NAME)["fake-why"])
    assert fake == "shape, strides, a type and a device"


@pytest.mark.exhaustive
def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)


@pytest.mark.exhaustive
def test_a_difference_and_a_switch_are_told() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert max(map(len, cells["diff"].splitlines())) <= 96
    gone, new, so, *_ = cells["diff"].replace("\n    ", " ").splitlines()
    assert gone.startswith("torch.tanh is gone") and new.startswith("lesson.my_tanh is new")
    assert "launches 1 → 3" in so and "extern 0 → 1" in so
    walled, summed = cells["switch"].splitlines()
    assert re.fullmatch(r"wrapped: [1-9]\d* trials, helpful 0", walled), "no switch takes it down"
    assert summed == "total: split_reductions=False: (2, 1)"
    split, whole = cells["switch-sizes"].strip().split("\n\n")
    sizes = [
        [int(n.replace(",", "")) for n in re.findall(r"(?:x|r0_) ([\d,]+)", text)] for text in (split, whole)
    ]
    (programs, each, last, parts), (single, everything) = sizes
    assert (single, everything, last) == (1, 1_000_000, 1) and parts == programs > 100
    assert programs * (each - 1) < 1_000_000 <= programs * each, "a part each, and nothing twice"
