"""The first line of a function is a line of its body where the body begins on it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import compile_lens

pytestmark = pytest.mark.torch

# fmt: off
of_two = (lambda x: (x.sin() *  # noqa: E731
    x.cos()))
def begins(x: torch.Tensor) -> Any: return (x.sin() *
    x.cos())
# fmt: on


def usual(
    x: torch.Tensor,
) -> Any:
    y = x.sin()
    return y * x.cos()


@pytest.mark.parametrize(("function", "marked"), [(of_two, (0, 1)), (begins, (0, 1)), (usual, (3, 4))])
def test_the_lines_with_code(function: Any, marked: tuple[int, ...]) -> None:
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        torch.compile(function, backend="eager")(torch.ones(3))
    first = function.__code__.co_firstlineno
    assert {line.line - first: line.state for line in program.lines[__file__]} == dict.fromkeys(
        marked, "compiled"
    )


@pytest.mark.parametrize(("function", "marked"), [(of_two, (0, 1)), (begins, (0, 1)), (usual, (3, 4))])
def test_the_lines_that_were_left_to_python(function: Any, marked: tuple[int, ...]) -> None:
    torch._dynamo.reset()
    call = torch.compile(function, backend="eager")
    with torch._dynamo.config.patch(recompile_limit=1), compile_lens.watch() as program:
        call(torch.ones(3))
        call(torch.ones(3, dtype=torch.float64))
    assert program.counts.limits == 1
    first = function.__code__.co_firstlineno
    found = {line.line - first: line.states for line in program.lines[__file__]}
    assert found == dict.fromkeys(marked, ("eager", "compiled"))
