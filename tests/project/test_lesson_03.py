"""Lesson 3, recompiles and dynamic shapes: what it prints, and what its text says of it."""

from __future__ import annotations

import re
from typing import Any

import lessons
import pytest
import torch

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("03")


def each(function: Any, *calls: tuple[Any, ...]) -> None:
    for arguments in calls:
        print(end="")
        function(*arguments)


def test_it_shows_what_it_asks() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert re.findall(r"compiled (\d) times", cells["sizes"]) == ["1", "2", "2", "2"]
    assert "you said 4, but the capture has 2 compilations" in cells["sizes-reveal"]
    assert cells["reason"].splitlines()[0] == "0/0 began with the first call"
    assert re.search(r"0/1 began since in 0/0: .*size mismatch.* expected 8, actual 16", cells["reason"])
    symbol = re.fullmatch(r"L\['x'\]\.size\(0\) is (s\d+); it was 16 then\n", cells["symbol"])
    assert symbol
    eight, any_size = re.split(r"^(?=op0: )", cells["loops"], flags=re.M)[1:]
    assert any_size.replace(symbol[1], "8").replace("arg1_1", "arg0_1") == eight
    assert cells["guards"].strip() == "2 <= L['x'].size()[0]"
    assert "you said 12, but the capture has 8 compilations" in cells["numbers"]
    assert re.findall(r"s == ([\d.]+)", cells["numbers-reason"]) == ["0.5", "1.5", "2.5"]
    times = {cell: re.findall(r"compiled (\d) times", cells[cell]) for cell in ("scaled", "tensors", "ahead")}
    assert times == {"scaled": ["2"], "tensors": ["1"], "ahead": ["1"]}


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    limit = torch._dynamo.config.recompile_limit
    assert cells["limit"].startswith(f"compiled {limit} times")
    assert (
        "recompile limit: step" in cells["limit"]
        and "step reached its recompile limit" in cells["limit-story"]
    )
    assert lessons.said(prose["take-home"], r"the limit, (\w+) forms") == (limit,)
    made = capture(each, lambda x: torch.sin(x), *((torch.rand(size),) for size in (8, 16, 32, 64)))
    assert lessons.said(prose["take-home"], r"(\w+) sizes need (\w+) forms") == (4, len(made.compilations))
    assert (
        made.compilations[1].recompile_reasons
        and "size mismatch" in made.compilations[1].recompile_reasons[0]
    )


def test_sizes_of_none_and_one_have_forms_of_their_own() -> None:
    """As its text says of the guard on sizes, and that a tensor's values are not guarded."""
    made = capture(each, lambda x: torch.sin(x), *((torch.rand(size),) for size in (8, 16, 1, 0)))
    assert [[d.symbol != "" for d in one.dynamic] for one in made.compilations] == [[], [True], [], []]


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME, 3)
