"""A function at its limit of recompiles, beside what Python itself is seen to run."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

import compile_lens

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
    assert program.counts.limits == 1
    found = {line.line: line.states for line in program.lines[__file__]}
    first = helper.__code__.co_firstlineno
    assert found[first + 1] == found[first + 2] == ("eager", "compiled")
