"""The forward op of each gradient in the backward, in programs whose autograd numbers mislead: lines by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from compile_lens import capture, versions
from compile_lens.record.graph import UNSAID_DERIVATIVE
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def view_written_into(x: Any) -> Any:
    y = x * 2
    v = y[2:]
    v.mul_(3)
    m = x > 0.5
    z = v.exp()
    return z * m[2:]


def in_place(x: Any) -> Any:
    y = x * 2
    y.clamp_(0.1, 1)
    y.sin_()
    m = x > 0.5
    y.mul_(x)
    return y.pow(3) * m


def item_set(x: Any) -> Any:
    y = x * 2
    y[0] = x.sum()
    m = x > 0.5
    return y.exp() * m


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        h = grad * 7
        return h * x.cos()


def own_function(x: Any) -> Any:
    y = x * 2
    z = Sine.apply(y)
    return z.exp() + y


def hooked(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 5 + 1)
    z = y + 0
    return z.sin()


def lines(made: Capture, addresses: Iterable[tuple[str, str, str]]) -> set[int]:
    """Lines of the operators, counted from the function's first."""
    above = (a for address in addresses for a in made.chain.ancestors(address) if a[1] == "python")
    return {int(name.rpartition(":")[2]) for _, _, name in above}


def differentiated(function: Callable[..., Any]) -> tuple[Capture, set[int]]:
    """Lines with a gradient in the backward, counted from the first line of the function."""
    made = capture(function, torch.rand(8, requires_grad=True))
    first = function.__code__.co_firstlineno  # type: ignore[attr-defined]
    cid, joint = made.compilations[0].id, made.compilations[0].graphs["joint"]
    for_ = [a for n in joint.nodes for a in made.chain.derivatives((cid, "joint", n.name))]
    kernels = [
        a
        for n in made.compilations[0].graphs["backward"].nodes
        for a in made.chain.derivatives((cid, "backward", n.name))
    ]
    assert lines(made, kernels) <= lines(made, for_)
    return made, {line - first for line in lines(made, for_)}


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (view_written_into, {1, 3, 5, 6}),
        (in_place, {1, 2, 3, 5, 6}),
        (item_set, {1, 2, 4}),
        (own_function, {1, 2, 3}),
    ],
)
def test_each_line_with_a_derivative_is_told_and_no_other(
    function: Callable[..., Any], wanted: set[int]
) -> None:
    """A comparison has no gradient; the gradient of a view that was written into belongs to the write."""
    made, found = differentiated(function)
    assert found == wanted
    joint = made.compilations[0].graphs["joint"]
    assert not [n.name for n in joint.nodes if n.derivative and not n.origins]


def test_operators_in_place_are_named_where_their_derivative_is_computed() -> None:
    made, _ = differentiated(in_place)
    of = {n.target: n for n in made.compilations[0].graphs["joint"].nodes}
    for target, name in (("aten.logical_and.default", "clamp_"), ("aten.cos.default", "sin_")):
        assert of[target].derivative and of[target].origins == (name,)


@pytest.mark.skipif(
    versions.torch_version() < (2, 12), reason="a hook is an autograd.Function in Dynamo's graph"
)
def test_what_a_hook_computes_is_of_no_operator_and_of_no_line() -> None:
    """Torch's trace attributes the hook's operators to a later line."""
    made, found = differentiated(hooked)
    assert found == {1, 4}
    one = made.compilations[0]
    five = next(n for n in one.graphs["joint"].nodes if 5 in n.args)
    assert (five.origins, five.no_origin) == ((), UNSAID_DERIVATIVE)
    for key in ("joint", "backward", "backward.post_grad"):
        assert five.name in {n.name for n in one.graphs[key].nodes if 5 in n.args and not n.frames}
        assert lines(made, [(one.id, key, five.name)]) == set()


def both_results(x: Any) -> Any:
    y = x.exp()
    a = y + 1
    b = y - x
    return a, b


def test_gradients_of_results_that_are_added_up_serve_what_made_the_results() -> None:
    """No operator of the program stands between the sum and the incoming gradients."""
    record = capture(both_results, torch.rand(8, requires_grad=True))
    first = both_results.__code__.co_firstlineno
    joint = record.compilations[0].graphs["joint"]
    tangents = {n.name for n in joint.nodes if n.name.startswith("tangents")}
    (added,) = (n for n in joint.calls if set(n.inputs) == tangents)
    of = lines(record, record.chain.derivatives((record.compilations[0].id, "joint", added.name)))
    assert {line - first for line in of} == {2, 3}
