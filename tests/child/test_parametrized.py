"""Modules with parametrizations, for which torch creates a class each, are captured for a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.utils import parametrizations, parametrize

from compile_lens import capture
from compile_lens.errors import UsageError

pytestmark = [pytest.mark.torch, pytest.mark.slow]


class Symmetric(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu() + x.triu(1).mT


def symmetric() -> torch.nn.Module:
    made = torch.nn.Linear(4, 4)
    parametrize.register_parametrization(made, "weight", Symmetric())
    return torch.nn.Sequential(made, torch.nn.ReLU())


def plain(fn: Any, x: torch.Tensor) -> list[str]:
    """The graphs that plain torch hands to a backend."""
    seen: list[str] = []

    def compiler(graph: Any, inputs: Any) -> Any:
        seen.extend(str(node.target) for node in graph.graph.nodes if node.op.startswith("call_"))
        return graph.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(fn, backend=compiler)(x)
    return seen


@pytest.mark.parametrize(
    "make",
    [
        lambda: parametrizations.weight_norm(torch.nn.Linear(4, 4)),
        lambda: parametrizations.spectral_norm(torch.nn.Linear(4, 4)),
        symmetric,
    ],
)
@pytest.mark.parametrize("target", ["h100", "cpu:avx2"])
@pytest.mark.cases(full=2)
def test_it_is_captured_as_plain_torch_compiles_it(make: Callable[[], torch.nn.Module], target: str) -> None:
    torch.manual_seed(0)
    net, x = make().eval(), torch.rand(2, 4)
    with torch.no_grad():
        expected = net(x)
        record = capture(net, x, target=target)
    assert record.target is not None and record.target.transfer.startswith("in a child process")
    here = [str(node.target) for node in capture(net, x).compilations[0].graphs["dynamo"].calls]
    there = [str(node.target) for node in record.compilations[0].graphs["dynamo"].calls]
    assert there == here and len(there) == len(plain(net, x))
    torch.testing.assert_close(net(x), expected)


def test_cached_ones_are_refused_with_what_helps() -> None:
    net, x = parametrizations.weight_norm(torch.nn.Linear(4, 4)), torch.rand(2, 4)
    with parametrize.cached(), pytest.raises(UsageError, match=r"capture outside of it, or enter it"):
        capture(net, x, target="h100")
