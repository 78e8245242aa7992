"""Freezing rebuilds the graph and folds what depends on weights only. The oracles are the generated code, in which
each number stands on one line of the program only, and torch's own source lines of the frozen graph."""

from __future__ import annotations

import inspect
import re

import pytest
import torch
from torch._inductor import config

from compile_lens import capture
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.weight = torch.nn.Parameter(torch.rand(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.conv(x))
        y = torch.relu(y).mean((2, 3)) * 1.375
        folded = self.weight * 2.625
        z = y @ folded
        again = torch.sin(z) + 3.875
        return again * torch.sin(z)


def line(text: str) -> int:
    source, first = inspect.getsourcelines(Model)
    return next(n for n, written in enumerate(source, first) if text in written)


def frozen(everywhere: bool) -> Capture:
    """Capture a model with freezing. As a backend option only, Dynamo keeps the weights as inputs, so nothing folds."""
    model = Model().eval()
    with torch.no_grad(), config.patch(freezing=everywhere):
        return capture(model, torch.rand(2, 3, 8, 8), options=None if everywhere else {"freezing": True})


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_frozen_graph_is_linked_to_the_lines(everywhere: bool) -> None:
    record = frozen(everywhere)
    graph = record.compilations[0].graphs["inference"]
    assert not [n.name for n in graph.nodes if not n.origins]
    for node in graph.calls:
        if node.frames:
            assert node.innermost[0].line in {
                f.line for f in record.chain.lines(("0/0", "inference", node.name))
            }
    for number in ("1.375", "3.875") if everywhere else ("1.375", "2.625", "3.875"):
        computing = {k.name for k in record.kernels if re.search(rf"\b{re.escape(number)}\d*\b", k.source)}
        reached = {k.name for k in record.chain.kernels(__file__, line(number))}
        assert computing and computing <= reached, number
    assert record.coverage().total.line_share == 1


def test_what_was_worked_out_while_compiling_is_said_as_such() -> None:
    record = frozen(True)
    assert not any("2.625" in k.source for k in record.kernels)
    assert record.chain.kernels(__file__, line("2.625")) == ()
    ends = {record.chain.why_not(a) for a in record.chain.descendants(("0/0", "dynamo", "folded"))} - {""}
    assert ends == {"a constant: its value was computed while the graph was compiled"}


def test_equal_nodes_that_freezing_merged_are_all_origins_of_the_one_that_stays() -> None:
    record = frozen(False)
    (sine,) = (n for n in record.compilations[0].graphs["inference"].nodes if n.target == "aten.sin.default")
    assert {f.line for f in record.chain.lines(("0/0", "inference", sine.name))} == {
        line("again ="),
        line("again *"),
    }
    (merging,) = (p for p in record.compilations[0].passes if p.name == "fx_graph_cse")
    assert merging.nodes_before - merging.nodes_after == 1 and len(merging.rewrites) == 1


def relu_of(*layers: torch.nn.Module) -> torch.nn.Module:
    return torch.nn.Sequential(*layers, torch.nn.ReLU())


class Sum(torch.nn.Module):
    """Adds two convolutions of one image, which oneDNN does in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 4, 1, stride=3), torch.nn.Conv2d(3, 4, 2, stride=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.first(x) + self.second(x))


LIBRARY_CALLS = {
    # A model, its input, and the bytes that each oneDNN or MKL call reads and writes: image, weight, bias, result.
    "convolution": (relu_of(torch.nn.Conv2d(3, 4, 2, stride=4)), (1, 3, 16, 16), [(4 * (3 * 64 + 48 + 4), 256)]),
    "transposed": (
        relu_of(torch.nn.ConvTranspose2d(3, 4, 1, stride=2, padding=2)),
        (1, 3, 9, 9),
        [(4 * (3 * 49 + 12 + 4), 4 * 4 * 13 * 13)],
    ),
    "added in place": (
        Sum(),
        (1, 3, 18, 18),
        [(4 * (3 * 36 + 12 + 4), 576), (4 * (3 * 144 + 48 + 4) + 576, 576)],
    ),
    "linear": (relu_of(torch.nn.Linear(64, 32)), (8, 64), [(4 * (8 * 64 + 32 * 64), 1024)]),
    "linear in bfloat16": (
        relu_of(torch.nn.Linear(64, 32)).bfloat16(), (8, 64), [(2 * (8 * 64 + 32 * 64 + 32), 512)]
    ),
}  # fmt: skip


@pytest.mark.skipif(
    not (torch._C.has_mkl and torch._C._has_mkldnn), reason="this torch has no oneDNN or no MKL"
)
@pytest.mark.cases(quick=2)
@pytest.mark.parametrize("name", LIBRARY_CALLS)
def test_a_call_of_a_library_reads_the_weight_and_what_the_windows_cover(name: str) -> None:
    model, shape, moved = LIBRARY_CALLS[name]
    dtype = next(model.parameters()).dtype
    if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("oneDNN has no bfloat16 for this processor")
    with torch.no_grad(), config.patch(freezing=True):
        record = capture(model.eval(), torch.randn(shape, dtype=dtype))
    calls = [kernel for kernel in record.kernels if "mkl" in kernel.name]
    assert [(kernel.reads, kernel.writes) for kernel in calls] == moved
    assert record.ledger.total.bytes_before == record.ledger.total.eager_bytes
