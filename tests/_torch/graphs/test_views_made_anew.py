"""Views that AOTAutograd rebuilds at the end of a graph because their base changed in place later. The oracle is the
program's text: each shape stands on the one line that creates a view with it, as in eager mode."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from compile_lens import capture, versions
from compile_lens.record.graph import UNSAID_ORIGIN

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def of_an_input(x: torch.Tensor) -> Any:
    x.mul_(2)
    return x.view(2, 8)  # (2, 8)


def two_of_an_input(x: torch.Tensor) -> Any:
    x.mul_(2)
    a = x.view(2, 8)  # (2, 8)
    return a.t()  # (8, 2)


def before_the_change(x: torch.Tensor) -> Any:
    y = x.sin()
    a = y.view(2, 8)  # (2, 8)
    b = a[0]  # (8,)
    y.add_(1)
    return b, y * 2


def two_results(x: torch.Tensor) -> Any:
    y = x.sin()
    a = y.view(2, 8)  # (2, 8)
    b = a.t()  # (8, 2)
    y.add_(1)
    return a, y * 2, b


def in_several_steps(x: torch.Tensor) -> Any:
    y = x.sin()
    a = y[:, None, 1:3]  # (4, 1, 4) (4, 1, 2)
    y.add_(1)
    return y * 2, a


@pytest.mark.parametrize(
    ("fn", "learns"),
    [
        *(
            (fn, False)
            for fn in (of_an_input, two_of_an_input, before_the_change, two_results, in_several_steps)
        ),
        *((fn, True) for fn in (before_the_change, two_results, in_several_steps)),
    ],
)
def test_a_view_made_anew_leads_to_the_line_that_made_it(
    fn: Callable[[torch.Tensor], Any], learns: bool
) -> None:
    if learns and versions.torch_version() < (2, 12):
        pytest.skip("does not say which views are of the backward")
    record = capture(fn, torch.rand(4, 4, requires_grad=learns))
    source, first = inspect.getsourcelines(fn)
    graph = record.compilations[0].graphs["joint" if learns else "inference"]
    views = [
        n for n in graph.nodes if n.kind == "view" and not n.derivative and n.target != "aten.alias.default"
    ]
    assert views
    for node in views:
        assert node.shape is not None
        line = next(at for at, text in enumerate(source, first) if str(node.shape) in text.partition("#")[2])
        assert {f.line for f in record.chain.lines(("0/0", graph.key, node.name))} == {line}, node
    every = [n for g in record.compilations[0].graphs.values() for n in g.nodes]
    assert not [n.name for n in every if n.no_origin == UNSAID_ORIGIN]
    shapes = str([tuple(r.shape) for r in _flat(fn(torch.rand(4, 4)))])
    assert any(str(node.shape) in shapes for node in views)


def _flat(results: Any) -> tuple[torch.Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)
