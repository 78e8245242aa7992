"""The first line of a function counts as a line of its body if the body starts on it."""

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
    assert program.counts.at_limit == 1
    first = function.__code__.co_firstlineno
    found = {line.line - first: line.states for line in program.lines[__file__]}
    assert found == dict.fromkeys(marked, ("eager", "compiled"))


class Hooked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.b.register_full_backward_hook(lambda module, before, after: None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x).relu())


def test_the_line_that_calls_what_breaks_in_a_library_broke() -> None:
    torch._dynamo.reset()
    (told,) = torch._dynamo.explain(Hooked())(torch.ones(1, 2)).break_reasons
    (line,) = [at.lineno for at in told.user_stack if at.filename == __file__]
    assert told.user_stack[-1].filename != __file__, "torch breaks in its own module"
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        torch.compile(Hooked(), backend="eager")(torch.ones(1, 2))
    torch._dynamo.reset()
    assert [at.line for at in program.lines[__file__] if "broke" in at.states] == [line]
