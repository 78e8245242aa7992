"""Launches in loops and branches. The oracle calls the module that Inductor built, and counts its kernel calls."""

from __future__ import annotations

import re
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full
from torch._higher_order_ops.while_loop import while_loop
from torch._inductor.codecache import PyCodeCache

import compile_lens
from compile_lens.record.figures import AtLeast, Count, Figure, figure, summed
from compile_lens.record.kernel import Flow
from compile_lens.versions import torch_version


def loop(n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    def check(i: torch.Tensor, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return i < n

    def body(i: torch.Tensor, n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return i + 1, n.clone(), torch.sin(x) @ x

    _, _, y = while_loop(check, body, (torch.zeros((), dtype=torch.int64), n, x))
    return y + 1


def branch(n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    def yes(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)

    def no(x: torch.Tensor) -> torch.Tensor:
        return torch.cos(torch.cos(x) @ x) @ x

    return torch.cond(n > 0, yes, no, (x,)) * 2


def nested(n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    def check(i: torch.Tensor, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return i < n

    def body(i: torch.Tensor, n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        def yes(x: torch.Tensor) -> torch.Tensor:
            return x + 1

        def no(x: torch.Tensor) -> torch.Tensor:
            return (x @ x) @ x

        return i + 1, n.clone(), torch.cond(i % 2 == 0, yes, no, (x,))

    _, _, y = while_loop(check, body, (torch.zeros((), dtype=torch.int64), n, x))
    return torch.cond(y.sum() > 0, lambda y: y + 1, lambda y: (y @ y) - 1, (y,))


def twice(n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    def check(i: torch.Tensor, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return i < n

    def one(i: torch.Tensor, n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return i + 1, n.clone(), torch.sin(x)

    def two(i: torch.Tensor, n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return i + 2, n.clone(), torch.cos(x) @ x

    zero = torch.zeros((), dtype=torch.int64)
    _, _, y = while_loop(check, one, (zero, n, x))
    _, _, z = while_loop(check, two, (zero, n, y))
    return z


def really(function: Callable[..., Any], *calls: tuple[Any, ...]) -> list[int]:
    """Build the module once, and return the number of kernel launches of each call."""
    torch._dynamo.reset()
    modules: list[Any] = []
    real = PyCodeCache.load_by_key_path

    def load(*args: Any, **kwargs: Any) -> Any:
        modules.append(real(*args, **kwargs))
        return modules[-1]

    found = []
    with torch._inductor.config.patch(force_disable_caches=True):
        compiled = torch.compile(function, fullgraph=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PyCodeCache, "load_by_key_path", load)
            compiled(*calls[0])
        (module,) = (vars(m) for m in modules if hasattr(m, "call"))
        counts: Counter[str] = Counter()
        for name, value in list(module.items()):
            if name.startswith("cpp_fused"):
                module[name] = counting(counts, name, value)
        library = {n: getattr(module["extern_kernels"], n) for n in ("mm", "addmm", "bmm")}
        counted = {n: counting(counts, n, called) for n, called in library.items()}
        module["extern_kernels"] = types.SimpleNamespace(**counted)
        for args in calls:
            counts.clear()
            compiled(*args)
            found.append(sum(counts.values()))
    torch._dynamo.reset()
    return found


def counting(counts: Counter[str], name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        counts[name] += 1
        return kernel(*args, **kwargs)

    return called


PLACES = (1, 0) if torch_version() >= (2, 15) else (0, 1)
"""Where the code has what is done if the condition holds, and what else: torch 2.15 writes the latter first."""


def after(count: Count, turns: list[list[int]], ways: list[int]) -> int:
    """The value of a count for given loops, each iteration with its branches, and for the branches taken."""
    total = count.fixed
    for inner, each in zip(count.iterations, turns, strict=True):
        total += sum(after(inner, [], [way] if inner.branches else []) for way in each)
    for pair, way in zip(count.branches, ways, strict=True):
        total += after(pair[PLACES[way]], [], [])
    return total


def launches(function: Callable[..., Any], *args: Any) -> Figure | AtLeast:
    capture = compile_lens.capture(function, *args)
    found = capture.ledger.total.launches
    assert found is not None
    return found


X = torch.rand(4, 4)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_loop_is_counted_by_the_turn() -> None:
    calls = [(torch.tensor(turns), X) for turns in (0, 1, 2, 10)]
    for args, real in zip(calls, really(loop, *calls), strict=True):
        found = launches(loop, *args)
        assert isinstance(found, AtLeast) and found.basis == "measured"
        assert real == after(found.count, [[0] * int(args[0])], [])
        assert found.least == after(found.count, [[]], []) and found.most is None
        assert full(found) == f"{found.count.fixed} + {found.count.iterations[0].fixed} per iteration"


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_branch_is_one_number_or_the_other() -> None:
    calls = [(torch.tensor(way), X) for way in (1, -1)]
    found = launches(branch, *calls[0])
    assert isinstance(found, AtLeast) and launches(branch, *calls[1]) == found
    assert really(branch, *calls) == [after(found.count, [], [way]) for way in (0, 1)]
    assert full(found) == f"{found.least} or {found.most}"


@pytest.mark.slow
@pytest.mark.exhaustive
def test_branches_inside_a_loop() -> None:
    calls = [(torch.tensor(turns), torch.rand(4, 4) * sign) for turns in (0, 1, 4) for sign in (1, -1)]
    found = launches(nested, *calls[0])
    assert isinstance(found, AtLeast) and "per iteration" in full(found) and " or " in full(found)
    expected = []
    for n, x in calls:
        ways = [turn % 2 for turn in range(int(n))]
        for way in ways:
            x = (x @ x) @ x if way else x + 1
        expected.append(after(found.count, [ways], [0 if bool(x.sum() > 0) else 1]))
    assert really(nested, *calls) == expected


@pytest.mark.slow
@pytest.mark.exhaustive
def test_two_loops_are_told_apart() -> None:
    args = torch.tensor(5), X
    found = launches(twice, *args)
    assert isinstance(found, AtLeast)
    assert really(twice, args) == [after(found.count, [[0] * 5, [0] * 3], [])]
    assert "per iteration of loop 1" in full(found) and "per iteration of loop 2" in full(found)


@pytest.mark.full
def test_bytes_are_told_in_the_same_way_on_both_sides() -> None:
    total = compile_lens.capture(loop, torch.tensor(3), X).ledger.total
    for moved in (total.bytes_before, total.bytes_after):
        assert isinstance(moved, AtLeast) and moved.basis == "modelled" and moved.most is None
        # One iteration: sin reads and writes 64 bytes, the product reads 128 and writes 64, the counter has 8 bytes.
        assert moved.count.iterations[0].fixed >= 64 * 5 + 16
    total = compile_lens.capture(branch, torch.tensor(1), X).ledger.total
    assert isinstance(total.bytes_after, AtLeast)
    # One branch reads and writes 64 bytes; the other computes two products and two cosines.
    assert total.bytes_after.most - total.bytes_after.least == (2 * 192 + 2 * 128) - 128


@pytest.mark.full
def test_every_view_says_by_the_turn_and_none_adds_up_what_a_call_does_not_do(tmp_path: Any) -> None:
    capture = compile_lens.capture(loop, torch.tensor(10), X)
    said = str(capture.ledger.total.launches)
    capture.save(tmp_path / "a.html")
    capture.save(tmp_path / "a.md")
    capture.save(tmp_path / "a.json")
    again = compile_lens.load(tmp_path / "a.json")
    assert again.ledger == capture.ledger and full(again) == full(capture)
    for page in (full(capture), (tmp_path / "a.html").read_text(), (tmp_path / "a.md").read_text()):
        assert f"launches: {said}" in page and "1 launch per iteration" in page
        assert f"{sum(k.launches for k in capture.kernels)} launches" not in page
    row = capture.ledger.total.to_dict()
    assert row["launches"] is None
    assert row["at_least"]["launches"]["text"] == said and row["at_least"]["launches"]["most"] is None
    assert capture.traffic().nbytes == capture.ledger.total.bytes_after
    assert capture.roofline().seconds is None


@pytest.mark.full
def test_a_record_without_the_flow_does_not_guess() -> None:
    import dataclasses

    capture = compile_lens.capture(loop, torch.tensor(10), X)
    (one,) = capture.compilations
    old = dataclasses.replace(one, stages=tuple(
        dataclasses.replace(s, flow=None) if hasattr(s, "flow") else s for s in one.stages
    ))  # fmt: skip
    total = dataclasses.replace(capture, compilations=(old,)).ledger.total
    assert total.launches is None and total.bytes_after is None
    assert any("loops or branches" in note for note in total.notes)


def test_straight_code_has_no_flow() -> None:
    capture = compile_lens.capture(lambda x: torch.sin(x) @ x, X)
    assert capture.compilations[0].code["inference"].flow is None
    assert all(k.launch_functions == () for k in capture.kernels)
    assert capture.ledger.total.launches == 2


def test_the_backward_of_a_plain_addition_is_empty_and_counts_zero() -> None:
    bias = torch.rand(4, requires_grad=True)
    ledger = compile_lens.capture(lambda x: x + bias, torch.rand(4, requires_grad=True)).ledger
    assert ledger.forward.launches == ledger.total.launches == 1
    assert ledger.backward.figures == (0,) * 7 and ledger.total.figures == ledger.forward.figures


def test_the_words_of_counts() -> None:
    def said(count: Count) -> str:
        return count.text()

    assert said(Count(7)) == "7" and said(Count()) == "0"
    assert said(Count(1, branches=((Count(), Count(2)),))) == "1 or 3"
    assert said(Count(0, (Count(2),))) == "2 per iteration"
    assert said(Count(1, (Count(2, (Count(3),)),))) == "1 + (2 + 3 per iteration) per iteration"
    assert said(Count(1, (Count(1),), ((Count(), Count(2)),))) == "(1 or 3) + 1 per iteration"
    assert said(Count(4, (), ((Count(1), Count(0, (Count(2),))),))) == "4 + (1 or 2 per iteration)"
    choices = tuple((Count(), Count(2**n)) for n in range(9))
    assert said(Count(0, (), choices)) == "0 to 511" and said(Count(0, (), choices[:3])) == "0 to 7"
    assert (
        figure(Count(3), "measured") == 3
        and figure(Count(3), "measured", 1, 2).text() == "≥ 3 (1 of 2 graphs)"
    )  # type: ignore[union-attr]
    assert summed([Figure(1), None, Figure(4)]).text() == "≥ 5 (2 of 3 graphs)"  # type: ignore[union-attr]
    assert summed([None, None]) is None and summed([]) == 0
    # A backward takes the branch that its forward took: 1 + 4 and 2 + 1 cannot happen.
    ways = [AtLeast(Count(0, (), ((Count(1), Count(2)),))), AtLeast(Count(0, (), ((Count(1), Count(4)),)))]
    assert str(summed(ways)) == "2 to 6" and str(summed(ways[:1])) == "1 or 2"
    assert str(summed([summed(ways), Figure(1)])) == "3 to 7"


def test_a_body_that_is_called_twice_runs_twice() -> None:
    import ast

    from compile_lens._torch.code.wrapper_flow import flow

    text = """
def inner(args):
    k1()

def call(args):
    k0()
    inner(args)
    inner(args)
    if x.item():
        pass
    else:
        raise Exception
"""
    found, within = flow(ast.parse(text), [3, 6])
    assert found == Flow(("", "inner", "inner")) and within == {3: "inner", 6: ""}


@pytest.mark.parametrize(
    ("target", "moved"),
    [
        (None, 400 + 4 + 4 + 1),  # C++: two fused groups in one function; the sum is stored and loaded again
        ("h100", 400 + 1),  # Triton: one fused group, and no pointer to a sum
    ],
)
def test_the_kernel_of_a_condition_moves_what_its_code_accesses(target: str | None, moved: int) -> None:
    def chosen(p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(p.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))

    record = compile_lens.capture(chosen, torch.rand(100), torch.rand(100), target=target)
    (kernel,) = (k for k in record.kernels if "_sum_" in k.name)
    pointers = set(re.findall(r"\b(?:in|out)_ptr\d+\b", kernel.source))
    assert len(pointers) == (3 if target is None else 2)
    (told,) = (k for k in record.traffic().kernels if k.name == kernel.name)
    assert told.nbytes == moved
    branches = [k.nbytes for k in record.traffic().kernels if k.name != kernel.name]
    assert branches == [800, 800] and record.ledger.total.bytes_after == moved + 800
