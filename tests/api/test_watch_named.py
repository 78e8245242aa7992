"""The function and the line that a cause names, and the wording, against Python's own code objects and plain torch."""

from __future__ import annotations

from types import CodeType
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import compile_lens
from compile_lens.measures.causes import RUNS_EAGERLY, Cause
from compile_lens.record.graph import Frame
from compile_lens.views.render import text
from compile_lens.views.subjects.program import document
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch


def helper(x: torch.Tensor) -> torch.Tensor:
    for i in range(2):
        print("h", i)
        x = x + 1
    return x


def outer(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    for _ in range(2):
        y = helper(y)
    return y


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("block")
        return x.sin()


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Inner(), Inner()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def lines(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line}


def watched(function: Any) -> Any:
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        torch.compile(function, backend="eager")(torch.ones(3))
    return program


def left(program: Any) -> list[Cause]:
    return [cause for cause in program.causes if cause.kind == RUNS_EAGERLY]


@pytest.mark.parametrize(
    ("function", "skipped", "met"),
    [
        (outer, outer.__code__, helper.__code__),
        (Outer(), Outer.forward.__code__, Inner.forward.__code__),
    ],
)
def test_a_function_that_was_skipped_for_a_line_of_another(
    function: Any, skipped: CodeType, met: CodeType
) -> None:
    effects = [effect for cause in left(watched(function)) for effect in cause.effects or (cause,)]
    (cause,) = [effect for effect in effects if effect.function == skipped.co_name and effect.origin_line]
    assert isinstance(cause.place, Frame) and isinstance(cause.origin_line, Frame)
    assert cause.place.line in {
        skipped.co_firstlineno,
        *lines(skipped),
    }  # no instruction belongs to the first line before 3.11
    assert cause.origin_line.function == met.co_name and cause.origin_line.line in lines(met) - lines(skipped)
    said = f"{words.place(cause.origin_line)} in {met.co_name}: "
    assert words.because(cause).startswith(said)


def test_a_function_that_was_skipped_for_a_line_of_its_own() -> None:
    cause = left(watched(helper))[0]
    assert isinstance(cause.place, Frame) and cause.origin_line is None
    assert cause.place.line in lines(helper.__code__) and "print" in cause.place.text


def test_a_break_in_a_function_that_another_one_calls_names_both() -> None:
    def talks(x: torch.Tensor) -> torch.Tensor:
        print("once")
        return x.sin()

    def calls(x: torch.Tensor) -> torch.Tensor:
        return talks(x + 1) * 2

    program = watched(calls)
    causes = [cause for cause in program.causes if cause.kind == "graph break"]
    (line,) = {cause.place.line for cause in causes}
    assert line in lines(talks.__code__)
    (said,) = [words.head(cause) for cause in causes if cause.function == "calls"]
    assert f":{line} in talks broke the graph of calls" in said


def test_a_break_that_raises_does_not_resume() -> None:
    torch._dynamo.reset()
    with compile_lens.watch() as program, pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(helper, backend="eager", fullgraph=True)(torch.ones(3))
    assert {found.outcome for found in program.breaks} <= {"the call raised"}


def test_a_break_in_a_coroutine_does_not_resume() -> None:
    """Torch raises an error for it, or runs all of it eagerly: there is no graph, and the result is sent."""
    graphs: list[torch.fx.GraphModule] = []

    def backend(gm: torch.fx.GraphModule, example_inputs: object) -> object:
        graphs.append(gm)
        return gm.forward

    torch._dynamo.reset()
    with pytest.raises((StopIteration, AssertionError)) as plain:
        torch.compile(coroutine, backend=backend)(torch.ones(3)).send(None)
    raised = plain.type is AssertionError
    assert "coroutine" in str(plain.value) if raised else not graphs
    torch._dynamo.reset()
    with compile_lens.watch() as program, pytest.raises(plain.type):
        torch.compile(coroutine, backend="eager")(torch.ones(3)).send(None)
    outcomes = [found.outcome for found in program.breaks]
    assert program.counts.raised == raised and (raised or not program.counts.graphs)
    assert outcomes == ["the call raised"] if raised else outcomes in ([], ["function runs eagerly"])


async def coroutine(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def test_a_hint_of_torch_s_is_said_to_be_one_and_names_what_exists() -> None:
    def train(x: torch.Tensor) -> torch.Tensor:
        loss = (x * 2).sum()
        loss.backward()
        return loss

    torch._dynamo.reset()
    with compile_lens.watch() as program:
        torch.compile(train, backend="eager")(torch.ones(3, requires_grad=True))
    (cause,) = [one for one in program.causes if one.kind == "graph break"]
    assert words.of_torch(cause) and "torch says: " in text.page(document(program.record))
    if "trace_autograd_ops" in words.advice(cause):
        assert not hasattr(torch._dynamo, "trace_autograd_ops")
        assert "torch._dynamo.config.trace_autograd_ops" in words.advice(cause)
        assert hasattr(torch._dynamo.config, "trace_autograd_ops")


CALLS: list[int] = []


def notes(x: torch.Tensor) -> None:
    CALLS.append(1)


def applies(x: torch.Tensor, on: bool = False) -> Any:
    return x.sin() if on else None


class Counting(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("function", "computes"), [(notes, False), (applies, True)])
def test_what_cannot_come_to_a_tensor_is_not_said_to_run_eagerly(function: Any, computes: bool) -> None:
    with Counting() as counting:
        function(torch.ones(3), *([True] if computes else []))
    assert (counting.count > 1) is computes, "beside what makes the tensor"
    program = watched(function)
    assert [visit.outcome for visit in program.evaluations] == ["nothing to compile"]
    assert [cause.function for cause in program.causes] == [function.__name__] * computes
    assert program.counts.permanently_eager == computes
