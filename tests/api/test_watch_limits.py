"""A function at its recompile limit, against the lines that Python itself runs."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch


def helper(x: torch.Tensor, n: int) -> torch.Tensor:
    z = x * n
    return z.sin() + n


def lengths(x: torch.Tensor, s: str) -> torch.Tensor:
    y = helper(x, len(s))
    return y + 1


def test_what_was_inlined_runs_in_python_too() -> None:
    torch._dynamo.reset()
    call = torch.compile(lengths, backend="eager")
    ran: list[Any] = []
    with torch._dynamo.config.patch(recompile_limit=2), compile_lens.watch() as program:
        for s in ("a", "bb"):
            call(torch.ones(3), s)
        known = program.lines
        assert {line.states for line in known[__file__] if 15 < line.line < 19} == {("compiled",)}
        call(torch.ones(3), "ccc")
        sys.setprofile(lambda frame, event, _: ran.append(frame.f_code) if event == "call" else None)
        call(torch.ones(3), "dddd")
        sys.setprofile(None)
    assert helper.__code__ in ran, "the call that fits no form calls it"
    assert program.counts.at_limit == 1
    found = {line.line: line.states for line in program.lines[__file__]}
    first = helper.__code__.co_firstlineno
    assert found[first + 1] == found[first + 2] == ("eager", "compiled")


def after_a_break(x: torch.Tensor, s: str) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x.sin() + len(s)


def test_the_accumulated_limit_is_not_told_as_the_other_one() -> None:
    torch._dynamo.reset()
    call = torch.compile(after_a_break, backend="eager")
    with torch._dynamo.config.patch(accumulated_recompile_limit=3), compile_lens.watch() as program:
        for times in range(5):
            call(torch.ones(3), "a" * times)
    rest = program.frames[-1].evaluations
    assert [visit.outcome for visit in rest].count("compiled") == 3
    assert rest[-1].limit == "accumulated_recompile_limit" and torch._dynamo.config.recompile_limit > 3
    (cause,) = [c for c in program.causes if c.kind == "recompile limit"]
    assert words.because(cause).endswith(
        "none of 3 variants fits, and accumulated_recompile_limit lets it have no more"
    )


def of_two(x: torch.Tensor, s: str, t: str) -> torch.Tensor:
    return x.sin() + len(s) * len(t)


def forms(calls: list[tuple[str, str]]) -> int:
    """Count the cache entries that plain torch creates."""
    torch._dynamo.reset()
    call = torch.compile(of_two, backend="eager")
    for one in calls:
        call(torch.ones(3), *one)
    return len(torch._C._dynamo.eval_frame._debug_get_cache_entry_list(of_two.__code__))


def test_the_advice_at_a_limit_is_for_each_thing_that_forms_were_made_for() -> None:
    calls = [("a", ""), ("aa", ""), ("aaa", ""), ("aaaa", ""), ("aaaa", "b")]
    assert forms([(s, "") for s, _ in calls]) == 4, "with the last call mended alone they are as many forms"
    assert forms([("a", t) for _, t in calls]) == 2 and forms([("a", "")] * 5) == 1
    torch._dynamo.reset()
    call = torch.compile(of_two, backend="eager")
    with torch._dynamo.config.patch(recompile_limit=4), compile_lens.watch() as program:
        for one in calls:
            call(torch.ones(3), *one)
    (cause,) = [c for c in program.causes if c.kind == "recompile limit"]
    assert "t was '', now 'b'" in words.because(cause)
    assert words.because(cause).endswith("variants were made for s was 'aaa', now 'aaaa'")
    tried = words.advice(cause)
    assert tried.startswith("for t: give t few different values") and "for s: give s few" in tried
