"""When torch merges equal values into one node, that node leads to every line that needs it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import suite
import torch
from full_text import full
from soundness import counted, silent
from torch._functorch.compile_utils import fx_graph_cse

from compile_lens import capture
from compile_lens.measures.chain import PYTHON
from compile_lens.record.kernel import Kernel
from compile_lens.results.capture import Capture
from compile_lens.views.live.page import fragment
from compile_lens.views.render import markdown
from compile_lens.views.render.html.listing import kernel_origins
from compile_lens.views.subjects.capture import document
from compile_lens.views.words import labels

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


ACROSS = pytest.mark.skipif(
    "extra_node_key" in inspect.signature(fx_graph_cse).parameters,
    reason="this torch merges no value of the forward alone with one of the backward",
)


def waves(x: torch.Tensor) -> torch.Tensor:
    a = torch.sin(x)
    b = torch.cos(x)
    return a * 2 + b * 3


def twice(x: torch.Tensor) -> torch.Tensor:
    a = torch.sin(x)
    b = torch.sin(x)
    return a * 2 + b * 3


def thrice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = torch.tanh(x * y)
    b = torch.tanh(x * y)
    c = torch.tanh(x * y)
    return a + b * c


def line(fn: Callable[..., Any], text: str) -> int:
    """The line number of the line in a function that contains a text."""
    lines, first = inspect.getsourcelines(fn)
    return next(first + i for i, code in enumerate(lines) if text in code)


def grad(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, requires_grad=True)


def kernel(found: Capture, phase: str) -> Kernel:
    (only,) = [k for k in found.kernels if k.phase == phase]
    return only


def python_lines(found: Capture, phase: str, text: str) -> set[int]:
    """Python lines of the kernel lines that contain a text."""
    one = kernel(found, phase)
    texts = one.source.splitlines()
    numbers = [mark.line for mark in one.lines if text in texts[mark.line - 1]]
    assert numbers
    return {f.line for n in numbers for f in found.chain.lines(("0/0", f"{phase}.code", f"{one.name}:{n}"))}


@ACROSS
@pytest.mark.parametrize("phase", ["forward", "backward"])
@pytest.mark.parametrize("text", [".sin()", ".cos()"])
def test_a_derivative_that_is_another_lines_value_has_both_lines(phase: str, text: str) -> None:
    record = capture(waves, grad(1000))
    a, b = line(waves, "a = "), line(waves, "b = ")
    # The backward recomputes both: each value of the forward belongs to the program only.
    own = {a, b} if phase == "backward" else {a if "sin" in text else b}
    assert python_lines(record, phase, text) == own
    assert python_lines(record, phase, "static_cast<float>(2.0)") == {line(waves, "return")}


@pytest.mark.parametrize("needs", [True, False])
def test_two_equal_lines_share_one_line_of_the_kernel(needs: bool) -> None:
    record = capture(twice, torch.rand(1000, requires_grad=needs))
    phase = "forward" if needs else "inference"
    both = {line(twice, "a = "), line(twice, "b = ")}
    assert python_lines(record, phase, ".sin()") == both
    if needs:
        assert python_lines(record, "backward", ".cos()") == both


def test_three_equal_expressions_are_one_node() -> None:
    record = capture(thrice, grad(50), grad(50))
    (compilation,) = record.compilations
    graphs = compilation.graphs
    (tanh,) = [n for n in graphs["forward"].nodes if n.target == "aten.tanh.default"]
    assert tanh.origins == tuple(n.name for n in graphs["joint"].nodes if n.target == "aten.tanh.default")
    assert len(tanh.origins) == 3
    assert [f.line for f in record.chain.lines(("0/0", "forward", tanh.name))] == [
        line(thrice, f"{name} = ") for name in "abc"
    ]


@ACROSS
def test_the_merge_is_told_among_the_rewrites() -> None:
    record = capture(waves, grad(1000))
    (compilation,) = record.compilations
    (merging,) = [p for p in compilation.passes if p.name == "fx_graph_cse"]
    assert merging.stage == "forward" and merging.nodes_before - merging.nodes_after == 2
    assert [(r.before, r.after, r.origins) for r in merging.rewrites] == [
        (("sin_1",), ("sin",), ("sin", "sin_1")),
        (("cos_1",), ("cos",), ("cos", "cos_1")),
    ]
    assert merging.rewrites[1].before_text == "%cos_1 = aten.cos.default(%primals_1)"
    assert merging.rewrites[1].after_text == "%cos = aten.cos.default(%primals_1)"
    assert re.match(r"torch/.*compile_utils.py:\d+ in fx_graph_cse", merging.rewrites[1].where)
    assert "fx_graph_cse" in full(record)
    assert Capture.from_json(record.to_json()).compilations == record.compilations


@ACROSS
def test_what_is_computed_again_is_counted_once() -> None:
    (compilation,) = capture(waves, grad(1000)).compilations
    assert compilation.partition is not None
    assert compilation.partition.recomputed == ("sin", "cos")


def test_nothing_is_merged_where_the_partitioner_is_told_not_to() -> None:
    import torch._functorch.config as config

    with config.patch(cse=False):
        record = capture(waves, grad(1000))
    assert not [p for p in record.compilations[0].passes if p.name == "fx_graph_cse"]
    assert record.coverage().unexplained_nodes == 0
    # The kernel still computes it once, and names both.
    assert python_lines(record, "backward", ".cos()") == {line(waves, "a = ")}


# Gradients.
def squared(x: torch.Tensor) -> torch.Tensor:
    a = torch.sin(x)
    b = torch.tanh(a)
    return b * b


def whose(found: Capture, text: str) -> set[int]:
    """Forward lines whose gradient the backward kernel computes on lines that contain a text."""
    one = kernel(found, "backward")
    texts = one.source.splitlines()
    chain = found.chain
    lines = [("0/0", "backward.code", f"{one.name}:{m.line}") for m in one.lines if text in texts[m.line - 1]]
    assert lines
    return {f.line for a in lines for d in chain.derivatives(a) for f in chain.lines(d)}


def test_a_line_of_the_backward_says_for_whose_derivative_it_is_there() -> None:
    record = capture(waves, grad(1000))
    assert whose(record, ".cos()") == {line(waves, "a = ")}
    assert whose(record, ".sin()") == whose(record, ".neg()") == {line(waves, "b = ")}
    assert whose(record, "static_cast<float>(2.0)") == {line(waves, "return")}
    one = kernel(record, "forward")
    chain = record.chain
    forward = [("0/0", "forward.code", f"{one.name}:{m.line}") for m in one.lines]
    assert not [a for a in (*forward, ("0/0", "forward", "cos")) if chain.derivatives(a)]


def test_what_is_computed_again_is_there_for_the_derivative_that_reads_it() -> None:
    record = capture(squared, grad(1000))
    chain = record.chain
    a, b = line(squared, "a = "), line(squared, "b = ")
    assert python_lines(record, "backward", ".sin()") == {a}
    assert whose(record, ".sin()") >= {b} and a not in whose(record, ".sin()")
    assert whose(record, ".cos()") == {a}
    tangents = ("0/0", "backward", "tangents_1")
    assert {f.line for d in chain.derivatives(tangents) for f in chain.lines(d)} == {line(squared, "return")}


@ACROSS
def test_views_say_for_whose_derivative() -> None:
    record = capture(waves, grad(1000))
    origin = labels.Origins(record).of(kernel(record, "backward"))
    origins = kernel_origins(kernel(record, "backward"), (), origin.whose)
    texts = kernel(record, "backward").source.splitlines()
    words = {words for number, words in origins.items() if ".cos()" in texts[number - 1]}
    assert words == {"← cos, for the derivative of sin"}
    assert "for the derivative of mul, cos, sin" in full(record)
    forward = labels.Origins(record).of(kernel(record, "forward"))
    assert forward.whose == () and "derivative" not in " ".join(
        kernel_origins(kernel(record, "forward")).values()
    )
    assert "for the derivative of mul, cos, sin" in markdown.page(document(record))
    assert "← cos, for the derivative of sin" in fragment(record)


def test_operators_of_one_name_have_their_line() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        a = torch.sin(x)
        return torch.sin(a)

    record = capture(fn, grad(10))
    origins = labels.Origins(record).of(kernel(record, "backward")).whose
    first = fn.__code__.co_firstlineno
    words = {word for _, group in origins for word in group}
    assert words == {f"sin of line {first + 1}", f"sin of line {first + 2}"}


# Every removed node has a reason.


def test_no_joint_node_vanishes() -> None:
    for fn, args in ((waves, (grad(100),)), (twice, (grad(100),)), (thrice, (grad(9), grad(9)))):
        record = capture(fn, *args)
        joint = record.compilations[0].graphs["joint"]
        assert len(list(counted(joint))) > 5
        assert [n for n in counted(joint) if not record.chain.down(("0/0", "joint", n))] == []
        assert silent(record) == []
        cover = record.coverage()
        assert cover.unexplained_nodes == 0 and cover.node_reasons == ()
        assert {(n.name, n.nodes) for n in cover.nodes} >= {("joint", len(list(counted(joint))))}
        assert all(n.covered == n.nodes for n in cover.nodes)


def test_what_a_pass_took_away_says_which() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.sin().clone().cos()

    record = capture(fn, grad(100))
    why = record.chain.why_not(("0/0", "joint", "clone"))
    assert why == "taken away by the pass remove_noop_ops: %sin stands in its place"
    cover = record.coverage()
    assert cover.node_reasons == (("taken away by the pass remove_noop_ops", 1),)
    assert "compute nodes that lead to no kernel: 1 (taken away by the pass remove_noop_ops)" in str(cover)


def test_what_nothing_reads_says_so() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        x.exp().sqrt()
        return x.sin()

    record = capture(fn, torch.rand(100))
    assert record.chain.why_not(("0/0", "dynamo", "sin")) == ""
    ends = {
        n.target: record.chain.why_not(("0/0", "pre_grad", n.name))
        for n in record.compilations[0].graphs["pre_grad"].nodes
        if not record.chain.down(("0/0", "pre_grad", n.name))
    }
    assert ends.get("sqrt", "nothing reads what it computes") == "nothing reads what it computes"
    assert ends.get("exp", "what reads it is gone too: sqrt").startswith("what reads it is gone")


def test_every_end_of_the_chain_says_why() -> None:
    record = capture(waves, grad(100))
    chain = record.chain
    ends = [a for a in chain.addresses() if not chain.down(a) and not a[1].endswith(".code")]
    assert ends and all(chain.why_not(a) for a in ends)
    assert not [a for a in ends if a[1] == PYTHON]


@pytest.mark.cases(full=11)
@pytest.mark.parametrize("name", suite.SUITE)
def test_no_node_of_the_suite_vanishes_in_silence(name: str) -> None:
    fn, args = suite.SUITE[name]()
    assert silent(capture(fn, *args)) == []


@ACROSS
def test_a_custom_operator_is_called_by_its_own_name_and_not_by_its_overload() -> None:
    with torch.library._scoped_library("lens_scans", "FRAGMENT") as lib:
        lib.define("running(Tensor x) -> Tensor")
        lib.impl("running", lambda x: x.cumsum(0), "CompositeExplicitAutograd")
        lib.impl("running", torch.empty_like, "Meta")
        operator = torch.ops.lens_scans.running.default
        torch.library.register_autograd(operator, lambda ctx, g: g.flip(0).cumsum(0).flip(0), lib=lib)
        record = capture(lambda x: operator(x.sin()).cos(), grad(8, 8))
    assert "for the derivative of running" in full(record)
    line = f"running@{operator_line(record)}"
    assert {k.name for k in record.chain.kernels(line)} >= {"torch.ops.lens_scans.running.default"}


def operator_line(found: Any) -> int:
    (node,) = (n for n in found.compilations[0].graphs["dynamo"].calls if "running" in n.target)
    return int(node.innermost[-1].line)
