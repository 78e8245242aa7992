"""Functions that Dynamo left to Python before the watch, beside what Python is seen to run."""

from __future__ import annotations

import functools
import types
from typing import Any

import pytest
import torch
from lines_run import lines_run

import compile_lens
from compile_lens.record.unvisited import BEFORE

pytestmark = pytest.mark.torch


def whole(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()
    return x


class Layer(torch.nn.Module):
    def __init__(self, breaks: bool) -> None:
        super().__init__()
        self.breaks = breaks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = x + 1
            if self.breaks:
                torch._dynamo.graph_break()
        return x


def calls_it(x: torch.Tensor) -> torch.Tensor:
    return whole(x.sin()).cos()


def run_by_python(call: Any, code: types.CodeType, x: torch.Tensor) -> set[int]:
    """The lines of a code that Python itself runs in a call."""
    return lines_run(call, x, lambda one: one is code)


def eager(program: Any) -> set[int]:
    return {line.line for line in program.lines.get(__file__, ()) if "eager" in line.states}


@pytest.mark.parametrize("module", [False, True])
def test_a_function_that_was_left_before_is_told_when_it_is_called(module: bool) -> None:
    torch._dynamo.reset()
    call = torch.compile(Layer(True) if module else whole, backend="eager")
    code = Layer.forward.__code__ if module else whole.__code__
    call(torch.ones(3))
    with compile_lens.watch() as program:
        call(torch.ones(3))
        call(torch.ones(4))
    (one,) = program.unvisited
    assert (one.kind, one.times, one.line, one.certain) == (BEFORE, 2, code.co_firstlineno, True)
    ran = run_by_python(call, code, torch.ones(3))
    assert len(ran) == (5 if module else 4) and ran <= eager(program), "it was said nothing of"
    told = " ".join(str(program).split())
    assert "1 function left to Python before the watch" in told and "✓" not in told
    assert compile_lens.Program.from_json(program.to_json()).unvisited == program.unvisited


def test_the_advice_makes_dynamo_say_why() -> None:
    torch._dynamo.reset()
    call = torch.compile(whole, backend="eager")
    call(torch.ones(3))
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        call(torch.ones(3))
    assert not program.unvisited and program.counts.skipped == 1
    assert "graph_break" in str(program.visits[0].why)


def test_a_call_of_it_at_a_break_is_told() -> None:
    torch._dynamo.reset()
    call = torch.compile(calls_it, backend="eager")
    call(torch.ones(3))
    with compile_lens.watch() as program:
        call(torch.ones(4))
    (one,) = program.unvisited
    assert (one.kind, one.function, one.certain) == (BEFORE, "whole", True)
    ran = run_by_python(call, whole.__code__, torch.ones(4))
    assert ran and ran <= eager(program)


def perhaps(x: torch.Tensor, breaks: bool) -> torch.Tensor:
    for _ in range(2):
        x = x + 1
        if breaks:
            torch._dynamo.graph_break()
    return x


def test_what_torch_calls_through_a_form_of_its_own_is_not_said_to_be_eager() -> None:
    torch._dynamo.reset()
    torch.compile(perhaps, backend="eager")(torch.ones(3), True)
    good = torch.compile(functools.partial(perhaps, breaks=False), backend="eager")
    good(torch.ones(3))
    with compile_lens.watch() as program:
        good(torch.ones(3))
    assert not run_by_python(good, perhaps.__code__, torch.ones(3)), "it runs compiled"
    assert not eager(program) and not any(one.certain for one in program.unvisited)


def test_what_is_not_called_stands_among_what_was_before() -> None:
    torch._dynamo.reset()
    torch.compile(whole, backend="eager")(torch.ones(3))
    with compile_lens.watch() as program:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    assert not program.unvisited and not eager(program)
    (left,) = [frame for frame in program.record.before if frame.function == "whole"]
    assert left.left and not left.before
    assert "its calls by uncompiled code are not seen" in " ".join(str(program).split())
    assert "✓" in str(program)
