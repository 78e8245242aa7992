"""A program that resets Dynamo, after which torch's compile ids begin again."""

from __future__ import annotations

import time
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
    for visit, name in zip((v for v in program.evaluations if v.id == "0/0"), ("quick", "slow"), strict=True):
        # By the watch's own clock, around each visit; torch's events stand inside of it.
        assert 0.5 * visit.seconds < found[name].total <= visit.seconds
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
        began = time.perf_counter()
        loss.backward()
        took = time.perf_counter() - began
    assert {v.id for v in program.evaluations} == {"0/0"}, "ids repeat"
    found = {spent.frame.function: spent.total for spent in compile_time(program.record) if spent.frame}
    (visit,) = (v for v in program.evaluations if v.number == 1)
    assert found["second"] <= visit.seconds, "the backward was booked to it"
    (visit,) = (v for v in program.evaluations if v.number == 0)
    assert found["first"] > visit.seconds + 0.3 * took
