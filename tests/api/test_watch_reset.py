"""A program that resets Dynamo, which restarts torch's compile ids."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import compile_lens
from compile_lens.measures.compile_time import compile_time

pytestmark = pytest.mark.torch


def test_a_recompile_is_told_with_the_form_that_there_was_then() -> None:
    def applied(x: torch.Tensor, fn: Any) -> torch.Tensor:
        return fn(x) + 1

    torch._dynamo.reset()
    call = torch.compile(applied, backend="eager")
    x = torch.ones(3)
    with compile_lens.watch() as program:
        call(x, torch.sin)
        call(x, torch.cos)
        torch._dynamo.reset()
        call(x, torch.tan)
        call(x, torch.exp)
    again = [v.recompilation.failed_guards[0] for v in program.recompiles if v.recompilation is not None]
    assert len({v.id for v in program.evaluations}) == 2, "ids repeat"
    assert [(f.old, f.new) for f in again] == [("torch.sin", "torch.cos"), ("torch.tan", "torch.exp")]


def test_time_is_of_the_function_that_took_it() -> None:
    def quick(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def slow(x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = x.sin() + 1
        return x

    def gate(x: torch.Tensor, on: bool) -> torch.Tensor:
        return x.sin() if on else x

    torch._dynamo.reset()
    x = torch.ones(3)
    with compile_lens.watch() as program:
        for one in (quick, slow):
            torch.compile(one, backend="aot_eager")(x)
            torch.compile(gate, backend="aot_eager")(x, False)
            torch._dynamo.reset()
    assert {v.id for v in program.evaluations} == {"0/0", "1/0"}, "ids repeat"
    found = {spent.frame.function: spent for spent in compile_time(program.record) if spent.frame is not None}
    assert set(found) == {"quick", "slow", "gate"}
    # Torch's own outermost events, in the order in which the lines above cause them.
    of_quick, gate_first, of_slow, gate_again = (
        e.duration / 1e6 for e in program.record.events if e.name == "dynamo" and e.duration
    )
    assert found["quick"].total == pytest.approx(of_quick)
    assert found["slow"].total == pytest.approx(of_slow)
    assert found["gate"].total == pytest.approx(gate_first + gate_again)
    assert program.counts.permanently_eager == 1


def test_the_time_of_a_backward_is_of_its_own_function_after_a_reset() -> None:
    def first(x: torch.Tensor) -> torch.Tensor:
        for _ in range(30):
            x = x.sin() + 1
        return x.sum()

    def second(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    torch._dynamo.reset()
    x = torch.ones(3, requires_grad=True)
    with compile_lens.watch() as program:
        loss = torch.compile(first, backend="aot_eager")(x)
        torch._dynamo.reset()
        torch.compile(second, backend="aot_eager")(torch.ones(3))
        loss.backward()
    assert {v.id for v in program.evaluations} == {"0/0"}, "ids repeat"
    # Torch's own outermost events, in the order in which the lines above cause them.
    outermost = [
        e for e in program.record.events if e.duration and e.name in ("dynamo", "entire_backward_compile")
    ]
    assert [e.name for e in outermost] == ["dynamo", "dynamo", "entire_backward_compile"]
    of_first, of_second, of_backward = (e.duration / 1e6 for e in outermost)
    total = {spent.frame.function: spent.total for spent in compile_time(program.record) if spent.frame}
    assert total["second"] == pytest.approx(of_second)
    assert total["first"] == pytest.approx(of_first + of_backward)
