"""Size marks (``mark_dynamic``, ``mark_static``) in advice on recompiles. Plain torch counts the compiles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from compile_lens import watch
from compile_lens.record.program import FailedGuard
from compile_lens.views.words.remedies import to_try

pytestmark = pytest.mark.torch


def scaled(t: torch.Tensor) -> torch.Tensor:
    return t.exp() * 3


def marked(rows: int, low: int | None = None, high: int | None = None) -> torch.Tensor:
    t = torch.ones(rows, 2)
    torch._dynamo.mark_dynamic(t, 0, min=low, max=high)
    return t


def fixed(rows: int) -> torch.Tensor:
    t = torch.ones(rows, 2)
    torch._dynamo.mark_static(t, 0)
    return t


def compiles(inputs: list[torch.Tensor]) -> int:
    torch._dynamo.reset()
    counter = CompileCounter()
    function = torch.compile(scaled, backend=counter)
    for t in inputs:
        function(t)
    return counter.frame_count


def advice(*make: Callable[[], torch.Tensor]) -> list[tuple[FailedGuard, str]]:
    inputs = [one() for one in make]
    count = compiles(inputs)
    torch._dynamo.reset()
    with watch() as program:
        function = torch.compile(scaled, backend="eager")
        for t in inputs:
            function(t)
    recompilations = [v.recompilation for v in program.record.evaluations if v.recompilation is not None]
    assert len(recompilations) == count - 1
    return [(one.change, to_try(one)) for one in recompilations if one.change is not None]


def test_a_range_that_is_too_narrow_is_named_and_no_line() -> None:
    ((failed, tried),) = advice(lambda: marked(5, 3, 7), lambda: marked(20, 3, 30))
    assert (failed.old, failed.new, failed.line) == ("3 to 7", "20", None)
    assert (failed.old_mark, failed.new_mark) == (
        "mark_dynamic(t, 0, min=3, max=7)",
        "mark_dynamic(t, 0, min=3, max=30)",
    )
    assert failed.old_mark in tried and "min and max that hold all sizes" in tried
    assert compiles([marked(5, 3, 30), marked(20, 3, 30)]) == 1  # follows the advice


def test_a_static_mark_is_named_as_what_conflicts() -> None:
    for failed, tried in advice(lambda: fixed(5), lambda: fixed(6), lambda: fixed(9)):
        assert failed.new_mark == "mark_static(t, 0)"
        assert tried.startswith("torch._dynamo.mark_static(t, 0) gives each size a variant")
    assert compiles([marked(5), marked(6), marked(9)]) == 1


def test_a_call_that_is_marked_is_not_told_to_mark() -> None:
    ((_, tried),) = advice(lambda: torch.ones(5, 2), lambda: marked(6))
    assert "before the first call too" in tried
    (_, (failed, later)) = advice(lambda: torch.ones(5, 2), lambda: torch.ones(6, 2), lambda: marked(7))
    assert (failed.source, failed.new) == (
        "t",
        "mark_dynamic(t, 0)",
    ) and "the same way before each call" in later
    assert compiles([marked(5), marked(6), marked(7)]) == 1
