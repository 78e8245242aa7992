"""Reasons why compiles began: short texts contain the record's values and no others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from compile_lens.record.breaks import Ending
from compile_lens.record.capture import Environment, Record
from compile_lens.record.compilation import Compilation, DynamicDim, Guard
from compile_lens.record.graph import Frame
from compile_lens.views.words.compile_reasons import CompileReason, change, compile_reason, recompile_remedy

PLAIN = Compilation("0/1", "f", "f.py", 2)


def _guarded(*texts: str) -> Compilation:
    return dataclasses.replace(PLAIN, guards=tuple(Guard(text) for text in texts))


@pytest.mark.parametrize(
    ("reason", "short"),
    [
        ("1/0: tensor 'x' size mismatch at index 0. expected 8, actual 4", "size of x 8 → 4"),
        ("2/1: tensor 'x' dtype mismatch. expected Float, actual Double", "x float32 → float64"),
        ("2/1: tensor 'x' rank mismatch. expected 1, actual 2", "dimensions of x 1 → 2"),
        ("0/0: tensor 'd['w']' stride mismatch at index 1. expected 1, actual 2", "stride of d['w'] 1 → 2"),
        (
            "0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0",
            "requires_grad of x False → True",
        ),
        ("0/0: tensor 'x' dtype mismatch. expected Odd, actual Float", "x Odd → float32"),
        # Checks that do not name both values keep the compiler's own wording.
        ("0/0: ___check_obj_id(G['g'], 7) # g(x) # f.py:3 in f", "___check_obj_id(G['g'], 7)"),
        ("0/0: scale == 2.0 # print(scale) # f.py:33 in helper", "guard failed: scale == 2.0"),
        ("0/0: a == b", "guard failed: a == b"),
        ("", ""),
    ],
)
def test_a_reason_in_short(reason: str, short: str) -> None:
    assert change(reason, PLAIN) == short


def test_the_value_of_now_is_in_the_new_guards() -> None:
    reason = "1/0: scale == 2.0 # return x * scale # f.py:3 in f"
    assert change(reason, _guarded("L['scale'] == 3.0")) == "scale 2.0 → 3.0"
    joined = _guarded("2 <= L['x'].size()[0] and L['scale'] == 3.0")
    assert change(reason, joined) == "scale 2.0 → 3.0"
    # Another value, the same one, not a plain value: none of them is the current value.
    for other in ("L['scales'] == 3.0", "L['scale'] == 2.0", "L['scale'] == L['other']", "L['scale'] != 3.0"):
        assert change(reason, _guarded(other)) == "guard failed: scale == 2.0"
    held = _guarded("___check_type_id(L['xs'], …), type=<class 'list'> and len(L['xs']) == 3")
    assert change("2/0: len(xs) == 2 # sum(xs)", held) == "len(xs) 2 → 3"
    assert change("2/0: s == 'a' # s", _guarded("L['s'] == 'b'")) == "s 'a' → 'b'"


def test_a_form_for_every_value_says_so() -> None:
    """Torch 2.13 guards a float that became a symbol by its type, and that it is a number."""
    reason = "1/0: scale == 2.0 # print(scale) # f.py:33 in helper"
    guard = "___check_type_id(L['scale'], …), type=<class 'float'>"
    assert change(reason, _guarded(guard)) == "scale 2.0 → any float"
    number = "2 <= L['x'].size()[0] and not math.isnan(L['scale'])"
    assert change(reason, _guarded(number, guard)) == "scale 2.0 → any float but nan"
    # With further guards, not every value matches.
    for more in (
        "L['scale'] > 1.0",
        "not math.isnan(L['scale']) and L['scale'] != 3.0",
        "L['scale'] is G['s']",
    ):
        assert change(reason, _guarded(guard, more)) == "guard failed: scale == 2.0", more
    assert change(reason, _guarded(guard, "L['scales'] > 1.0")) == "scale 2.0 → any float"
    assert change("1/0: self.scale == 2.0", _guarded(guard)) == "guard failed: self.scale == 2.0"


def test_the_size_of_now_is_the_one_that_was_seen() -> None:
    seen = dataclasses.replace(PLAIN, dynamic=(DynamicDim("L['x'].size(0)", "s7", 5),))
    assert change("0/0: x.size()[0] == 4 # f.py:3", seen) == "size of x 4 → 5"
    assert change("0/0: x.size()[1] == 4 # f.py:3", seen) == "guard failed: x.size()[1] == 4"


def test_the_number_of_now_is_the_one_that_was_seen() -> None:
    reason = "1/0: scale == 2.0 # print(scale) # f.py:33 in helper"
    guard = "___check_type_id(L['scale'], …), type=<class 'float'> and not math.isnan(L['scale'])"
    seen = (DynamicDim("L['scale']", "zf1", None, "3.0"),)
    for guarded, text in (
        (_guarded(guard), "scale 2.0 → 3.0, for any float but nan"),
        (_guarded(guard, "L['scale'] > 1.0"), "scale 2.0 → 3.0"),
    ):
        assert change(reason, dataclasses.replace(guarded, dynamic=seen)) == text


def _program(*compilations: Compilation) -> Record:
    return Record("f", Environment("", "", "", "", "", "", ""), compilations=compilations)


def test_why_each_began() -> None:
    outer, inner = Frame("f.py", 36, "f", "helper(x)"), Frame("f.py", 33, "helper", "print(x)")
    first = Compilation("0/0", "f", "f.py", 35, ending=Ending("graph break", "print", (outer, inner)))
    called = Compilation("1/0", "helper", "f.py", 32, ending=Ending("graph break", "print", (inner,)))
    rest = Compilation("2/0", "torch_dynamo_resume_in_helper_at_33", "f.py", 33)
    after = Compilation("3/0", "torch_dynamo_resume_in_f_at_36", "f.py", 36)
    again = dataclasses.replace(called, id="1/1", recompile_reasons=("1/0: scale == 2.0", "more"))
    unknown = Compilation("4/0", "torch_dynamo_resume_in_g_at_9", "g.py", 9)
    record = _program(first, called, rest, after, again, unknown)
    assert [compile_reason(record, number) for number in range(6)] == [
        CompileReason("called"),
        CompileReason("called in line 36"),
        CompileReason("continues after the break"),
        CompileReason("continues after the call"),
        CompileReason("guard failed: scale == 2.0", "1/0: scale == 2.0\nmore", True),
        CompileReason("continues after a break"),
    ]
    # A function other than the one with the graph break has another caller.
    assert compile_reason(_program(first, dataclasses.replace(called, function="other")), 1) == CompileReason(
        "called"
    )


def test_what_follows_two_breaks_of_one_line_is_told_apart_by_the_call() -> None:
    """By hand: the line broke at 4 and at 33. If a break was suppressed, the continued one is unknown."""

    def broke(name: str, id: str, start: int, end: int) -> Compilation:
        return Compilation(id, name, "f.py", 7, ending=Ending("graph break", "", (at(start, end),)))

    def at(start: int, end: int) -> Frame:
        return Frame("f.py", 7, "f", "g(); h()", start, end)

    rest = "torch_dynamo_resume_in_f_at_7"
    first, second = broke("f", "0/0", 4, 31), broke(rest, "1/0", 33, 60)
    last = Compilation("2/0", rest, "f.py", 7)
    record = _program(first, second, last)
    assert [compile_reason(record, number).short for number in (1, 2)] == [
        "continues after the break at 7:4-31",
        "continues after the break at 7:33-60",
    ]
    passed = _program(first, broke("f", "0/1", 33, 60), dataclasses.replace(last, id="1/0"), last)
    assert {compile_reason(passed, number).short for number in (2, 3)} == {"continues after the break"}
    plain = _program(first, last)
    assert compile_reason(plain, 1).short == "continues after the break", "there is one break in the line"


SIZE = "1/0: tensor 'x' size mismatch at index 0. expected 8, actual "
OF_X = DynamicDim("L['x'].size(0)", "s0", 16)
OF_S = DynamicDim("L['s']", "s1", 3)


@pytest.mark.parametrize(
    ("reasons", "dims", "function", "key"),
    [
        ((f"{SIZE}16",), (OF_X,), "f", "mark"),
        ((f"{SIZE}16",), (), "f", ""),
        ((f"{SIZE}16",), (OF_X,), "torch_dynamo_resume_in_f_at_7", ""),
        ((f"{SIZE}1",), (OF_X,), "f", "small"),
        (("1/0: tensor 'x' dtype mismatch. expected Float, actual Double",), (), "f", "kind"),
        (("1/0: tensor 'x' stride mismatch at index 0. expected 8, actual 1",), (), "f", ""),
        (("1/0: s == 2  # return x * s  # a.py:3 in f",), (OF_S,), "f", "number"),
        (("1/0: s == 2.0",), (OF_S,), "f", ""),
        (("1/0: s == 1",), (OF_S,), "f", ""),
        (("1/0: s == 2",), (), "f", ""),
        ((f"{SIZE}16", "1/1: tensor 'x' dtype mismatch. expected Float, actual Double"), (OF_X,), "f", ""),
        ((), (OF_X,), "f", ""),
    ],
)
def test_a_remedy_of_a_recompile_is_named_where_the_reason_allows_one(
    reasons: tuple[str, ...], dims: tuple[DynamicDim, ...], function: str, key: str
) -> None:
    one = Compilation("1/1", function, "f.py", 2, recompile_reasons=reasons, dynamic=dims)
    assert recompile_remedy(one) == key


def times(x: Any, s: Any) -> Any:
    return x.sin() * s


@pytest.mark.torch
@pytest.mark.full
def test_the_remedies_of_recompiles_hold_in_plain_torch() -> None:
    def compiles(calls: Sequence[tuple[Any, Any]], **options: Any) -> int:
        torch._dynamo.reset()
        counter = CompileCounter()
        compiled = torch.compile(times, backend=counter, **options)
        for arguments in calls:
            compiled(*arguments)
        return counter.frame_count

    def marked(n: int) -> Any:
        x = torch.rand(n)
        torch._dynamo.mark_dynamic(x, 0)
        return x

    x = torch.rand(8)
    assert compiles([(torch.rand(n), 2) for n in (8, 16, 32)]) == 2
    assert compiles([(marked(n), 2) for n in (8, 16, 32)]) == 1
    assert compiles([(torch.rand(n), 2) for n in (8, 1)]) == 2
    for values in ((2, 3, 4), (2.5, 3.5, 4.5)):
        assert compiles([(x, s) for s in values]) == 2
        assert compiles([(x, s) for s in values], dynamic=True) == 1
    assert compiles([(x, 2), (x.double(), 2)]) == 2 and compiles([(x.double(), 2), (x.double(), 2)]) == 1
