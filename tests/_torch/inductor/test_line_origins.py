"""Operators of each line inside a kernel, checked against the lines that change when the operator does."""

from __future__ import annotations

import dataclasses
import gc
import re
import weakref
from typing import Any

import perturbed
import pytest
import torch
from gpt2 import TINY, example
from perturbed import CASES, Case, faults, seen
from reasons import without
from soundness import whole_coverage

from compile_lens import capture
from compile_lens._torch.ground import hook_points, hooks
from compile_lens._torch.inductor import line_origins, line_text
from compile_lens.record.kernel import LINE_FORMS, NO_LINES, UNSAID, Kernel
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def pairs(kernel: Kernel) -> list[tuple[str, tuple[str, ...]]]:
    """Lines that have origins, with these origins."""
    texts = kernel.source.splitlines()
    return [(texts[line.line - 1].strip(), line.origins) for line in kernel.lines if line.origins]


def both(case: Case) -> tuple[list[perturbed.Seen], list[perturbed.Seen]]:
    options = {"backward": False, **case.options}
    found = [
        list(seen(capture(case.build(op), *case.args(), **options), name))
        for op, name in (case.first, case.second)
    ]
    return found[0], found[1]


# The ground truth: one operator is replaced, and the lines that change belong to it.
FAST = 14


@pytest.mark.cases(full=6)
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[] if i < FAST else [pytest.mark.slow], id=c.name) for i, c in enumerate(CASES)],
)
def test_the_lines_of_an_operator_are_those_that_change_with_it(case: Case) -> None:
    assert faults(*both(case)) == []


def test_there_are_thirty_cases() -> None:
    assert len({c.name for c in CASES}) == len(CASES) >= 30


def swapped(kernels: list[perturbed.Seen], one: str, other: str) -> list[perturbed.Seen]:
    """The same kernels with two nodes swapped."""
    names = {one: other, other: one}
    return [
        dataclasses.replace(k, origins=[tuple(names.get(n, n) for n in o) for o in k.origins])
        for k in kernels
    ]


@pytest.mark.parametrize("other", ["exp", "add", "cos", "mul"])
def test_a_line_mapped_to_a_wrong_operator_is_found(other: str) -> None:
    first, second = both(CASES[0])
    wrong = faults(swapped(first, "sin", other), second)
    assert any(f.startswith("changed, but not of the operator") for f in wrong)
    assert any(f.startswith("of the operator, but not changed") for f in wrong)


def test_an_origin_too_many_or_too_few_is_found() -> None:
    first, second = both(CASES[0])
    none = [dataclasses.replace(k, origins=[() for _ in k.origins]) for k in first]
    every = [dataclasses.replace(k, origins=[("sin", "exp") for _ in k.origins]) for k in first]
    assert faults(none, second)
    assert faults(every, second)


# Lines and the operators to which they belong.
def test_loads_operations_and_stores() -> None:
    (kernel,) = capture(wave, torch.rand(1000)).kernels
    body = [
        ("in_ptr0", ("sin", "cos")),
        ("sin()", ("sin",)),
        ("tmp1 * tmp1", ("pow_1",)),
        ("cos()", ("cos",)),
        ("tmp3 * tmp3", ("pow_2",)),
        ("tmp2 + tmp4", ("add",)),
        ("out_ptr0", ("add",)),
    ]
    found = pairs(kernel)
    assert found and len(found) % len(body) == 0  # the vectorized body and its tail
    for i, (text, origins) in enumerate(found):
        part, owners = body[i % len(body)]
        assert part in text
        assert origins == owners


def test_every_line_of_a_kernel_is_accounted_for() -> None:
    (kernel,) = capture(wave, torch.rand(1000)).kernels
    said = {line.line: line for line in kernel.lines}
    assert list(said) == sorted(said)
    for number, text in enumerate(kernel.source.splitlines(), 1):
        if re.fullmatch(r"[\s{}]*", text):
            assert number not in said
        else:
            line = said[number]
            assert bool(line.origins) != bool(line.no_origin)
            assert line.origins or line.no_origin in LINE_FORMS
    reasons = {line.no_origin for line in kernel.lines}
    assert {"include", "signature", "loop header"} <= reasons


def test_a_reduction_that_serves_two_operators_names_both() -> None:
    (kernel,) = capture(lambda x: (x.sin().sum(), x.sin().mean()), torch.rand(1 << 18)).kernels
    found = pairs(kernel)
    combining = [o for text, o in found if re.match(r"tmp_acc0\w* = .*tmp_acc0\w*", text)]
    assert combining and set(combining) == {("sum_1", "mean")}
    stored = [o for text, o in found if re.match(r"out_ptr\d\[.*tmp_acc0\)", text)]
    assert stored == [("sum_1",), ("mean",)]
    assert ("mean",) in [o for text, o in found if " / " in text]


def test_parts_that_a_lowering_makes_on_the_way_are_the_operators() -> None:
    (kernel,) = capture(
        lambda x: torch.nn.functional.layer_norm(x.sin(), (100,)), torch.rand(70, 100)
    ).kernels
    accumulating = [o for text, o in pairs(kernel) if "tmp_acc" in text]
    assert accumulating and set(accumulating) == {("var_mean",)}


def test_an_operator_computed_again_is_in_each_kernel() -> None:
    record = capture(wave, torch.rand(100, requires_grad=True))
    for phase in ("forward", "backward"):
        (kernel,) = (k for k in record.kernels if k.phase == phase)
        assert ("sin",) in [o for text, o in pairs(kernel) if re.search(r"sin\b", text)]


def test_bodies_that_number_alike_are_told_apart() -> None:
    # Two loop nests in one function, each with its own tmp0 and tmp1.
    fn = lambda x: torch.softmax(x.sin(), -1).cos().amax(0)  # noqa: E731
    (kernel,) = (k for k in capture(fn, torch.rand(20, 37)).kernels if k.source)
    owners: dict[str, set[tuple[str, ...]]] = {}
    for text, origins in pairs(kernel):
        match = re.match(r"auto tmp\d+ = .*\b(sin|cos|exp)\(\)", text)
        if match:
            owners.setdefault(match[1], set()).add(origins)
    assert owners == {"sin": {("sin",)}, "exp": {("exp",)}, "cos": {("cos",)}}
    numbered = [text.partition(" = ")[0] for text, _ in pairs(kernel)]
    assert numbered.count("auto tmp1") > 2


def test_bodies_of_a_branch_have_the_names_of_their_graph() -> None:
    def fn(p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(p, lambda x: x.sin() * 2, lambda x: x.exp() + 1, (x,))

    record = capture(fn, torch.tensor(True), torch.rand(40))
    names = {o for k in record.kernels for _, origins in pairs(k) for o in origins}
    assert {n.rpartition("/")[2] for n in names} == {"sin", "mul", "exp", "add"}
    assert all("graph_0/" in n for n in names)
    assert record.coverage().total.line_share == 1


def test_an_input_whose_layout_changes_has_origins() -> None:
    x, w = torch.rand(1, 3, 9, 9), torch.rand(4, 3, 3, 3)
    record = capture(torch.nn.functional.conv2d, x, w)
    generated = [k for k in record.kernels if k.source]
    assert all(k.origins and not k.no_origin for k in generated)


def test_a_library_call_has_no_lines() -> None:
    record = capture(lambda x, y: (x @ y).relu(), torch.rand(20, 30), torch.rand(30, 40))
    extern = [k for k in record.kernels if k.language == "extern"]
    assert extern and all(k.origins and not k.lines for k in extern)


def test_a_scatter_that_a_library_does_reaches_its_line() -> None:
    index = torch.zeros(4, 6, dtype=torch.int64)
    found = capture(lambda x, y: x.scatter_reduce(0, index, y, "sum") * 2, torch.rand(4, 6), torch.rand(4, 6))
    assert found.coverage().uncovered == ()


def test_lines_survive_json() -> None:
    record = capture(wave, torch.rand(100))
    again = Capture.from_json(record.to_json())
    assert again.kernels == record.kernels and again.kernels[0].lines
    assert again.coverage() == record.coverage()


# Other languages are generated by the same code; these tests only read their lines.
TRITON = """\
import triton
@triton.jit
def triton_poi_fused_sin_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 100
    xoffset = tl.program_id(0) * XBLOCK
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tl.store(out_ptr0 + (x0), tmp0, xmask)
"""
METAL = """\
#include <c10/metal/utils.h>
kernel void generated_kernel(
    device float* out_ptr0,
    uint xindex [[thread_position_in_grid]]
) {
    int x0 = xindex;
    auto tmp0 = in_ptr0[x0];
    odd(tmp0);
}
"""


def test_forms_of_triton() -> None:
    texts = TRITON.splitlines()
    known = ["tmp0" in text for text in texts]
    assert line_text.reasons("triton", texts, known) == [
        "include",
        "signature",
        "signature",
        "declaration",
        "index arithmetic",
        "mask",
        "index arithmetic",
        "",
        "",
    ]


def test_forms_of_metal() -> None:
    texts = METAL.splitlines()
    known = ["auto tmp0" in text for text in texts]
    forms = line_text.reasons("metal", texts, known)
    assert forms == ["include", *["signature"] * 3, None, "index arithmetic", "", UNSAID, None]


def test_a_text_is_found_again_under_its_name() -> None:
    sin: dict[str, None] = {"sin": None}
    cos: dict[str, None] = {"cos": None}
    written = [[("#include <a>", None), ("void KERNEL_NAME(x)", None), ("a;", sin), ("b;", None)]]
    texts = ["void kernel(x)", "", "  a;", "  b;"]
    assert line_text.align(texts, written, ["sin"]) == [None, None, sin, None]
    assert line_text.align([*texts, "c;"], written, ["sin"]) is None
    twice = [*written, [(t, cos if n else None) for t, n in written[0]]]
    assert line_text.align(texts, twice, ["sin", "cos"]) == [None, None, {"sin": None, "cos": None}, None]
    helper = [*written, [("void KERNEL_NAME(x)", None), ("b;", cos)]]
    assert line_text.align(["void k(x)", "a;", "b;"], helper, ["sin"])[2] is None  # type: ignore[index]


# Recording changes nothing and retains nothing.
def code(found: Capture) -> list[str]:
    return [re.sub(r"# AOT ID: .*", "", text) for text in found.code.values()]


@pytest.mark.parametrize("case", CASES[::6], ids=lambda c: c.name)
def test_the_code_is_the_same_without_recording(case: Case) -> None:
    fn = case.build(case.first[0])
    with_lines = capture(fn, *case.args(), **case.options)
    with without(line_origins):
        assert line_origins.WRITELINE not in hooks._registry
        plain = capture(fn, *case.args(), **case.options)
    assert line_origins.WRITELINE in hooks._registry
    assert code(with_lines) == code(plain)
    assert any(k.lines for k in with_lines.kernels)
    assert not any(k.lines for k in plain.kernels)


def test_nothing_of_the_recording_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []
    real = line_origins.Tracker.__init__

    def init(self: Any) -> None:
        real(self)
        made.append(weakref.ref(self))

    monkeypatch.setattr(line_origins.Tracker, "__init__", init)
    record = capture(wave, torch.rand(16, requires_grad=True))
    gc.collect()
    assert len(made) == 2 and record.kernels[0].lines
    assert [ref() is None for ref in made] == [True, True]


@pytest.mark.parametrize("path", [line_origins.LOOPS_INIT, line_origins.WRITELINE, line_origins.GETVALUE])
def test_without_a_hook_no_line_has_an_origin(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    real = hook_points.find
    monkeypatch.setattr(hook_points, "find", lambda p: None if p == path else real(p))
    record = capture(wave, torch.rand(16))
    assert [k.lines for k in record.kernels] == [()]
    cover = record.coverage()
    assert cover.total.lines == 0 and cover.total.line_share is None and cover.total.untraced == 1
    assert cover.total.kernel_share == 1
    (note,) = cover.notes
    assert note.startswith(NO_LINES) and "lacks the hook" in note and torch.__version__ in note
    assert note in str(cover)


# Coverage.
@pytest.mark.exhaustive
def test_a_transformer_is_covered() -> None:
    model, inputs = example(TINY)
    whole_coverage(capture(model, *inputs))
