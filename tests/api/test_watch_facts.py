"""One fact is one cause: if only that fact is fixed, plain torch compiles less, or logs no such break."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo.utils

import compile_lens
from compile_lens.measures.causes import GRAPH_BREAK, RECOMPILED, Cause
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch

Program = Callable[[frozenset[str]], None]
RATE = 1.0


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="eager", **options)


class Steps(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.count

    def scale(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.count


class Epochs:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x - self.count


def attribute_in_two_methods(mended: frozenset[str]) -> None:
    steps = Steps()
    one, two = compiled(steps), compiled(steps.scale)
    for _ in range(4):
        one(torch.ones(3))
        two(torch.ones(3))
        steps.count += "count" not in mended


def after(steps: Steps, epochs: Epochs, x: torch.Tensor) -> torch.Tensor:
    return epochs(steps(x))


def two_counters_of_one_name(mended: frozenset[str]) -> None:
    steps, epochs = Steps(), Epochs()
    call = compiled(after)
    for _ in range(4):
        call(steps, epochs, torch.ones(3))
        steps.count += "steps" not in mended
        epochs.count += "epochs" not in mended


def inner(z: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return z.sin()


def around(x: torch.Tensor) -> torch.Tensor:
    y = inner(x + 1)
    return y * x


def size_through_a_break(mended: frozenset[str]) -> None:
    call = compiled(around)
    for size in (6, 6 if "size" in mended else 4):
        call(torch.ones(size))


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


def sizes_of_two_functions_in_turn(mended: frozenset[str]) -> None:
    for name, function in (("first", doubled), ("second", halved)):
        call = compiled(function)
        for size in (6, 6 if name in mended else 4):
            call(torch.ones(size))


def with_rate(x: torch.Tensor) -> torch.Tensor:
    return x * RATE


def less_rate(x: torch.Tensor) -> torch.Tensor:
    return x - RATE


def global_of_two_functions(mended: frozenset[str]) -> None:
    global RATE
    one, two = compiled(with_rate), compiled(less_rate)
    for rate in (1.0, 1.0 if "rate" in mended else 2.0):
        RATE = rate
        one(torch.ones(3))
        two(torch.ones(3))


def repeated(x: torch.Tensor, times: str) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x * len(times)


def passes(x: torch.Tensor, word: str) -> torch.Tensor:
    y = x + len(word)
    return repeated(y, word)


def argument_under_two_names(mended: frozenset[str]) -> None:
    call = compiled(passes)
    for word in ("a", "a" if "word" in mended else "bb"):
        call(torch.ones(3), word)


def prints(x: torch.Tensor, quiet: bool) -> torch.Tensor:
    y = x.sin()
    if not quiet:
        print(
            "mean",
            y.mean().item(),
        )
    return y.cos()


def statement_of_several_lines(mended: frozenset[str]) -> None:
    call = compiled(prints)
    for value in (1.0, 2.0, 3.0):
        call(torch.full((3,), value), "print" in mended)


def grad_mode_of_two_functions(mended: frozenset[str]) -> None:
    one, two = compiled(doubled), compiled(halved)
    for enabled in (True, "mode" in mended):
        with torch.set_grad_enabled(enabled):
            one(torch.ones(3))
            two(torch.ones(3))


def two_sizes_of_one_tensor(mended: frozenset[str]) -> None:
    call = compiled(doubled, dynamic=False)
    for rows, columns in ((6, 5), (4, 5), (4, 3)):
        call(torch.ones(6 if "rows" in mended else rows, 5 if "columns" in mended else columns))


def helped(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        print("in a loop")
    return x * 2


def loops(x: torch.Tensor) -> torch.Tensor:
    return helped(x + 1) * 3


def loop_of_prints(mended: frozenset[str]) -> None:
    if "print" not in mended:
        compiled(loops)(torch.ones(3))


PROGRAMS: dict[str, tuple[Program, dict[str, str]]] = {
    "attribute": (attribute_in_two_methods, {"count": "self.count"}),
    "counters": (two_counters_of_one_name, {"steps": "steps.count", "epochs": "self.count"}),
    "size": (size_through_a_break, {"size": "size(0)"}),
    "turns": (sizes_of_two_functions_in_turn, {"first": "doubled", "second": "halved"}),
    "global": (global_of_two_functions, {"rate": "RATE"}),
    "argument": (argument_under_two_names, {"word": "word"}),
    "mode": (grad_mode_of_two_functions, {"mode": "grad_mode"}),
    "dimensions": (two_sizes_of_one_tensor, {"rows": "x.size(0)", "columns": "x.size(1)"}),
}


def run(program: Program, mended: frozenset[str] = frozenset()) -> int:
    """Count the graphs that plain torch compiles."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with contextlib.redirect_stdout(io.StringIO()):
        program(mended)
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def seen(program: Program) -> tuple[Cause, ...]:
    torch._dynamo.reset()
    with compile_lens.watch() as watched, contextlib.redirect_stdout(io.StringIO()):
        program(frozenset())
    return watched.causes


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.cases(full=2)
def test_a_value_that_changes_is_one_cause_of_all_that_its_change_compiled(name: str) -> None:
    program, facts = PROGRAMS[name]
    causes = [cause for cause in seen(program) if cause.kind == RECOMPILED]
    assert len(causes) == len(facts), [words.head(cause) for cause in causes]
    for fact, text in facts.items():
        (cause,) = (one for one in causes if text in f"{words.head(one)} {words.because(one)}")
        assert run(program) - run(program, frozenset({fact})) == cause.count, fact
        effects = cause.effects or (cause,)
        assert sum(one.count for one in effects) == cause.count
        assert sum(one.seconds for one in effects) == pytest.approx(cause.seconds)


@pytest.mark.full
@pytest.mark.parametrize("program", [statement_of_several_lines, loop_of_prints])
def test_what_one_statement_breaks_is_one_cause(program: Program) -> None:
    (cause,) = seen(program)
    run(program)
    logged = torch._dynamo.utils.counters["graph_break"]
    if program is statement_of_several_lines:
        assert cause.kind == GRAPH_BREAK and cause.count == sum(logged.values())
        assert all(reason.partition("\n")[0] in words.because(cause) for reason in logged)
    else:
        assert {one.function for one in cause.effects} == {"loops", "helped"}
    run(program, frozenset({"print"}))
    assert not torch._dynamo.utils.counters["graph_break"]


def test_what_is_compiled_again_at_each_step_comes_before_a_line_that_breaks() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * x.sum().item()

    def program(mended: frozenset[str]) -> None:
        model = Counting()
        call = compiled(model)
        for _ in range(3):
            call(torch.ones(3))

    first, second = seen(program)
    assert "self.calls was" in words.because(first) and "item" in words.because(second)
    assert first.seconds > second.seconds
