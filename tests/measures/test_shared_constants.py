"""A constant that the compiler merged does not link a kernel to a line that has no part in it.

A product of matrices keeps the two lines of each program in separate kernels, so that the line of each kernel is known
from the program; a change of a line changes the text of exactly the kernels that are linked to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch._inductor import config

import compile_lens
from compile_lens.results.capture import Capture

pytestmark = pytest.mark.torch

Two = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def scalar(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    a = torch.where(x > 0.25, x, 0.0)
    b = a @ w
    return torch.where(b > 0.5, b, 0.0)


def iota(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    a = x * torch.arange(16)
    b = a @ w
    return b - torch.arange(16)


def view_of_iota(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    a = x * torch.arange(16).unsqueeze(1)
    b = a @ w
    return b - torch.arange(16).unsqueeze(1)


def made_of_constants(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    a = x.masked_fill(torch.ones(16, 16).tril() == 0, -1.0)
    b = a @ w
    return b.masked_fill(torch.ones(16, 16).tril() == 0, -1.0)


def clamped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    a = F.relu(x) * 2
    b = a @ w
    return F.leaky_relu(b)


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(16, 16, requires_grad=True), torch.rand(16, 16)


def seen(function: Two) -> Capture:
    return compile_lens.capture(function, *arguments())


def lines(capture: Capture, function: Two) -> list[set[int]]:
    """The lines of each kernel, counted from the first of the function."""
    first = function.__code__.co_firstlineno
    return [{frame.line - first for frame in capture.chain.lines(kernel)} for kernel in capture.kernels]


@pytest.mark.parametrize(
    "function",
    [
        scalar,
        *(pytest.param(f, marks=pytest.mark.full) for f in (iota, view_of_iota, made_of_constants, clamped)),
    ],
)
def test_a_kernel_is_linked_to_the_line_that_uses_the_constant_there(function: Two) -> None:
    capture = seen(function)
    generated = [own for kernel, own in zip(capture.kernels, lines(capture, function)) if kernel.source]
    assert {frozenset(own) for own in generated} == {frozenset({1}), frozenset({3})}
    chain, file, first = capture.chain, function.__code__.co_filename, function.__code__.co_firstlineno
    by_line = [[k for k in chain.kernels(file, first + at) if k.source] for at in (1, 3)]
    assert len(by_line[0]) + len(by_line[1]) == len(generated), "downwards as upwards"
    for kernel, own in zip(capture.kernels, lines(capture, function)):
        for line in kernel.lines:
            address = ("0/0", f"{kernel.phase}.code", f"{kernel.name}:{line.line}")
            if address in chain:
                assert {frame.line - first for frame in chain.lines(address)} <= own


def changed(function: Two, line: int, old: str, new: str) -> list[int]:
    """Indices of the kernels whose text changes with a constant in one line."""
    text = inspect.getsource(function).splitlines()
    assert old in text[line]
    text[line] = text[line].replace(old, new)
    scope = {"torch": torch, "F": F}
    exec(compile("\n".join(text), __file__, "exec"), scope)
    before, after = seen(function), seen(scope[function.__name__])  # type: ignore[arg-type]
    assert len(before.kernels) == len(after.kernels)
    bodies = zip(before.kernels, after.kernels, strict=True)
    return [i for i, (a, b) in enumerate(bodies) if a.source and body(a.source) != body(b.source)]


def body(source: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if "auto tmp" in line]


@pytest.mark.full
@pytest.mark.parametrize("line", [1, 3])
@pytest.mark.parametrize(
    ("function", "old", "new"), [(scalar, "0.0)", "0.125)"), (made_of_constants, "-1.0", "-3.0")]
)
def test_another_constant_changes_no_kernel_of_another_line(
    function: Two, old: str, new: str, line: int
) -> None:
    own = [i for i, of in enumerate(lines(seen(function), function)) if line in of]
    others = changed(function, line, old, new)
    assert others and set(others) <= set(own)


def scalar_of_both(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return scalar(x, w) @ (w + x)  # its gradient depends on both constants: since 2.15 torch merges no others


def users_of_constants(function: Two) -> dict[str, int]:
    """Number of nodes that read each constant which torch leaves in the forward graph, by torch alone."""
    users: dict[str, int] = {}

    def count(graph: torch.fx.Graph) -> None:
        constants = graph.find_nodes(op="call_function", target=torch.ops.aten.full.default)
        users.update((node.name, len(node.users)) for node in constants)
        raise InterruptedError("before it generates code")

    torch._dynamo.reset()
    with config.patch(post_grad_custom_pre_pass=count, fx_graph_cache=False):
        with pytest.raises(Exception, match="before it generates code"):
            torch.compile(function)(*arguments())
    return users


@pytest.mark.parametrize("function", [scalar, scalar_of_both])
def test_the_merged_node_leads_to_all_that_reads_it_and_is_no_dead_end(function: Two) -> None:
    chain, users = seen(function).chain, users_of_constants(function)
    assert sum(users.values()) == 2 and (function is scalar or len(users) == 1)
    for name, count in users.items():
        merged = ("0/0", "forward.post_grad", name)
        reached = [a[2] for a in chain.descendants(merged) if a[1] == "forward.code" and ":" not in a[2]]
        assert len(reached) == count and chain.why_not(merged) == ""
        assert chain.ancestors(merged) and merged in chain.leading()
