"""Resume functions that Dynamo decided about before the watch, against the lines that Python runs."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from full_text import full
from lines_run import lines_run

import compile_lens

pytestmark = pytest.mark.torch


def returned(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print(end="")
    z = len("abc")
    return y if z else x


def computed(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print(end="")
    return y.cos()


def never_reached(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print(end="")
    return y


def run_by_python(call: Any, function: Any, x: torch.Tensor) -> set[int]:
    """Lines of a function's resume functions that Python itself runs in a call. Dynamo's code for a resume function has
    the same name and first line, and calls a graph."""

    def rest(code: types.CodeType) -> bool:
        own = code.co_filename == __file__ and function.__name__ in code.co_name
        return own and "resume_in" in code.co_name and not compiled(code)

    return lines_run(call, x, rest)


def compiled(code: types.CodeType) -> bool:
    return any(name.startswith("__compiled_fn") for name in code.co_names)


@pytest.mark.parametrize(("function", "lines"), [(returned, {2, 3, 4}), (computed, set())])
def test_the_oracle_tells_a_rest_that_python_runs_from_one_that_is_compiled(
    function: Any, lines: set[int]
) -> None:
    torch._dynamo.reset()
    call = torch.compile(function, backend="eager")
    call(torch.ones(3))
    first = function.__code__.co_firstlineno
    assert {line - first for line in run_by_python(call, function, torch.ones(3))} == lines


def states(program: Any, function: Any) -> dict[int, tuple[str, ...]]:
    first = function.__code__.co_firstlineno
    last = max(line for _, _, line in function.__code__.co_lines() if line)
    return {line.line - first: line.states for line in program.lines[__file__] if first < line.line <= last}


def test_a_rest_that_was_left_before_the_watch_is_eager() -> None:
    torch._dynamo.reset()
    call = torch.compile(returned, backend="eager")
    call(torch.ones(3))
    with compile_lens.watch() as program:
        call(torch.ones(4))
    first = returned.__code__.co_firstlineno
    ran = {line - first for line in run_by_python(call, returned, torch.ones(4))}
    known = states(program, returned)
    assert ran == {2, 3, 4}, "Python itself runs what follows the break"
    assert (known[1], known[2]) == (("compiled",), ("broke",))
    assert known[3] == known[4] == ("eager",), "it was said to be never"
    assert "skipped before the watch" in " ".join(full(program).split())
    assert program.counts.skipped == program.counts.permanently_eager == 0 and len(program.evaluations) == 1
    assert compile_lens.Program.from_json(program.to_json()).frames == program.frames


def test_a_rest_that_was_compiled_before_the_watch_is_not_said_to_be_eager() -> None:
    torch._dynamo.reset()
    call = torch.compile(computed, backend="eager", dynamic=True)
    call(torch.ones(3))
    with compile_lens.watch() as program:
        call(torch.ones(3, dtype=torch.float64))
    assert not any(frame.eager_lines for frame in program.frames)
    assert not run_by_python(call, computed, torch.ones(3, dtype=torch.float64))
    assert states(program, computed)[3] == ("compiled",), "for the other type it is compiled again"


def test_a_rest_of_what_was_not_called_is_not_told() -> None:
    torch._dynamo.reset()
    torch.compile(never_reached, backend="eager")(torch.ones(3))
    with compile_lens.watch() as program:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    assert not any(frame.eager_lines for frame in program.frames)


def doubled(x: torch.Tensor, twice: int) -> torch.Tensor:
    y = x * 2 if twice == 2 else x
    print(end="")
    return y.cos()


@pytest.mark.parametrize("earlier", [False, True])
def test_what_follows_a_break_is_a_form_of_before_where_dynamo_is_not_asked(earlier: bool) -> None:
    torch._dynamo.reset()
    calls = 0

    def backend(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        def run(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            return gm.forward(*args)

        return run

    call = torch.compile(doubled, backend=backend, dynamic=False)
    if earlier:
        call(torch.ones(3), 2)
    with compile_lens.watch() as program:
        if not earlier:
            call(torch.ones(3), 2)
        calls = 0
        call(torch.ones(3), 3)
    assert calls == 1, "what follows the break ran compiled, though it was not compiled now"
    assert len(program.evaluations) == (1 if earlier else 3)
    told = " ".join(full(program).split())
    assert "none → one of before" in told and "none → none" not in told
