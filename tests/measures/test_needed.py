"""Nodes that a call consists of, and those that only its derivative needs: hand counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest

import compile_lens
from compile_lens.measures.chain import Address
from compile_lens.results.capture import Capture
from compile_lens.views.render.text import page
from compile_lens.views.subjects.capture import document
from compile_lens.views.words.labels import Origins, needed

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.torch


def of(function: Callable[..., object], *shapes: tuple[int, ...]) -> Capture:
    import torch

    return compile_lens.capture(function, *(torch.rand(shape, requires_grad=True) for shape in shapes))


def by_stage(addresses: Iterable[Address], *stages: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {stage: [] for stage in stages}
    for _, stage, name in addresses:
        if stage in found:
            found[stage].append(name)
    return found


def squares(x: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def twice(x: torch.Tensor) -> torch.Tensor:
    import torch

    a = torch.sin(x)
    b = torch.sin(x)
    return a * 2 + b * 3


def apart(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    import torch

    a = torch.sin(x)
    s = a @ w
    return torch.cos(x) * s


def test_the_sine_of_the_forward_is_not_the_call_of_the_cosine() -> None:
    chain = of(squares, (100,)).chain
    cos = ("0/0", "dynamo", "cos")
    stages = ("joint", "forward", "forward.post_grad", "backward")
    assert by_stage(chain.descendants(cos), *stages) == {
        "joint": ["cos", "sin_1", "neg", "mul_2", "add_1"],
        "forward": ["cos"],
        "forward.post_grad": ["cos"],
        "backward": ["cos", "sin", "neg", "mul_2", "add_1"],
    }, "the backward works the sine out again: the forward's is of the call sin alone"
    assert by_stage(chain.descendants(cos, derivatives=False), *stages) == {
        "joint": ["cos"],
        "forward": ["cos"],
        "forward.post_grad": ["cos"],
        "backward": ["cos", "sin", "neg", "mul_2", "add_1"],
    }, "of a backward, all"
    joint = [("0/0", "joint", name) for name in ("sin", "sin_1")]
    for phase, own in (("forward", joint[:1]), ("backward", joint)):
        assert list(chain.up(("0/0", phase, "sin"))) == own
        assert list(chain.up(("0/0", phase, "sin"), derivatives=False)) == own
    pre_grad = ("0/0", "pre_grad", "cos")
    assert len(chain.down(pre_grad)) == 5
    assert chain.down(pre_grad, derivatives=False) == (("0/0", "joint", "cos"),)
    assert chain.down(joint[1], derivatives=False) == (("0/0", "backward", "sin"),)
    assert chain.up(joint[1], derivatives=False) == (pre_grad,), "what is made for a derivative knows whose"
    above = chain.ancestors(("0/0", "forward.post_grad", "sin"), derivatives=False)
    assert by_stage(above, "dynamo", "joint") == {"dynamo": ["sin"], "joint": ["sin"]}
    above = chain.ancestors(("0/0", "backward", "neg"), derivatives=False)
    assert by_stage(above, "dynamo", "joint") == {"dynamo": ["cos"], "joint": ["neg"]}


def spread(x: torch.Tensor) -> torch.Tensor:
    return x.mean(dim=1, keepdim=True) * 2 + x.var(dim=1, keepdim=True)


def kept(function: Callable[..., object], *shapes: tuple[int, ...]) -> set[str]:
    """Forward operators that lead to a value saved for the backward, by torch alone."""
    import torch
    from torch._functorch.aot_autograd import aot_function
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    graphs: list[torch.fx.Graph] = []

    def keep(module: torch.fx.GraphModule, inputs: object) -> torch.fx.GraphModule:
        graphs.append(module.graph)
        return module

    inputs = [torch.rand(shape, requires_grad=True) for shape in shapes]
    compiled = aot_function(
        function, fw_compiler=keep, bw_compiler=keep, partition_fn=min_cut_rematerialization_partition
    )
    compiled(*inputs).sum().backward()
    (output,) = graphs[0].find_nodes(op="output")
    pending = [node for node in output.args[0][1:] if isinstance(node, torch.fx.Node)]
    for node in pending:
        pending += [above for above in node.all_input_nodes if above not in pending]
    return {str(node.target) for node in pending if node.op == "call_function"}


@pytest.mark.parametrize(
    ("function", "shapes", "wanted"),
    [
        (squares, [(100,)], set()),
        (apart, [(16, 16), (16, 16)], {"aten.sin.default"}),
        (spread, [(8, 16)], {"aten.mean.dim"}),
    ],
)
def test_a_derivative_needs_of_the_forward_what_the_forward_keeps_for_it(
    function: Callable[..., object], shapes: list[tuple[int, ...]], wanted: set[str]
) -> None:
    from torch._functorch.compile_utils import fx_graph_cse

    seen = of(function, *shapes)
    graphs, chain = seen.compilations[0].graphs, seen.chain
    made = {("0/0", "joint", node.name) for node in graphs["joint"].nodes if node.derivative}
    serve = {n.target for n in graphs["forward"].calls if made & {*chain.up(("0/0", "forward", n.name))}}
    told = {target for target in serve if "permute" not in target}
    by_torch = kept(function, *shapes)
    assert told <= by_torch
    if "extra_node_key" not in inspect.signature(fx_graph_cse).parameters:  # otherwise torch merges none
        assert told == wanted and wanted <= by_torch


def test_two_equal_calls_are_both_the_node_that_stands_for_them() -> None:
    seen = of(twice, (100,))
    line = twice.__code__.co_firstlineno
    assert seen.chain.up(("0/0", "forward", "sin"), derivatives=False) == (
        ("0/0", "joint", "sin"),
        ("0/0", "joint", "sin_1"),
    )
    for name, number in (("a", line + 3), ("b", line + 4)):
        own = seen.chain.descendants(("0/0", "dynamo", name), derivatives=False)
        assert by_stage(own, "forward") == {"forward": ["sin"]}
        (only,) = seen.chain.lines(("0/0", "dynamo", name))
        assert only.line == number
    lines = seen.chain.lines(("0/0", "forward", "sin"), derivatives=False)
    assert [frame.line for frame in lines] == [line + 3, line + 4]


def test_a_kernel_is_of_the_lines_that_it_computes() -> None:
    """A product stands between the sine and the cosine, so that each has its own kernel."""
    seen = of(apart, (16, 16), (16, 16))
    line = apart.__code__.co_firstlineno
    first, library, last = seen.compilations[0].code["forward"].kernels
    assert first.origins == ("sin",) and library.language == "extern" and "cos" in last.origins
    assert [f.line for f in seen.chain.lines(first)] == [line + 3, line + 5]
    assert [f.line for f in seen.chain.lines(first, derivatives=False)] == [line + 3]
    assert seen.chain.kernels(f"cos@{line + 5}", derivatives=False)[0] is last
    assert first in seen.chain.kernels(f"cos@{line + 5}")
    origin = Origins(seen).of(first)
    assert [f.line for f in origin.lines] == [line + 3]
    assert needed(origin) == f"needed by the derivative of test_needed.py:{line + 5}"
    assert f"← sin ← test_needed.py:{line + 3} " in " ".join(page(document(seen)).split()) + " "
    assert needed(origin) in " ".join(page(document(seen)).split())
    why = seen.why(f"sin@{line + 3}", f"cos@{line + 5}", phase="forward")
    assert (why.verdict, why.reason) == ("not fused", "extern"), "the sine is no part of what cos(x) is"


def test_a_mask_that_only_the_backward_reads_is_there_for_the_derivative() -> None:
    def masked(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu()

    seen = of(masked, (100,))
    relu = ("0/0", "dynamo", "relu")
    whole = by_stage(seen.chain.descendants(relu), "forward")["forward"]
    assert whole == ["relu", "le"]
    assert by_stage(seen.chain.descendants(relu, derivatives=False), "forward")["forward"] == ["relu"]
    assert len(seen.chain.lines(("0/0", "forward", "le"), derivatives=False)) == 1, (
        "a line of its own all the same"
    )
