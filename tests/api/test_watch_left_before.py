"""Functions that Dynamo skipped before the watch, against the lines that Python runs."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

import pytest
import torch
from full_text import full
from lines_run import lines_run
from torch._C._dynamo import eval_frame

import compile_lens
from compile_lens._torch.ground import cache_entries
from compile_lens.record.breaks import SKIPPED_BEFORE

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
    """Lines of a code object that Python itself runs in a call."""
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
    (one,) = program.eager_frames
    assert (one.kind, one.count, one.line, one.certain) == (SKIPPED_BEFORE, 2, code.co_firstlineno, True)
    ran = run_by_python(call, code, torch.ones(3))
    assert len(ran) == (5 if module else 4) and ran <= eager(program), "it was said nothing of"
    text = " ".join(full(program).split())
    assert "1 function skipped before the watch" in text and "✓" not in text
    assert compile_lens.Program.from_json(program.to_json()).eager_frames == program.eager_frames


def test_the_advice_makes_dynamo_say_why() -> None:
    torch._dynamo.reset()
    call = torch.compile(whole, backend="eager")
    call(torch.ones(3))
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        call(torch.ones(3))
    assert not program.eager_frames and program.counts.skipped == 1
    assert "graph_break" in str(program.evaluations[0].cause)


def test_a_call_of_it_at_a_break_is_told() -> None:
    torch._dynamo.reset()
    call = torch.compile(calls_it, backend="eager")
    call(torch.ones(3))
    with compile_lens.watch() as program:
        call(torch.ones(4))
    (one,) = program.eager_frames
    assert (one.kind, one.function, one.certain) == (SKIPPED_BEFORE, "whole", True)
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
    assert not eager(program) and not any(one.certain for one in program.eager_frames)


def test_what_is_not_called_stands_among_what_was_before() -> None:
    torch._dynamo.reset()
    torch.compile(whole, backend="eager")(torch.ones(3))
    with compile_lens.watch() as program:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    assert not program.eager_frames and not eager(program)
    (left,) = [frame for frame in program.record.prior_frames if frame.function == "whole"]
    assert left.eager_lines and not left.prior_ids
    assert "its calls by uncompiled code are not seen" in " ".join(full(program).split())
    assert "✓" in full(program)


def power(x: torch.Tensor, name: str) -> torch.Tensor:
    return x ** len(name)


def raises(gm: Any, inputs: Any) -> Any:
    raise RuntimeError("no backend today")


def test_what_has_no_form_and_is_asked_about_was_not_left() -> None:
    x = torch.ones(3)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        torch.compile(power, backend=raises)(x, "a")
    compile_lens.capture(calls_it, x)
    call = torch.compile(power, backend="eager")
    with compile_lens.watch() as nothing:
        pass
    assert not nothing.record.prior_frames
    torch._dynamo.utils.counters.clear()
    with torch._dynamo.config.patch(recompile_limit=2), compile_lens.watch() as program:
        for name in ("a", "bb", "ccc", "dddd"):
            call(x, name)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2 == program.counts.graphs
    assert program.counts.at_limit == 1 and not program.eager_frames
    with compile_lens.watch() as after:
        call(x, "a")
    assert not after.eager_frames and not after.record.prior_frames[0].eager_lines, "a form that fits runs"
    torch._dynamo.reset()


def test_what_was_left_after_it_had_forms_runs_none_of_them() -> None:
    torch._dynamo.reset()
    call = torch.compile(perhaps, backend="eager")
    call(torch.ones(3), False)
    call(torch.ones(3), True)
    ran = run_by_python(lambda x: call(x, False), perhaps.__code__, torch.ones(3))
    assert ran, "its form does not run any more"
    with compile_lens.watch() as nothing:
        pass
    assert "compiled, and then skipped as a whole, before the watch" in " ".join(full(nothing).split())
    with compile_lens.watch() as program:
        call(torch.ones(3), False)
    (one,) = program.eager_frames
    assert (one.kind, one.count, one.certain) == (SKIPPED_BEFORE, 1, True) and ran <= eager(program)
    (before,) = [frame for frame in program.record.prior_frames if frame.function == "perhaps"]
    assert before.prior_ids == ("0/0",) and before.eager_lines
    assert "✓" not in full(program)


def test_asking_what_becomes_of_a_frame_leaves_everything_as_it_was() -> None:
    torch._dynamo.reset()
    call = torch.compile(power, backend="eager")
    call(torch.ones(3), "a")
    own = sys.gettrace(), eval_frame.get_eval_frame_callback()
    found = eval_frame._debug_get_cache_entry_list(power.__code__)
    assert cache_entries.next_frame_treatment(power.__code__) == cache_entries.COMPILES
    assert cache_entries.next_frame_treatment(whole.__code__) == cache_entries.COMPILES
    assert (sys.gettrace(), eval_frame.get_eval_frame_callback()) == own
    again = eval_frame._debug_get_cache_entry_list(power.__code__)
    assert [e.guard_manager for e in again] == [e.guard_manager for e in found]
    torch._dynamo.utils.counters.clear()
    call(torch.ones(3), "a")
    assert not torch._dynamo.utils.counters, "the form runs as before"
    call(torch.ones(3), "aa")
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1, "and Dynamo is asked as before"
    torch._dynamo.reset()
