"""In-place changes of a program are written to its inputs at the end of the graph; each write belongs to its line."""

from __future__ import annotations

import pytest
import torch
from full_text import full

from compile_lens import capture
from compile_lens.record.graph import Node
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


class Statistics(torch.nn.Module):
    """Counts its calls, keeps running statistics, and has a last line that changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.calls = torch.nn.Buffer(torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        y = self.norm(x)
        return torch.cos(y).sum()


COUNTED, NORMED, LAST = (Statistics.forward.__code__.co_firstlineno + i for i in (1, 2, 3))


def writes(made: Capture, key: str) -> list[Node]:
    return [n for n in made.compilations[0].graphs[key].nodes if n.target == "aten.copy_.default"]


def lines(made: Capture, key: str, names: list[str]) -> list[set[int]]:
    found = []
    for name in names:
        above = made.chain.ancestors((made.compilations[0].id, key, name))
        found.append({int(a[2].rpartition(":")[2]) for a in above if a[1] == "python"})
    return found


@pytest.mark.full
@pytest.mark.parametrize("key", ["joint", "forward"])
def test_what_is_written_back_in_a_training_step_is_of_the_line_that_changed_it(key: str) -> None:
    record = capture(Statistics(), torch.rand(5, 4))
    nodes = writes(record, key)
    assert lines(record, key, [n.name for n in nodes]) == [{COUNTED}, {NORMED}, {NORMED}, {NORMED}]
    assert not any(n.derivative for n in nodes)
    # No line counts as needed by the derivative of the last line.
    assert f"needed by the derivative of {__file__.rpartition('/')[2]}:{LAST}" not in full(record)


def test_what_is_written_back_without_gradients_is_of_its_line() -> None:
    with torch.no_grad():
        record = capture(Statistics(), torch.rand(5, 4))
    nodes = writes(record, "inference")
    assert lines(record, "inference", [n.name for n in nodes]) == [{COUNTED}, {NORMED}, {NORMED}, {NORMED}]


def test_a_gradient_that_is_written_back_is_a_derivative() -> None:
    """Only a custom backward changes an input of the backward; the value is marked as a derivative."""

    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor, seen: torch.Tensor
        ) -> torch.Tensor:
            ctx.save_for_backward(seen)
            return x * 2

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            (seen,) = ctx.saved_tensors
            seen.copy_(grad.sin())
            return grad * 2, None

    record = capture(lambda x, seen: Kept.apply(x, seen), torch.rand(4, requires_grad=True), torch.zeros(4))
    nodes = writes(record, "joint")
    assert len(nodes) == 1
    for node in nodes:
        value = next(n for n in record.compilations[0].graphs["joint"].nodes if n.name == node.inputs[1])
        assert node.derivative == value.derivative and node.origins == value.origins


def test_parameters_that_a_step_changes_are_those_of_the_program() -> None:
    """Dynamo's graph has an optimizer's parameters as attributes, and the next graph has them as inputs."""
    layer = torch.nn.Linear(4, 4)
    step = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.rand(2, 4)).sum().backward()
    record = capture(step.step)
    one = next(c for c in record.compilations if c.graphs)
    held = [n.name for n in one.graphs["dynamo"].nodes if n.op == "get_attr"]
    inputs = [n for n in one.graphs["inference"].nodes if n.op == "placeholder"]
    written = [n.inputs[0] for n in one.graphs["inference"].nodes if n.target == "aten.copy_.default"]
    assert len(held) == len(written) == 2 and all(n.origins for n in inputs)
    assert [n.origins for n in inputs if n.name in written] == [(name,) for name in held]
