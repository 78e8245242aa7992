"""The line of a node: the user's line comes first, even if torch's own Python lies in between."""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo.symbolic_convert
import torch.nn.functional as F
from full_text import full
from torch import nn

from compile_lens import capture, versions
from compile_lens.measures.chain import line_address
from compile_lens.record.graph import Frame, Node
from compile_lens.results.capture import Capture
from compile_lens.views.live.graphs import shown_frames
from compile_lens.views.words import labels

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def padded(x: torch.Tensor) -> torch.Tensor:
    y = F.pad(x, (1, 2), mode="constant", value=3.0)
    return F.softplus(y) + F.normalize(y, dim=-1)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.GELU())
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x)
        return self.norm(y)


def line(fn: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(fn)
    return next(first + i for i, code in enumerate(lines) if text in code)


def places(found: Capture) -> set[tuple[str, int]]:
    return {(f.file, f.line) for k in found.kernels for f in found.chain.lines(k)}


@pytest.mark.parametrize("needs", [False, True])
def test_a_function_of_torch_is_the_line_that_calls_it(needs: bool) -> None:
    record = capture(padded, torch.rand(4, 8, requires_grad=needs))
    assert places(record) == {(__file__, line(padded, "F.pad")), (__file__, line(padded, "return"))}
    chain = record.chain
    pad = line(padded, "F.pad")
    assert chain.kernels(__file__, pad) == record.kernels
    nodes = {n.name: n for n in record.compilations[0].graphs["dynamo"].nodes if n.frames}
    deep = [n for n in nodes.values() if n.frames[-1].of_torch]
    assert deep, "this torch has no Python of its own in these functions"
    for node in nodes.values():
        assert node.frames[0].file == __file__ and not node.frames[0].of_torch
        (own,) = node.innermost
        assert own.file == __file__
        up = chain.up(("0/0", "dynamo", node.name))
        assert up[0] == line_address(own.file, own.line)
        assert len(up) == len({(f.file, f.line) for f in node.frames}), "torch's own stay, behind it"


@pytest.mark.parametrize("training", [False, True])
def test_a_module_of_torchs_is_the_line_that_calls_it(training: bool) -> None:
    record = capture(Net().train(training), torch.rand(4, 8, requires_grad=training))
    assert places(record) == {
        (__file__, line(Net.forward, "self.inner")),
        (__file__, line(Net.forward, "self.norm")),
    }


def test_without_a_line_of_the_users_torchs_own_is_told() -> None:
    record = capture(nn.Sequential(nn.Linear(8, 8), nn.GELU()), torch.rand(4, 8))
    assert places(record) and all("torch/nn/modules" in file.replace("\\", "/") for file, _ in places(record))


def test_every_view_names_the_users_line() -> None:
    record = capture(padded, torch.rand(4, 8, requires_grad=True))
    text = full(record)
    assert f"{__file__.rpartition('/')[2]}:{line(padded, 'F.pad')}" in text and "functional.py" not in text
    origins = labels.Origins(record)
    assert {f.file for k in record.kernels for f in origins.of(k).lines} == {__file__}
    joint = record.compilations[0].graphs["joint"]
    assert "functional.py" not in joint.to_svg()
    for node in joint.nodes:
        assert [f.file for f in shown_frames(node)[-1:]] in ([], [__file__])


def test_the_innermost_of_the_users_frames() -> None:
    mine, theirs = Frame("/u/f.py", 1, "f"), Frame("/t/functional.py", 2, "pad", of_torch=True)
    assert Node("n", "call_function", "x", frames=(mine, theirs)).innermost == (mine,)
    assert Node("n", "call_function", "x", frames=(theirs, theirs)).innermost == (theirs,)
    assert Node("n", "call_function", "x").innermost == ()


def called_by_what_is_left(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


@torch.compiler.disable(recursive=False)
def left_alone(x: torch.Tensor) -> torch.Tensor:
    return called_by_what_is_left(x) * 2


def around_what_is_left(x: torch.Tensor) -> torch.Tensor:
    return left_alone(x.cos()) + 1


def test_a_function_that_is_disabled_alone_is_left_alone() -> None:
    """Dynamo recognizes it by the frame directly above its own; plain torch shows what is compiled then."""
    graphs: list[int] = []

    def backend(gm: torch.fx.GraphModule, example_inputs: object) -> object:
        graphs.append(sum(node.op.startswith("call") for node in gm.graph.nodes))
        return gm.forward

    torch._dynamo.reset()
    torch.compile(around_what_is_left, backend=backend)(torch.ones(4))
    torch._dynamo.reset()
    record = capture(around_what_is_left, torch.ones(4))
    assert [len(c.graphs["dynamo"].calls) for c in record.compilations] == graphs == [1, 2, 1]
    assert "called_by_what_is_left" in {s.name for s in record.sources}


class SummaryWithoutColumns:
    """A frame summary of Python 3.10, which has lines and no columns."""

    def __init__(self, summary: traceback.FrameSummary) -> None:
        self.filename, self.lineno, self.name = summary.filename, summary.lineno, summary.name
        self.line, self.locals = summary.line, None

    def __iter__(self) -> Iterator[object]:
        return iter((self.filename, self.lineno, self.name, self.line))


def test_a_frame_summary_without_columns_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = torch._dynamo.symbolic_convert.InstructionTranslatorBase
    real = translator.frame_summary
    monkeypatch.setattr(translator, "frame_summary", lambda self: SummaryWithoutColumns(real(self)))
    captured = capture(lambda x: torch.sin(x) + 1, torch.rand(8))
    assert captured.ledger.total.launches == 1
    (node, *_) = captured.compilations[0].graphs["dynamo"].calls
    assert node.innermost[-1].line > 0 and node.innermost[-1].column is None


def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    y = torch.mul(x, by)
    return torch.add(y, 1)


def of_whole_values(x: torch.Tensor) -> torch.Tensor:
    wide = scaled(torch.sin(x), 2.0)
    return scaled(
        wide,
        3.0,
    )


@pytest.mark.skipif(
    sys.version_info < (3, 11) or versions.torch_version() < (2, 13), reason="stack traces without columns"
)
def test_a_call_that_is_the_whole_value_of_a_statement_has_its_columns() -> None:
    """The oracle is ``co_positions``: since 3.13, Python marks such a call in no stack trace."""
    instructions = {
        function.__name__: {
            (line, start, end if line == last else len(linecache.getline(__file__, line).rstrip()))
            for line, last, start, end in function.__code__.co_positions()
        }
        for function in (scaled, of_whole_values)
    }
    (compilation,) = capture(of_whole_values, torch.ones(4, requires_grad=True)).compilations
    for stage in ("dynamo", "pre_grad", "joint", "forward"):
        calls = [node for node in compilation.graphs[stage].calls if node.frames]
        assert len(calls) >= 5
        for frame in (frame for node in calls for frame in node.frames):
            assert (frame.line, frame.column, frame.end_column) in instructions[frame.function]
            assert frame.call == linecache.getline(__file__, frame.line)[frame.column : frame.end_column]


def written(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    y[:, i] = 1.0
    return y.sum(0)


def written_later(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    torch._dynamo.graph_break()
    y[:, i] = 1.0
    return y.sum(0)


@pytest.mark.parametrize("function", [written, written_later])
def test_a_graph_that_the_backend_refuses_is_none(function: Callable[..., torch.Tensor]) -> None:
    from torch._dynamo.utils import counters

    inputs = torch.ones(2, 3), torch.tensor(1)
    torch._dynamo.reset()
    counters.clear()
    torch.compile(function)(*inputs)
    count = counters["stats"]["unique_graphs"]
    torch._dynamo.reset()
    seen = capture(function, *inputs)
    assert len(seen.compilations) == count == (function is written_later)
    assert bool(seen.nothing_compiled) == (function is written)
    assert [skip.kind for skip in seen.skipped] == ["rest of a function" if count else "function"]
    assert "`inductor` failed with aten._local_scalar_dense" in seen.skipped[0].cause.reason
