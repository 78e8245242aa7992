"""Old and new values of each kind of guard, against the reasons that torch logs in another process."""

from __future__ import annotations

import enum
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import changed_programs
import pytest
import torch
from full_text import full

import compile_lens
from compile_lens.record.failed_guards import failed_guard
from compile_lens.record.program import FailedGuard, Recompilation
from compile_lens.versions import torch_version
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch

PROGRAMS = changed_programs.programs()


@pytest.fixture(scope="module")
def logged() -> dict[str, list[str]]:
    ran = subprocess.run(
        [sys.executable, changed_programs.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = json.loads(ran.stdout)
    return found


def without_numbers(text: str) -> str:
    """Torch's message without the parts that vary between processes: addresses and padding."""
    return " ".join(re.sub(r" at 0x[0-9a-f]+", " at 0x…", re.sub(r", \d{8,}\)", ", …)", text)).split())


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_old_and_new_of_each_kind_of_guard(name: str, logged: dict[str, list[str]]) -> None:
    one = PROGRAMS[name]
    with compile_lens.watch() as program:
        changed_programs.run(one)
    if name == "default" and torch_version() < (
        2,
        12,
    ):  # torch reuses the old cache entry, and reports nothing
        assert logged[name] == [] and program.recompiles == ()
        return
    (plain,) = logged[name]
    (again,) = program.recompiles
    assert again.recompilation is not None
    (guard,) = again.recompilation.failed_guards
    assert (guard.source, guard.old, guard.new) == (one.source, one.old, one.new)
    module = changed_programs.__name__
    told = re.sub(rf"\b{module}\.(?!py\b)", "__main__.", without_numbers(guard.text))
    assert told in without_numbers(plain)
    said = words.again(again.recompilation)
    name = {"h.__code__": "the code of h"}.get(one.source, one.source)
    assert name in said and one.new in said
    assert (f"now {one.new}" if one.old else "are 3, 9, compiled for ") in said
    assert words.to_try(again.recompilation)
    if guard.line is not None and "# " in plain.partition(".py")[2] and "implicit guard" not in plain:
        # If torch reports a line, it is that one.
        assert f"{Path(guard.line.file).name}:{guard.line.line} in" in plain


class Counter(torch.nn.Module):
    """Has an integer that changes with each call."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n += 1
        return x * self.n


def compiles(function: object, calls: list[tuple[torch.Tensor, ...]]) -> int:
    """Count the graphs that plain torch compiles for the calls."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(function, backend="eager")  # type: ignore[call-overload]
    for arguments in calls:
        compiled(*arguments)
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def test_torch_s_hint_of_an_integer_of_a_module() -> None:
    x = torch.ones(3)
    torch._dynamo.reset()
    compiled = torch.compile(Counter(), backend="eager")
    with compile_lens.watch() as program:
        for _ in range(5):
            compiled(x)
    assert len(program.recompiles) == 4
    again = program.recompiles[-1].recompilation
    assert again is not None
    for said in (again.failed_guards[0].hint, words.to_try(again), full(program)):
        assert "torch._dynamo.config.allow_unspec_int_on_nn_module = True" in " ".join(said.split())
    assert compiles(Counter(), [(x,)] * 5) == 5
    with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=True):
        assert compiles(Counter(), [(x,)] * 5) < 5, "what is advised helps"


def test_the_size_of_a_parameter_is_not_to_be_marked() -> None:
    def replaced(marked: bool) -> Iterator[torch.nn.Module]:
        module = torch.nn.Linear(3, 4, bias=False)
        for size in (4, 5):
            module.weight = torch.nn.Parameter(torch.ones(size, 3))
            if marked:
                torch._dynamo.mark_dynamic(module.weight, 0)
            yield module

    def plain(marked: bool) -> int:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(lambda module, x: module(x), backend="eager")
        for module in replaced(marked):
            compiled(module, torch.ones(3))
        return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])

    assert plain(False) == plain(True) == 2
    torch._dynamo.reset()
    compiled = torch.compile(lambda module, x: module(x), backend="eager")
    with compile_lens.watch() as program:
        for module in replaced(False):
            compiled(module, torch.ones(3))
    (again,) = program.recompiles
    assert again.recompilation is not None
    assert "mark" not in words.to_try(again.recompilation)


def test_what_an_observer_could_not_read_is_not_torch_s_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> FailedGuard:
        raise ValueError("a new sentence")

    monkeypatch.setattr("compile_lens.record.failed_guards.failed_guard", unreadable)
    with compile_lens.watch() as program:
        changed_programs.run(PROGRAMS["device"])
    (again,) = program.recompiles
    assert again.recompilation is not None
    assert "torch found no guard" not in words.again(again.recompilation)


def test_torch_s_hint_of_sizes_that_were_the_same() -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum() + y.sum()

    torch._dynamo.reset()
    compiled = torch.compile(both, backend="eager", dynamic=True)
    calls = [(torch.ones(4), torch.ones(4)), (torch.ones(4), torch.ones(5))]
    with compile_lens.watch() as program:
        for arguments in calls:
            compiled(*arguments)
    again = program.recompiles[0].recompilation
    assert again is not None and again.failed_guards[0].text == "y.size()[0] == x.size()[0]"
    assert "x.size(0), y.size(0) are 4, 5" in words.again(again)
    assert "use_duck_shape = False" in words.to_try(again)
    with torch.fx.experimental._config.patch(use_duck_shape=False):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        for arguments in calls:
            torch.compile(both, backend="eager", dynamic=True)(*arguments)
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1, "what is advised helps"


def test_classes_of_one_name_are_two() -> None:
    def made() -> object:
        class One:
            n = 1.5

        return One()

    torch._dynamo.reset()
    compiled = torch.compile(lambda x, o: x * o.n, backend="eager")
    with compile_lens.watch() as program:
        compiled(torch.ones(3), made())
        compiled(torch.ones(3), made())
    again = program.recompiles[0].recompilation
    assert again is not None and again.failed_guards[0].new == f"another {again.failed_guards[0].old}"


def test_settings_are_not_the_program_s_variables() -> None:
    def scaled(x: torch.Tensor, grad_mode: str) -> torch.Tensor:
        return x * len(grad_mode)

    torch._dynamo.reset()
    compiled = torch.compile(scaled, backend="eager")
    with compile_lens.watch() as program:
        compiled(torch.ones(3), "a")
        with torch.no_grad():
            compiled(torch.ones(3), "a")
    again = program.recompiles[0].recompilation
    assert again is not None and (again.failed_guards[0].old, again.failed_guards[0].new) == ("True", "False")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "0/0: L['x'] is L['t']  # if x is t:  # t.py:4 in f",
            "x was the same object as t, now another one",
        ),
        ("0/0: ___check_type_id(L['o'], 94401853667280), type=<class 'a.B'>", "type(o) was a.B"),
        (
            "0/0: ___check_type_id(L['o'], 94401853667280)  # o.n  # t.py:4 in f (HINT: type B)",
            "type(o) was B",
        ),
        ("0/0: 2 <= L['x'].size()[0] <= 4", "x.size(0) was 2 to 4"),
        ("0/0: GLOBAL_STATE changed: grad_mode ", "GLOBAL_STATE changed: grad_mode"),
        ("0/0: len(L['d']) != 1", "len(d) was 1"),
        ("0/0: L['a'].size()[0] < L['b'].size()[0]", "L['a'].size()[0] < L['b'].size()[0]"),
        ("0/0: not L['xs']", "xs was empty, 0 or False"),
        (
            "0/0: Cache line invalidated because L['self'].act got deallocated",
            "self.act was an object that is deleted now, now another one",
        ),
        (
            "0/0: CodeGuardAccessor: Not a function on L['act'].__code__",
            "act was a Python function, now no Python function",
        ),
    ],
)
def test_what_a_log_says_without_the_values_of_the_time(text: str, told: str) -> None:
    assert words.changed(failed_guard(text, lambda _: "")) == told


class Meter:
    """Takes numbers from tensors, with a method object that Python creates for each call."""

    def __init__(self) -> None:
        self.seen: set[float] = set()
        self.total = 0.0

    def at_once(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add(x.sum().item())
        return x * 2

    def on_two_lines(self, x: torch.Tensor) -> torch.Tensor:
        value = x.sum().item()
        self.seen.add(value)
        return x * 2

    def outside(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x.sum()


def test_a_method_that_waits_while_the_graph_breaks_is_named_with_what_helps() -> None:
    calls = [(torch.arange(3.0) + n,) for n in range(4)]
    torch._dynamo.reset()
    compiled = torch.compile(Meter().at_once, backend="eager")
    with compile_lens.watch() as program:
        for arguments in calls:
            compiled(*arguments)
    again = [one.recompilation for one in program.recompiles if one.recompilation]
    waiting = [one for one in again if "value = t.item()" in words.to_try(one)]
    assert waiting, full(program)
    assert {words.changed(one.failed_guards[0]) for one in waiting} == {
        "(value 1 from before the break) was an object that is deleted now, now set.add"
    }
    assert "Cache line" not in full(program)
    assert compiles(Meter().on_two_lines, calls) < compiles(Meter().at_once, calls), "as the advice says"
    assert compiles(Meter().outside, calls) == 1, "as the advice on a list that grows says"


def test_a_range_has_the_line_of_the_end_that_was_passed() -> None:
    text = (
        "0/0: 2 <= L['x'].size()[0] <= 4  # y = x.sin()  # t.py:3 in f (user code shown is first use of this "
        "value--the guard itself is not due user code but due to 0/1 specialization in the framework; to avoid "
        "specialization try torch._dynamo.decorators.mark_unbacked(tensor, dim)) and if x.shape[0] <= 4:  # t.py:5 "
        "in f (_dynamo/variables/tensor.py:1 in g)"
    )
    lines = {}
    for now in ("9", "1", ""):
        found = failed_guard(text, lambda _, now=now: now)
        lines[now] = found.line.line if found.line is not None else None
        assert (found.text, found.old, found.new) == ("2 <= L['x'].size()[0] <= 4", "2 to 4", now)
    assert lines == {"9": 5, "1": None, "": None}
    again = Recompilation((failed_guard(text, lambda _: "1"),), 1, 8)
    assert "mark_unbacked" in words.to_try(again)


def test_advice_on_a_size_that_is_compared_is_not_to_mark_it() -> None:
    guard = FailedGuard("0/0", "x.size()[0] > y.size()[0]", "x.size(0), y.size(0)", "", "3, 7")
    assert "mark" not in words.to_try(Recompilation((guard,), 1, 8)).partition(", or mark")[0]


def test_a_number_s_value_is_told_as_the_program_names_it() -> None:
    """Torch 2.11 guards on a tensor that it created from the number, and has no line for it."""

    def power(x: torch.Tensor, s: float) -> torch.Tensor:
        return x**s

    torch._dynamo.reset()
    compiled = torch.compile(power, backend="aot_eager")
    with compile_lens.watch() as program:
        for s in (0.5, 1.5, 2.5):
            compiled(torch.rand(3, requires_grad=True), s)
    told = [one.recompilation.failed_guards[0] for one in program.recompiles if one.recompilation]
    assert [(f.source, f.old, f.new) for f in told] == [("s", "0.5", "1.5"), ("s", "1.5", "2.5")]
    assert all(f.line is not None and f.line.text.strip() == "return x**s" for f in told)


def test_advice_on_what_torch_compiles_through_a_function_of_its_own() -> None:
    """Nine builtins are cache entries of one code object, so the ninth runs eagerly; functions around them do not."""
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    with compile_lens.watch() as program:
        for op in changed_programs.ONE_EACH:
            torch.compile(op, backend=backend)(torch.rand(3))
    assert len(graphs) == torch._dynamo.config.recompile_limit == 8
    said = " ".join(full(program).split())
    assert said.count("compile functions of your own that call them") > 1, "in the causes and the table"
    assert "give it the same object each time" not in said
    torch._dynamo.reset()
    graphs.clear()
    for op in changed_programs.ONE_EACH:
        made: dict[str, Any] = {"op": op}
        # The source needs a file, since torch 2.11 also wraps functions without one.
        exec(compile("def own(x):\n    return op(x)\n", __file__, "exec"), made)
        torch.compile(made["own"], backend=backend)(torch.rand(3))
    assert len(graphs) == len(changed_programs.ONE_EACH), "as the advice says"


class Mode(enum.Enum):
    """Members, each of which is a single object."""

    FIRST = 1
    SECOND = 2


class Called:
    """A callable that is not a Python function."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (tuple(Mode), ("Mode.FIRST", "Mode.SECOND")),
        ((int, float), ("int", "float")),
        ((doubled, torch.cos), ("a Python function", "torch.cos")),
        ((doubled, Called()), ("a Python function", "a Called")),
        ((torch.cos, doubled), ("torch.cos", "doubled")),
    ],
    ids=["members", "classes", "builtin", "callable", "function"],
)
def test_objects_with_names_of_their_own_are_few_values(
    values: tuple[Any, Any], told: tuple[str, str]
) -> None:
    """The advice is not to create them once, which the program already does."""

    def chosen(x: torch.Tensor, what: Any) -> torch.Tensor:
        if what is Mode.FIRST or what is int:
            return x.sin()
        return what(x) if callable(what) and what is not float else x.cos()

    torch._dynamo.reset()
    compiled = torch.compile(chosen, backend="eager")
    with compile_lens.watch() as program:
        for value in values:
            compiled(torch.ones(3), value)
    (again,) = program.recompiles
    assert again.recompilation is not None and (guard := again.recompilation.change) is not None
    assert guard.source == "what"
    assert (guard.old.removeprefix(f"{__name__}."), guard.new.removeprefix(f"{__name__}.")) == told
    assert words.to_try(again.recompilation).startswith("give what few different values")


def test_a_flag_has_two_values_and_needs_no_fewer() -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(0.5))
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="eager")
    with compile_lens.watch() as program:
        for training in (True, False, True, False):
            module.train(training)
            compiled(torch.ones(3))
    (again,) = program.recompiles
    assert again.recompilation is not None
    tried = words.to_try(again.recompilation)
    assert tried.startswith("True and False need a variant each") and "few different" not in tried


@torch.no_grad()
def halved(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


def test_a_function_under_a_decorator_of_torchs_stands_at_its_own_lines() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(halved, backend="eager")
    with compile_lens.watch() as program:
        for by in (0.5, 0.25):
            compiled(torch.ones(3), by)
    (frame,) = program.record.frames
    wrapped = halved.__wrapped__.__code__
    assert (frame.function, frame.file, frame.line) == ("halved", __file__, wrapped.co_firstlineno)
    assert program.recompiles


def test_a_stride_that_became_a_symbol_is_no_size() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x * 2, backend="eager")
    with compile_lens.watch() as program:
        compiled(torch.ones(8, 6))
        compiled(torch.ones(6, 8).t())
    (again,) = program.recompiles
    assert again.recompilation is not None
    change = words.again(again.recompilation)
    assert "x.stride(1) became" in change and "for any stride" in change and "any size" not in change
