"""Advice of a watch on recompiles, applied in plain torch: its backend calls show that it helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from full_text import full
from torch._dynamo import mark_dynamic
from torch._dynamo.decorators import mark_unbacked

import compile_lens
from compile_lens.record.program import ProgramRecord, Recompilation
from compile_lens.results.program import Program
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch

Mark = Callable[[torch.Tensor, int], None]


def graphs(function: Any, calls: Sequence[tuple[Any, ...]], **options: Any) -> list[int]:
    """Cumulative backend calls of plain torch after each call."""
    torch._dynamo.reset()
    times: list[int] = []
    count = 0

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        nonlocal count
        count += 1
        return gm.forward

    call = torch.compile(function, backend=backend, **options)
    for arguments in calls:
        call(*arguments)
        times.append(count)
    return times


def watched(function: Any, calls: Sequence[tuple[Any, ...]], **options: Any) -> Program:
    torch._dynamo.reset()
    call = torch.compile(function, backend="eager", **options)
    with compile_lens.watch() as program:
        for arguments in calls:
            call(*arguments)
    return program


def again(program: ProgramRecord | Program) -> list[Recompilation]:
    return [v.recompilation for v in program.recompiles if v.recompilation is not None]


def tried(program: Program) -> list[str]:
    """Advice of the table of recompiles, followed by that of the causes."""
    rows = [words.advice(cause) for cause in program.causes if cause.kind == "recompile"]
    return [*map(words.to_try, again(program)), *rows]


def sized(*sizes: int, mark: Mark | None = None) -> list[tuple[torch.Tensor]]:
    made = [torch.ones(size) for size in sizes]
    for one in made:
        if mark is not None:
            mark(one, 0)
    return [(one,) for one in made]


def sixes(x: torch.Tensor) -> torch.Tensor:
    return x.view(2, -1) if x.shape[0] == 6 else x + 1


def sixes_in_all(x: torch.Tensor) -> torch.Tensor:
    return x.view(2, -1) if x.numel() == 6 else x + 1


def long(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 5:
        return x.sin()
    return x.cos()


def sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


@pytest.mark.parametrize("function", [sixes, sixes_in_all])
@pytest.mark.parametrize("sizes", [(6, 8, 10), (8, 6)])
def test_a_size_that_a_line_asks_for_is_not_to_be_marked(function: Any, sizes: tuple[int, ...]) -> None:
    with pytest.raises(torch.fx.experimental.symbolic_shapes.ConstraintViolationError):
        graphs(function, sized(*sizes, mark=mark_dynamic))
    assert graphs(function, sized(*sizes), dynamic=True)[1] == 2, "nor does dynamic=True help"
    found = tried(watched(function, sized(*sizes)))
    line = function.__code__.co_firstlineno + 1
    assert len(found) > 1
    assert all(
        f"test_watch_advice.py:{line} depends on the size" in one and "mark" not in one for one in found
    )


@pytest.mark.parametrize("sizes", [(3, 7, 9), (7, 3)])
def test_a_size_by_which_a_line_branches_is_two_forms(sizes: tuple[int, ...]) -> None:
    assert graphs(long, sized(*sizes, mark=mark_dynamic))[1] == 2
    found = tried(watched(long, sized(*sizes)))
    assert all("depends on the size" in one and "mark" not in one for one in found) and found


def even(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.shape[0] % 2 == 0 else x.cos()


def quarter(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.shape[0] // 4 == 1 else x.cos()


@pytest.mark.parametrize(("function", "sizes"), [(even, (4, 5, 6)), (quarter, (5, 9, 11))])
def test_a_number_that_a_line_computes_from_a_size_is_no_size(function: Any, sizes: tuple[int, ...]) -> None:
    """The number is 0 or 1, and equals no size."""
    assert graphs(function, sized(*sizes), dynamic=True)[1] == 2
    found = tried(watched(function, sized(*sizes), dynamic=True))
    line = function.__code__.co_firstlineno + 1
    assert found and all(f"test_watch_advice.py:{line} depends on the size" in one for one in found)
    assert not any("0 or 1" in one for one in found)


def last_chunk(x: torch.Tensor) -> torch.Tensor:
    return x.chunk(3)[-1].sum()


def test_a_line_inside_torch_is_not_to_be_changed() -> None:
    """Torch checks if the last chunk, which has one or several numbers, is contiguous."""
    torch._dynamo.reset()
    call = torch.compile(last_chunk, backend="aot_eager", dynamic=True)
    with compile_lens.watch() as program:
        call(torch.ones(6))
        call(torch.ones(7))
    (recompilation,) = again(program)
    (failed,) = recompilation.failed_guards
    assert failed.line is not None and "_prims_common" in failed.line.file
    assert all(".py" not in one and "give sizes of which" in one for one in tried(program))


@pytest.mark.parametrize("sizes", [(3, 4, 5), (7, 9)])
def test_a_size_that_no_line_asks_for_is_marked(sizes: tuple[int, ...]) -> None:
    for function in (sine, long):
        given = sizes if function is sine else (7, 9)
        assert graphs(function, sized(*given))[-1] == 2
        assert graphs(function, sized(*given, mark=mark_dynamic))[-1] == 1
        assert all("mark_dynamic" in one for one in tried(watched(function, sized(*given))))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("sizes", [(1, 4), (0, 4), (4, 1), (2, 1, 0)])
def test_a_size_of_0_or_1_has_a_form_whatever_is_marked(sizes: tuple[int, ...], dynamic: bool | None) -> None:
    assert graphs(sine, sized(*sizes, mark=mark_dynamic), dynamic=dynamic)[-1] == len(sizes)
    assert graphs(sine, sized(*sizes, mark=mark_unbacked), dynamic=dynamic)[-1] == 1
    assert graphs(sine, sized(*(s for s in sizes if s > 1)), dynamic=dynamic)[-1] == 1
    for one in tried(watched(sine, sized(*sizes), dynamic=dynamic)):
        assert "variant of its own for a size of 0 or 1" in one and "mark_unbacked" in one
        assert "mark_dynamic" not in one and "bucket" not in one


@pytest.mark.parametrize("sizes", [(3, 7, 1), (7, 1), (7, 3, 0)])
def test_a_size_of_0_or_1_is_not_the_doing_of_a_line_that_branches(sizes: tuple[int, ...]) -> None:
    kept = [size for size in sizes if size > 1]
    assert graphs(long, sized(*sizes), dynamic=True)[-1] == 1 + graphs(long, sized(*kept), dynamic=True)[-1]
    assert graphs(sine, sized(*sizes), dynamic=True)[-1] == 2, "nor without the line"
    last = words.to_try(again(watched(long, sized(*sizes), dynamic=True))[-1])
    assert "torch has a variant of its own for a size of 0 or 1" in last and "give no such size" in last


def grow(cache: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.cat([cache, x], dim=1)


def in_a_row(size: int, batch: int) -> torch.Tensor:
    return torch.ones(batch, size, 8)


def in_one_that_is_larger(size: int, batch: int) -> torch.Tensor:
    return torch.ones(batch, 64, 8)[:, :size]


def turned(size: int, batch: int) -> torch.Tensor:
    return torch.ones(batch, 8, size).transpose(1, 2)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("made", "sizes", "forms"),
    [
        (in_a_row, (1, 2, 3), 1),
        (in_a_row, (4, 1, 5), 1),
        (in_one_that_is_larger, (0, 1, 2, 3), 1),
        (in_a_row, (0, 1, 2, 3), 2),
        (in_a_row, (3, 0, 4), 2),
        (turned, (1, 2, 3), 2),
    ],
)
def test_a_mark_makes_one_form_but_where_a_stride_hangs_on_the_size(
    made: Callable[[int, int], torch.Tensor], sizes: tuple[int, ...], forms: int, batch: int
) -> None:
    calls = [(made(size, batch), torch.ones(batch, 1, 8)) for size in sizes]
    for cache, _ in calls:
        mark_unbacked(cache, 1)
    assert graphs(grow, calls)[-1] == forms
    found = tried(watched(grow, [(made(size, batch), x) for size, (_, x) in zip(sizes, calls, strict=True)]))
    assert all(
        "one more may be made where another dimension's stride hangs on the size" in " ".join(f.split())
        for f in found
        if "mark_unbacked" in f
    )
    assert any("mark_unbacked" in one for one in found)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def test_a_size_of_1_that_is_made_as_large_as_another_raises_where_it_is_unbacked() -> None:
    four = torch.ones(4)
    with pytest.raises(AssertionError):
        graphs(add, [(four, one) for (one,) in sized(4, 1, mark=mark_unbacked)])
    (one, *_) = tried(watched(add, [(four, one) for (one,) in sized(4, 1)]))
    assert "(there the call raises)" in one


def around_a_break(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    torch._dynamo.graph_break()
    return y + 1


def test_a_mark_does_not_reach_what_a_function_made() -> None:
    assert graphs(around_a_break, sized(3, 4, 5)) == [2, 4, 4]
    assert graphs(around_a_break, sized(3, 4, 5, mark=mark_dynamic)) == [2, 3, 3]
    assert graphs(around_a_break, sized(3, 4, 5), dynamic=True) == [2, 2, 2]
    program = watched(around_a_break, sized(3, 4, 5))
    (cause,) = [c for c in program.causes if c.kind == "recompile"]
    assert [one.after_break for one in cause.effects].count(True) == 1 == len(cause.effects) - 1
    assert "dynamic=True" in words.advice(cause) and "mark_dynamic" not in words.advice(cause)
    text = " ".join(full(program).split())
    assert text.count("torch.compile(dynamic=True) makes the size a symbol at the first call") == 2


@pytest.mark.parametrize("first", ["one", "two"])
def test_two_arguments_that_are_one_object_are_torch_s_form(first: str) -> None:
    t = torch.ones(3)
    one, two = (t, t), (t, torch.ones(3))
    calls = [one, two] if first == "one" else [two, one]
    assert graphs(add, calls) == [1, 2]
    assert graphs(add, [one, one]) == graphs(add, [two, (t, t.clone())]) == [1, 1]
    found = tried(watched(add, calls))
    assert found and all("torch makes one variant" in said and "depends" not in said for said in found)


def test_what_torch_says_of_itself_is_no_part_of_a_guard() -> None:
    calls = [(torch.ones(a), torch.ones(b)) for a, b in ((3, 3), (4, 4), (5, 1))]
    program = watched(add, calls)
    assert len(again(program)) == 2 and "please file a bug" not in full(program)
    assert again(program)[1].failed_guards[0].text == "y.size()[0] == x.size()[0]"
    assert "give no such size" in words.to_try(again(program)[1])
    assert graphs(add, [*calls[:2], (torch.ones(5), torch.ones(5))]) == [1, 2, 2]


def scaled(x: torch.Tensor, s: float) -> torch.Tensor:
    return x * s


def test_a_float_that_became_a_symbol_is_said_to_be_one() -> None:
    calls = [(torch.ones(3), s) for s in (1.5, 2.5, 3.5, 4.5)]
    assert graphs(scaled, calls) == [1, 2, 2, 2]
    assert graphs(scaled, calls, dynamic=True) == [1, 1, 1, 1]
    program = watched(scaled, calls)
    (found,) = again(program)
    assert "s became a symbol (torch's zf" in words.again(
        found
    ) and "for any float other than nan" in words.again(found)
    assert all("dynamic=True" in one and "few different" not in one for one in tried(program))


@pytest.mark.parametrize("values", [(2.0, 3, 4), (3, 2.5, 3.5), (2, 2.0, 2.0), (True, 2, 3)])
def test_a_number_of_another_type_is_not_one_of_another_value(values: tuple[float, ...]) -> None:
    calls = [(torch.ones(3), s) for s in values]
    assert graphs(scaled, calls)[:2] == [1, 2], "two types are two variants"
    assert graphs(scaled, calls, dynamic=True) == [1, 2, 2], "for dynamic=True as well"
    one = [(x, float(s)) for x, s in calls]
    assert graphs(scaled, one, dynamic=True) == [1, 1, 1], "what is advised holds"
    found = again(watched(scaled, calls))[0]
    old, new = values[:2]
    said = words.again(found)
    assert said.startswith(f"s was the {type(old).__name__} {old}, now the {type(new).__name__} {new}")
    if values == (2.0, 3, 4):
        assert graphs(scaled, [*calls, (torch.ones(3), 3.5)])[-2:] == [2, 3], "not for any value: for any int"
        assert "s became" in said and "for any int" in said
    advice = words.to_try(found)
    assert advice.startswith("give s one type each time: ") and "need two variants" in advice
    assert "at the first call" not in advice and "few different values" not in advice


@pytest.mark.full
def test_a_value_by_which_torchs_own_code_decides_is_no_symbol() -> None:
    def call(dynamic: bool | None) -> tuple[int, Any]:
        torch._dynamo.reset()
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
        compiled = torch.compile(module, backend="eager", dynamic=dynamic)
        with compile_lens.watch() as program:
            for p in (0.5, 0.25, 0.125):
                module[1].p = p
                compiled(torch.rand(2, 3))
        return len(program.graphs), program

    (count, program), (dynamic, _) = call(None), call(True)
    assert count == dynamic == 3, "dynamic=True makes no fewer"
    assert tried(program) and not any("dynamic=True" in one for one in tried(program))


def test_a_first_step_of_an_optimizer_is_one_variant_whatever_is_changed() -> None:
    weight = torch.nn.Parameter(torch.rand(4))
    optimizer = torch.optim.SGD([weight], lr=torch.tensor(0.1), momentum=0.9)
    torch._dynamo.reset()

    @torch.compile(backend="eager")
    def step() -> None:
        optimizer.zero_grad()
        (weight * 2).sum().backward()
        optimizer.step()

    with compile_lens.watch() as program:
        for _ in range(4):
            step()
    assert tried(program)
    for advice in tried(program):
        assert "first step" in advice and "isolate_recompiles" not in advice and "for each" not in advice


def raised_to(x: torch.Tensor, s: float) -> torch.Tensor:
    return x**s


def test_a_float_that_stays_a_number_is_no_symbol() -> None:
    calls = [(torch.ones(3), s) for s in (0.5, 1.5, 2.5)]
    torch._dynamo.reset()
    call = torch.compile(raised_to, backend="aot_eager")
    with compile_lens.watch() as program:
        for arguments in calls:
            call(*arguments)
    assert len(again(program)) == 2 and not any(found.dynamic for found in again(program))


def test_a_tensor_of_inference_mode_is_another_kind() -> None:
    with torch.inference_mode():
        made = torch.ones(3)
    normal = torch.ones(3)
    for calls in ([(normal,), (made,)], [(made,), (normal,)]):
        assert graphs(sine, calls) == [1, 2]
        program = watched(sine, calls)
        (found,) = again(program)
        assert {found.failed_guards[0].old, found.failed_guards[0].new} == {
            "a normal tensor",
            "one made under torch.inference_mode",
        }
        assert all("clone()" in one and "few different" not in one for one in tried(program))
    assert graphs(sine, [(normal,), (made.clone(),)]) == [1, 1]


def test_a_view_of_other_keys_is_told_by_them() -> None:
    x = torch.ones(3, dtype=torch.complex64)
    program = watched(sine, [(x,), (x.conj(),)])
    (found,) = again(program)
    assert (found.failed_guards[0].old, found.failed_guards[0].new) == (
        "without Conjugate",
        "with the key Conjugate",
    )
    assert not any("few different" in one for one in tried(program))


def gate(x: torch.Tensor, on: bool) -> torch.Tensor:
    if not on:
        return x
    return x.sin() + x.cos()


@pytest.mark.parametrize("first", [False, True])
def test_a_call_with_nothing_to_compile_leaves_all_others_to_python(first: bool) -> None:
    """The code that the backend returns counts its runs."""
    ran = 0

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        def run(*arguments: Any) -> Any:
            nonlocal ran
            ran += 1
            return gm.forward(*arguments)

        return run

    torch._dynamo.reset()
    call, other = torch.compile(gate, backend=backend), torch.compile(sine, backend=backend)
    x = torch.ones(3)
    with compile_lens.watch() as program:
        other(x)
        if first:
            call(x, True)
        call(x, False)
        for _ in range(20):
            call(x, True)
    assert ran == (2 if first else 1), "of the twenty calls none ran compiled code"
    assert words.state(program.record) == "partial" and program.counts.permanently_eager == 1
    assert "eager in each after it" in words.verdict(program.record)
    (cause,) = [c for c in program.causes if c.kind == "nothing to compile at first"]
    assert cause.function == "gate" and "a function of its own" in words.advice(cause)
    torch._dynamo.reset()
    ran = 0
    own = torch.compile(lambda x: x.sin() + x.cos(), backend=backend)
    for on in (False, *[True] * 20):
        _ = own(x) if on else x
    assert ran == 20, "what is advised helps"


def centred(x: torch.Tensor, n: float) -> torch.Tensor:
    return (x - x.mean(-1, keepdim=True)) * n


SIZES = [(torch.ones(n, 16), 2.5) for n in (4, 5, 6, 7)]
NUMBERS = [(torch.ones(4, 16), n) for n in (2.5, 3.5, 4.5, 5.5)]


@pytest.mark.parametrize("calls", [SIZES, NUMBERS])
def test_what_dynamic_false_asks_for_is_named_as_the_cause(calls: list[tuple[Any, ...]]) -> None:
    """With it, plain torch compiles a variant for each value; without it, one for the first and one for the rest."""
    advice = tried(watched(centred, calls, dynamic=False))
    assert advice and all("leave out dynamic=False" in one and "mark" not in one for one in advice)
    assert graphs(centred, calls, dynamic=False)[-1] == 4 and graphs(centred, calls)[-1] == 2
    assert not any("dynamic=False" in one for one in tried(watched(centred, calls)))


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_a_learning_rate_in_a_tensor_needs_no_variant(optimizer: Any) -> None:
    """Each learning rate of a scheduler is another number; no guard reads a value that is written to a tensor."""

    def steps(rate: Any) -> tuple[Program, int]:
        net = torch.nn.Linear(4, 3)
        own = optimizer(net.parameters(), lr=rate)
        schedule = torch.optim.lr_scheduler.StepLR(own, 1)
        torch._dynamo.reset()
        step = torch.compile(lambda: own.step(), backend="eager")
        with compile_lens.watch() as program:
            for _ in range(4):
                net(torch.ones(2, 4)).sum().backward()
                step()
                schedule.step()
        changes = [one.change for one in again(program) if one.change is not None]
        return program, sum("['lr']" in change.source for change in changes)

    program, count = steps(0.1)
    assert count and any("lr as a tensor" in one for one in tried(program))
    assert steps(torch.tensor(0.1))[1] == 0


def test_two_breaks_of_a_line_have_each_advice_once() -> None:
    def told(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        print(y.mean().item(), y.sum().item())
        return y.cos()

    program = watched(told, [(torch.ones(3),), (torch.zeros(3),)])
    lines = [words.advice(cause).splitlines() for cause in program.causes]
    assert any(len(own) > 1 for own in lines) and all(len(own) == len(set(own)) for own in lines)


def test_what_follows_an_optimizers_step_needs_no_break_mended() -> None:
    net = torch.nn.Linear(3, 2)
    own = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(own, 1)

    def late(x: torch.Tensor, ready: bool) -> torch.Tensor:
        own.step()
        return x.exp() if ready else x

    net(torch.ones(2, 3)).sum().backward()
    program = watched(late, [(torch.ones(3), False)] * 3)
    schedule.step()
    (cause,) = (one for one in program.causes if one.kind == "nothing to compile at first")
    text = words.advice(cause)
    assert "nothing to change at the break" in text and "fix the break" not in text


class Waves:
    def __init__(self, wave: torch.Tensor, low: torch.Tensor) -> None:
        self.wave, self.low = wave, low


def low_part(x: torch.Tensor) -> torch.Tensor:
    low = x * 2
    if (low > 1).sum() > 0:
        low = low.masked_fill(low > 1, 0.0)
    return low


def waves(x: torch.Tensor) -> Waves:
    wave = x.exp()
    low = low_part(wave)
    return Waves(wave, low)


def test_a_graph_break_comes_before_what_follows_it() -> None:
    """The resume function is empty only because of the break: with ``torch.where`` instead, neither occurs."""

    def product(x: torch.Tensor) -> torch.Tensor:
        both = waves(x)
        return both.wave * both.low

    program = watched(product, [(torch.ones(3),)] * 3)
    first, *others = program.causes
    assert first.kind == "graph break" and first.place is not None and "low > 1" in first.place.text
    assert others and {cause.kind for cause in others} == {"nothing to compile at first"}
    assert all(cause.after_break and "fix the break first" in words.advice(cause) for cause in others)

    def without_branch(x: torch.Tensor) -> torch.Tensor:
        wave = x.exp()
        return wave * torch.where(wave * 2 > 1, 0.0, wave * 2)

    assert not watched(without_branch, [(torch.ones(3),)] * 3).causes


def test_what_cannot_compute_is_no_cause() -> None:
    def printing(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        print("a")
        return y

    program = watched(printing, [(torch.ones(3),), (torch.ones(3),)])
    assert [v.outcome for v in program.evaluations][-1] == "nothing to compile"
    assert not program.counts.permanently_eager and not [c for c in program.causes if "nothing" in c.kind]


def test_a_compile_that_raised_on_a_recompile_has_its_own_reason() -> None:
    def printing(x: torch.Tensor) -> torch.Tensor:
        if x.dtype == torch.float64:
            print("a")
        return x.sin()

    torch._dynamo.reset()
    call = torch.compile(printing, backend="eager", fullgraph=True)
    with compile_lens.watch() as program, pytest.raises(torch._dynamo.exc.Unsupported) as raised:
        call(torch.ones(3))
        call(torch.ones(3, dtype=torch.float64))
    (cause,) = [c for c in program.causes if c.kind == "compile that raised"]
    hints = [line.strip() for line in str(raised.value).splitlines() if "Hint: " in line]
    assert cause.recompilation is not None and hints
    own, torchs, *_ = words.advice(cause).splitlines()
    assert "reorderable_logging_functions.update({print})" in own and torchs in hints[0]
    assert "one kind" not in words.advice(cause)


def test_a_limit_that_fullgraph_turns_into_an_error_is_told() -> None:
    def longer(x: torch.Tensor, s: str) -> torch.Tensor:
        return x.sin() + len(s)

    torch._dynamo.reset()
    call = torch.compile(longer, backend="eager", fullgraph=True)
    with compile_lens.watch() as program, pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        for times in range(torch._dynamo.config.recompile_limit + 1):
            call(torch.ones(3), "a" * times)
    (cause,) = [c for c in program.causes if c.kind == "compile that raised"]
    assert "recompile_limit was reached" in words.because(cause) and "may have 8" in words.because(cause)
    assert "few different values" in words.advice(cause)


def with_more(x: torch.Tensor, r: Any = None, **k: int) -> torch.Tensor:
    y = x.to(r) if isinstance(r, torch.dtype) else x.sin() if r is None else x + r
    return y * len(k) + sum(k.values())


@pytest.mark.full
def test_what_is_no_number_is_not_to_be_passed_as_a_tensor() -> None:
    x = torch.ones(3)
    assert graphs(with_more, [(x,), (x, x)])[-1] == 2 and graphs(with_more, [(x, x), (x, x)])[-1] == 1
    for one in tried(watched(with_more, [(x,), (x, x)])):
        assert "a tensor each time or None each time" in one
    kinds = [(x, torch.float64), (x, torch.float16)]
    assert graphs(with_more, kinds)[-1] == 2
    for one in tried(watched(with_more, kinds)):
        assert "few different values: each needs a variant" in one and "as a tensor" not in one
    torch._dynamo.reset()
    call = torch.compile(with_more, backend="eager")
    with compile_lens.watch() as program:
        call(x, a=1)
        call(x, a=1, b=2)
        call(x, c=1)
    for found in tried(program):
        assert (
            "give k one length" in found or "give k the same keys" in found
        ) and "as a tensor" not in found


def advice(fn: Any, values: Sequence[Any]) -> str:
    """The text of a watch on calls with these numbers."""
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        compiled = torch.compile(fn, backend="eager")
        for value in values:
            compiled(torch.rand(30), value)
    return " ".join(full(program).split())


def test_a_number_that_begins_at_one_has_a_variant_of_its_own() -> None:
    """A size of 1 broadcasts; from 2 on, one variant serves all sizes."""
    text = advice(lambda x, s: x[:s] + 1, [1, 2, 3, 4, 5])
    assert "tells 1 from other numbers" in text and "decide it outside" not in text


def scaled_unless_zero(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by if by != 0 else x.sin()


def scaled_or_flipped(x: torch.Tensor, by: int) -> torch.Tensor:
    return x.flip(0) if by == -1 else x * by


@pytest.mark.parametrize(
    ("function", "values"), [(scaled_unless_zero, (0.0, 0.25, 8.5)), (scaled_or_flipped, (-1, 6, 9))]
)
def test_a_number_that_a_line_compares_needs_variants_with_symbols_too(function: Any, values: Any) -> None:
    pairs = [(torch.rand(30), value) for value in values]
    assert graphs(function, pairs, dynamic=True)[-1] == graphs(function, pairs)[-1] == 2
    text = advice(function, values)
    line = function.__code__.co_firstlineno + 1
    assert f"test_watch_advice.py:{line} depends on the value" in text and "makes such a variant" not in text


def test_a_number_that_a_line_of_the_library_compares_needs_variants_too() -> None:
    """SGD adds the weight decay only if it is not 0."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=torch.tensor(0.1), weight_decay=0.0)
    torch._dynamo.reset()
    with compile_lens.watch() as program:
        step = torch.compile(optimizer.step, backend="eager", dynamic=True)
        for decay in (0.0, 0.5, 0.75):
            optimizer.param_groups[0]["weight_decay"] = decay
            weight.grad = torch.ones(3)
            step()
    assert program.counts.recompiles == 1
    remedies = tried(program)
    assert remedies and all(
        "sgd.py" in one and one.endswith("each result needs a variant") for one in remedies
    )


def test_a_number_that_became_a_constant_again_is_no_symbol_of_a_variant() -> None:
    text = advice(lambda x, p: torch.nn.functional.dropout(x, p), [0.1, 0.2])
    assert "p was 0.1, now 0.2" in text and "for any int" not in text


def test_a_number_that_python_branches_on_is_not_to_be_a_tensor() -> None:
    def branches(x: Any, s: Any) -> Any:
        return x + 1 if s > 3 else x - 1

    text = advice(branches, [2, 3, 4, 5])
    assert "where only arithmetic uses it (an if on it breaks the graph)" in text
    torch._dynamo.reset()
    as_a_tensor = torch._dynamo.explain(branches)(torch.rand(30), torch.tensor(4))
    assert as_a_tensor.graph_break_count == 1


COUNTS = torch.tensor([1, 2, 0, 2])


def repeated(x: torch.Tensor) -> torch.Tensor:
    return torch.repeat_interleave(x, COUNTS) * 2


def repeated_to_size(x: torch.Tensor) -> torch.Tensor:
    return torch.repeat_interleave(x, COUNTS, output_size=5) * 2


def positive_sum(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].sum()


def positive_sum_by_where(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, 0).sum()


def selected_sum(x: torch.Tensor) -> torch.Tensor:
    return x.masked_select(x > 0).sum()


def places_of_positives(x: torch.Tensor) -> torch.Tensor:
    return torch.nonzero(x > 0).sum()


def places_in_a_known_shape(x: torch.Tensor) -> torch.Tensor:
    return torch.nonzero_static(x > 0, size=2).sum()


def counted(x: torch.Tensor) -> torch.Tensor:
    return torch.bincount(x.long() + 2)


def counted_in_bins(x: torch.Tensor) -> torch.Tensor:
    bins = x.long() + 2
    return torch.zeros(4, dtype=torch.int64).index_add(0, bins, torch.ones_like(bins))


@pytest.mark.parametrize(
    ("function", "mended", "advice"),
    [
        (repeated, repeated_to_size, "output_size"),
        (positive_sum, positive_sum_by_where, "torch.where(mask, x, 0)"),
        (selected_sum, positive_sum_by_where, "torch.where(mask, x, 0)"),
        (places_of_positives, places_in_a_known_shape, "torch.nonzero_static(x, size=…)"),
        (counted, counted_in_bins, "index_add"),
    ],
)
def test_a_shape_that_depends_on_data_has_advice_that_helps(function: Any, mended: Any, advice: str) -> None:
    x = torch.tensor([-1.0, 1.0, -2.0, 1.0])
    (cause,) = watched(function, [(x,)]).causes
    assert cause.kind == "graph break" and advice in words.advice(cause)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(mended, backend="eager", fullgraph=True)(x), function(x))


def attended(query: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return query.sum() + (keys * 2).amax()


def test_the_dimensions_to_mark_are_named() -> None:
    """Both grow together: torch compiles one graph if both are marked, and two if only one is."""
    calls = [(torch.ones(3, a), torch.ones(b, 2)) for a, b in ((4, 6), (5, 7), (8, 9))]
    advice = tried(watched(attended, calls))[-1:]
    named = ["torch._dynamo.mark_dynamic(query, 1)", "torch._dynamo.mark_dynamic(keys, 0)"]
    assert advice and all(call in advice[0] for call in named) and "(tensor, dim)" not in advice[0]
    for marks, graphs_of_torch in (((1, 0), 1), ((1, None), 2)):
        torch._dynamo.reset()
        again = [tuple(one.clone() for one in call) for call in calls]
        for call in again:
            for one, dim in zip(call, marks, strict=True):
                if dim is not None:
                    mark_dynamic(one, dim)
        assert graphs(attended, again)[1] == graphs_of_torch


def pooled(rows: torch.Tensor, scale: float) -> torch.Tensor:
    weights = torch.softmax(rows.mean(-1) / scale, -1)
    return (rows * weights.unsqueeze(-1)).sum(1)


def test_a_number_that_changes_with_a_size_is_not_mended_by_a_mark() -> None:
    calls = [(torch.ones(3, n, 5), 1.0 / n) for n in (4, 6, 9)]
    marked = [(one.clone(), number) for one, number in calls]
    for one, _ in marked:
        mark_dynamic(one, 1)
    assert graphs(pooled, marked)[-1] == 2 and graphs(pooled, calls, dynamic=True)[-1] == 1
    (advice,) = [words.advice(cause) for cause in watched(pooled, calls).causes if cause.kind == "recompile"]
    assert "dynamic=True" in advice and "mark_dynamic" not in advice and "number changed too, scale" in advice


def joined(rows: torch.Tensor, row: torch.Tensor, count: int) -> torch.Tensor:
    return torch.cat([rows, row]) * count


def test_a_number_that_changes_with_a_size_of_0_or_1_is_named() -> None:
    calls = [(torch.ones(n, 3), torch.ones(1, 3), n + 5) for n in (0, 1, 2, 3)]
    empty = torch.ones(0, 3)
    torch._dynamo.decorators.mark_unbacked(empty, 0)
    marked = [(empty, *calls[0][1:]), *calls[1:]]
    assert graphs(joined, marked)[-1] == 3 and graphs(joined, marked, dynamic=True)[-1] == 1
    (advice,) = [words.advice(cause) for cause in watched(joined, calls).causes if cause.kind == "recompile"]
    assert (
        "mark_unbacked(rows, 0)" in advice
        and "changed too, count: compile with torch.compile(dynamic" in advice
    )
