"""Lesson 3, recompiles and dynamic shapes: its output, and the claims of its text."""

from __future__ import annotations

import re
from typing import Any

import lessons
import pytest
import torch
from torch._dynamo.eval_frame import _debug_get_cache_entry_list

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("03")


def test_it_shows_what_it_asks() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    calls = [line.split() for line in cells["sizes"].splitlines()]
    assert [call[2] for call in calls] == ["0/0", "0/1", "-", "-"], "for which calls it was compiled"
    assert [call[-1] for call in calls] == ["0/0", "0/1", "0/1", "0/1"], "which variant ran"
    assert "no guess; the capture has 2 compilations" in cells["sizes-reveal"]
    assert cells["reason"].splitlines()[0] == "0/0 is for the first call"
    assert re.search(
        r"0/1 was compiled because in 0/0: .*size mismatch.* expected 8, actual 16", cells["reason"]
    )
    symbol = re.fullmatch(r"L\['x'\]\.size\(0\) is (s\d+); it was 16 then\n", cells["symbol"])
    assert symbol
    eight, any_size = re.split(r"^(?=op0: )", cells["loops"], flags=re.M)[1:]
    assert any_size.replace(symbol[1], "8").replace("arg1_1", "arg0_1") == eight
    assert "arg0_1[" in eight and "arg1_1[" in any_size and "arg0_1" not in any_size
    assert cells["guards"].strip() == "2 <= L['x'].size()[0]"
    assert "no guess; the capture has 8 compilations" in cells["numbers"]
    changes = re.findall(r"s was ([\d.]+), now ([\d.]+):  return x\*\*s\n", cells["numbers-watch"])
    assert changes == [(str(0.5 + n), str(1.5 + n)) for n in range(7)]
    assert re.findall(r"^(\w[\w ]*?) +power (\d+)$", cells["numbers-limit"], re.M) == [
        ("recompile limit", "1"),
        ("recompile", "7"),
    ]
    assert "'eager', 'compiled'" in cells["numbers-limit"]
    times = {cell: re.findall(r"compiled (\d) times", cells[cell]) for cell in ("scaled", "tensors", "ahead")}
    assert times == {"scaled": ["2"], "tensors": ["1"], "ahead": ["1"]}


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    limit = torch._dynamo.config.recompile_limit
    assert cells["limit"].startswith(f"compiled {limit} times")
    _, ran, *skipped = cells["limit"].splitlines()
    assert ran.split() == [f"0/{n}" for n in range(limit)] + ["eager"] * (12 - limit)
    assert skipped == ["recompile limit: step"]
    assert lessons.said(prose["numbers-meaning"], r"^(\w+) of the (\w+)\.") == (limit, 12)
    assert lessons.said(prose["numbers-line"], r"another program, (\w+) times. And the (\w+) calls") == (
        limit,
        12 - limit,
    )
    assert lessons.said(prose["numbers-eager"], r"for (\w+) values it runs as compiled code") == (limit,)
    assert lessons.said(prose["take-home"], r"the limit, (\w+) variants") == (limit,)
    made = capture(lambda x: torch.sin(x), calls=[(torch.rand(size),) for size in (8, 16, 32, 64)])
    assert lessons.said(prose["take-home"], r"(\w+) sizes need (\w+) variants") == (4, len(made.compilations))
    assert (
        made.compilations[1].recompile_reasons
        and "size mismatch" in made.compilations[1].recompile_reasons[0]
    )


def test_torch_itself_keeps_so_many_forms() -> None:
    """The counts of the lesson equal the cache entries that torch has for the function, without a capture."""

    def forms(function: Any, calls: list[tuple[Any, ...]], **how: Any) -> int:
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="aot_eager", **how)
        for arguments in calls:
            compiled(*arguments)
        return len(_debug_get_cache_entry_list(function))

    x, numbers = torch.rand(8), [0.5 + n for n in range(12)]
    assert forms(lambda x: torch.sin(x) * 2, [(torch.rand(n),) for n in (8, 16, 32, 64)]) == 2
    assert forms(lambda x: torch.sin(x) * 2, [(torch.rand(n),) for n in range(8, 20)], dynamic=False) == 8
    assert forms(lambda x, s: x**s, [(x, s) for s in numbers]) == 8
    assert forms(lambda x, s: x * s, [(x, s) for s in numbers]) == 2
    assert forms(lambda x, s: x**s, [(x, torch.tensor(s)) for s in numbers]) == 1


def test_sizes_of_none_and_one_have_forms_of_their_own() -> None:
    """The text describes the guard on sizes, and that a tensor's values are not guarded."""
    record = capture(lambda x: torch.sin(x), calls=[(torch.rand(size),) for size in (8, 16, 1, 0)])
    assert [[d.symbol != "" for d in one.dynamic] for one in record.compilations] == [[], [True], [], []]


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
