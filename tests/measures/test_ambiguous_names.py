"""A name that several nodes have is refused, with an address for each that is accepted and means that node.

The node of an address is known from the program alone: each operator stands on its own line.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from test_fusion import ENVIRONMENT, FILE, group, loop, phase, tensor

import compile_lens
from compile_lens.errors import UsageError
from compile_lens.measures.address import Address
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node, Ref
from compile_lens.results.capture import Capture


def swiglu(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    s = x * 2.0
    h = s @ w
    return F.silu(h) * h


def decomposed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    g = F.gelu(x) @ w
    return g * w


def renumbered(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = F.softsign(x)
    y = y + w
    z = y @ w
    return z + y


def unrolled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.sin(x) @ w
    return x.cos()


def products(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (((x @ w).relu()) @ w).sin()


def line(function: Callable[..., object], number: int) -> int:
    return function.__code__.co_firstlineno + number


@pytest.fixture(scope="module")
def of() -> Callable[[Callable[..., object]], Capture]:
    captures: dict[object, Capture] = {}

    def of(function: Callable[..., object]) -> Capture:
        if function not in captures:
            captures[function] = compile_lens.capture(function, torch.randn(64, 64), torch.randn(64, 64))
        return captures[function]

    return of


def refused(asked: Callable[[], object]) -> list[str | Address]:
    """Addresses in the error about a refused name."""
    with pytest.raises(UsageError, match="give one of") as caught:
        asked()
    text = str(caught.value).rpartition("give one of ")[2].partition(", or pick a graph with ")[0]
    text = text.partition("; they come from, in this order: ")[0]
    assert not re.search("…", text)
    return [address for address in ast.literal_eval(f"[{text}]")]


def test_the_first_of_a_name_is_not_taken_for_all(of: Callable[..., Capture]) -> None:
    expected = compile_lens.expect(of(swiglu))
    for asked in (expected.fused, expected.not_fused, of(swiglu).why):
        first, last = refused(lambda asked=asked: asked("silu", "mul"))  # type: ignore[misc]
    assert (first, last) == (f"mul@{line(swiglu, 1)}", f"mul@{line(swiglu, 3)}")
    expected.fused("silu", last).not_fused("silu", first)
    with pytest.raises(UsageError, match=f"'mul' names no line: give '{first}', '{last}'"):
        of(swiglu).chain.find("mul")


def test_a_name_of_the_program_is_not_one_of_a_decomposition(of: Callable[..., Capture]) -> None:
    addresses = refused(lambda: of(decomposed).why("mul", "mm"))
    own = f"mul@{line(decomposed, 2)}"
    assert own in addresses and len(addresses) > 2, "GELU is products, too"
    verdicts = {of(decomposed).why(address, own).verdict for address in addresses if address != own}
    assert verdicts == {"not fused"} and of(decomposed).why(own, own).verdict == "same"


def test_nodes_that_share_a_name_in_two_stages_are_not_mixed(of: Callable[..., Capture]) -> None:
    """Softsign adds 1: what Dynamo calls ``add``, ATen calls ``add_1``."""
    seen = of(renumbered)
    dynamo = {n.name: n for n in seen.compilations[0].graphs["dynamo"].calls}
    lowered = {n.name: n for n in seen.compilations[0].graphs["inference.post_grad"].calls}
    shared = [
        name
        for name in dynamo.keys() & lowered.keys()
        if dynamo[name].innermost[0].line != lowered[name].innermost[0].line
    ]
    assert shared
    for name in (*shared, "add"):
        addresses = refused(lambda name=name: seen.why(name, "mm"))  # type: ignore[misc]
        assert len(addresses) > 1 and all(seen.why(address, "mm").where for address in addresses)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells columns from 3.11 on")
def test_turns_of_a_loop_share_an_address(of: Callable[..., Capture]) -> None:
    addresses = refused(lambda: of(unrolled).why("sin", "cos"))
    assert addresses in ([f"sin@{line(unrolled, 2)}"], [f"sin_{i}@{line(unrolled, 2)}" for i in (1, 2)])
    assert of(unrolled).why("sin_1", "cos").verdict == "not fused"


def test_library_calls_of_one_function(of: Callable[..., Capture]) -> None:
    seen = of(products)
    calls = [k for k in seen.kernels if k.language == "extern"]
    for asked in (seen.chain.find, lambda name: seen.why(name, "sin")):
        addresses = refused(lambda asked=asked: asked(calls[0].name))  # type: ignore[misc]
        assert [seen.chain.kernels(a) for a in addresses] == [(call,) for call in calls]
    for address, call in zip(addresses, calls, strict=True):
        assert seen.why(address, "sin") == seen.why(call, "sin")


def test_a_name_at_a_line_may_be_several_nodes(of: Callable[..., Capture]) -> None:
    seen = of(decomposed)
    at = f"mul@{line(decomposed, 1)}"
    for asked in (seen.chain.find, lambda text: seen.why(text, "mm")):
        addresses = refused(lambda asked=asked: asked(at))  # type: ignore[misc]
        assert at not in addresses and len(addresses) > 1
    nodes = {found for address in addresses for found in (
        (address,) if isinstance(address, tuple) else seen.chain.find(address)
    )}  # fmt: skip
    assert len(nodes) == len(addresses)


def test_a_kernel_pins_what_it_is_compared_with(of: Callable[..., Capture]) -> None:
    seen = of(swiglu)
    fused = seen.kernels[-1]
    assert seen.why(fused, "silu").verdict == "same"
    refused(lambda: seen.why(fused, "mul"))


def test_one_name_in_two_functions_is_refused() -> None:
    """``exp`` is in the second graph only, ``sin`` in both, on different lines."""
    x = Node("x", "placeholder", "x", "input", outputs=tensor())

    def compiled(cid: str, at: int, *names: str) -> Compilation:
        nodes = tuple(
            Node(n, "call_function", f"aten.{n}", "pointwise", True, (Ref("x"),), outputs=tensor(),
                 frames=(Frame(FILE, at + i, "f", ""),))
            for i, n in enumerate(names)
        )  # fmt: skip
        stages = (
            Graph("post_grad", "inference", "inference", (x, *nodes)),
            Graph("loops", "inference", "inference.post_grad", (x, loop("op0", names, "x"))),
            Graph("groups", "inference", "inference.loops", (x, group("op0", ("op0",), "x"))),
        )
        return Compilation(cid, "f", FILE, at, stages)

    two = Capture(
        "f", ENVIRONMENT, compilations=(compiled("0/0", 2, "sin"), compiled("1/0", 7, "sin", "exp"))
    )
    assert refused(lambda: two.why("sin", "exp")) == ["sin@2", "sin@7"]
    assert two.why("sin", "exp", phase="1/0 inference").verdict == "inlined"
    assert two.why("sin@7", "exp").verdict == "inlined"
    assert two.why(("0/0", "inference.post_grad", "sin"), "exp").verdict == "different graphs"
    again = Capture("f", ENVIRONMENT, compilations=(phase("inference"),))
    assert again.why("sin", "mul").verdict == "inlined", "one node of each name"


def with_a_break(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x.sin() * 2
    torch._dynamo.graph_break()
    return (y.sin() @ w) * 2


def test_names_that_two_functions_both_have_are_refused(of: Callable[..., Capture]) -> None:
    """Before the break the two are one loop; after it a product stands between them."""
    expected = compile_lens.expect(of(with_a_break))
    for asked in (of(with_a_break).why, expected.fused, expected.not_fused):
        before, after = refused(lambda asked=asked: asked("sin", "mul"))  # type: ignore[misc]
    assert of(with_a_break).why(before, f"mul@{line(with_a_break, 1)}").verdict == "inlined"
    assert of(with_a_break).why(after, f"mul@{line(with_a_break, 3)}").verdict == "not fused"
    cid = of(with_a_break).compilations[1].id
    expected.not_fused("sin", "mul", phase=f"{cid} inference")


@pytest.mark.parametrize("fused_in", [(0,), (1,), (0, 1), ()])
def test_what_is_expected_of_two_holds_in_each_graph(fused_in: tuple[int, ...]) -> None:
    """The graphs are two variants of one function."""
    x = Node("x", "placeholder", "x", "input", outputs=tensor())
    names = ("sin", "exp")
    nodes = tuple(
        Node(n, "call_function", f"aten.{n}", "pointwise", True, (Ref("x"),), outputs=tensor(),
             frames=(Frame(FILE, 2 + i, "f", ""),))
        for i, n in enumerate(names)
    )  # fmt: skip

    def variant(number: int) -> Compilation:
        together = number in fused_in
        loops = [loop("op0", names, "x")] if together else [loop(f"op{n}", (n,), "x") for n in names]
        stages = (
            Graph("post_grad", "inference", "inference", (x, *nodes)),
            Graph("loops", "inference", "inference.post_grad", (x, *loops)),
            Graph(
                "groups", "inference", "inference.loops", (x, *(group(n.name, (n.name,), "x") for n in loops))
            ),
        )
        return Compilation(f"0/{number}", "f", FILE, 2, stages)

    expected = compile_lens.expect(Capture("f", ENVIRONMENT, compilations=(variant(0), variant(1))))
    for asked, holds in ((expected.fused, len(fused_in) == 2), (expected.not_fused, not fused_in)):
        for pair in (names, (f"{FILE}:2", f"{FILE}:3")):
            if holds:
                asked(*pair)
                continue
            with pytest.raises(compile_lens.ExpectationError, match=r"sin|line"):
                asked(*pair)


def with_a_derivative(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    z = y.exp()
    return (z * y).sum()


def with_another(x: torch.Tensor) -> torch.Tensor:
    y = x.tanh()
    return (y.sigmoid() * y).sum()


@pytest.mark.parametrize(("function", "other"), [(with_a_derivative, "exp"), (with_another, "sigmoid")])
def test_a_name_of_both_phases_is_refused_with_the_nodes_of_each(
    function: Callable[..., torch.Tensor], other: str
) -> None:
    record = compile_lens.capture(function, torch.randn(8, 8, requires_grad=True))
    expected = compile_lens.expect(record)
    texts = refused(lambda: expected.not_fused("mul", other))
    places = [record.why(text, other).where for text in texts]
    assert places.count("0/0 forward") == 1 and set(places) == {"0/0 forward", "0/0 backward"}
    with pytest.raises(UsageError, match=re.escape(", or pick a graph with phase='forward'")):
        expected.not_fused("mul", other)
    expected.fused("mul", other, phase="forward")
    backward = refused(lambda: expected.not_fused("mul", other, phase="backward"))
    assert set(backward) < set(texts)
