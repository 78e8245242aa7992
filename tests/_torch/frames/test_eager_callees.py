"""Functions of torch and of compile_lens that run eagerly around a graph break."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest
import torch
from dispatched import Dispatched
from plain_graphs import compiled
from torch import nn
from torch._dynamo import trace_rules

import compile_lens
from compile_lens import Capture, capture, diff, expect, support, watch
from compile_lens._torch.frames import own_calls
from compile_lens._torch.ground.undo import Undo

pytestmark = pytest.mark.torch

X = torch.rand(4, 4)


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1


class Around(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers, self.norm = nn.Sequential(*layers), nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layers(x * 2))


class Loop(Around):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def eager_functions(module: nn.Module) -> set[str]:
    return {skip.function for skip in capture(module, X).skipped}


@pytest.mark.full
@pytest.mark.skipif(
    torch.__version__.startswith("2.11."), reason="this torch skips them before it asks Dynamo"
)
def test_layers_beside_a_break_in_a_container() -> None:
    layers = nn.Linear(4, 4), Broken(), nn.ReLU(), nn.Sequential(nn.Tanh())
    named = {"Sequential.forward", "Linear.forward", "ReLU.forward", "Tanh.forward"}
    assert eager_functions(nn.Sequential(*layers)) == named
    assert eager_functions(Around(*layers)) == named  # the resume function compiles the norm
    compiled = {
        n.target
        for c in capture(nn.Sequential(*layers), X).compilations
        for g in c.phases
        for n in c.graphs[g].nodes
    }
    with Dispatched() as dispatched:
        nn.Sequential(*layers)(X)
    assert {"aten.relu.default", "aten.tanh.default"} <= set(dispatched.work)
    assert not {"aten.relu.default", "aten.tanh.default", "aten.addmm.default"} & compiled


@pytest.mark.full
def test_layers_that_are_compiled_or_whose_caller_is_named() -> None:
    assert eager_functions(nn.Sequential(nn.Linear(4, 4), nn.ReLU())) == set()
    assert eager_functions(nn.TransformerEncoderLayer(4, 1, 8)) == set()
    assert eager_functions(Loop(nn.Linear(4, 4), Broken(), nn.ReLU())) == {"forward"}


def captures(x: torch.Tensor) -> torch.Tensor:
    capture(torch.sin, x)
    return x + 1


def expects(x: torch.Tensor) -> torch.Tensor:
    expect(torch.sin, x).launches(1).graph_breaks(0)
    return x + 1


def reads(x: torch.Tensor) -> torch.Tensor:
    str(SAVED[0])
    return x + 1


def differs(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    diff(SAVED[0], SAVED[0])
    return y + SAVED[0].cost().total


def asks(x: torch.Tensor) -> torch.Tensor:
    support("sin")
    return x + 1


def watches(x: torch.Tensor) -> torch.Tensor:
    with watch():
        y = x.sin()
    return y + 1


SAVED: list[Capture] = []


@pytest.mark.parametrize("program", [captures, expects, reads, differs, asks, watches])
def test_our_calls_in_a_captured_function_break_at_their_own_lines(program: Any) -> None:
    """Breaks name the program's lines, never ours. There are as many graphs as under a ``torch.compile`` that skips our
    functions. (By default it traces some of them.)"""
    SAVED[:] = [capture(torch.cos, X)]
    captured = capture(program, X)
    assert captured.breaks and not captured.missing
    for ending in captured.breaks:
        assert [frame.file for frame in ending.frames] == [__file__]
        assert "Call compile_lens outside" in ending.hint
    assert {skip.function for skip in captured.skipped} <= {program.__name__}
    assert all(program.__name__ in c.function for c in captured.compilations)
    with Undo() as undo:
        own_calls.skip_own_files(undo)
        graphs = compiled(program, [(X,)])
    assert graphs == sum(bool(c.phases) for c in captured.compilations)


def _skipped_paths() -> tuple[list[str], str]:
    return list(trace_rules.SKIP_DIRS), trace_rules.SKIP_DIRS_RE.pattern


def test_dynamos_skipped_folders_are_put_back() -> None:
    """A capture, a failing capture and a nested one restore them; entries that the program adds meanwhile stay."""
    before = _skipped_paths()

    def fails(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("of the program")

    capture(captures, X)
    assert _skipped_paths() == before
    with pytest.raises(compile_lens.CaptureError):
        capture(fails, X)
    assert _skipped_paths() == before

    def adds(x: torch.Tensor) -> torch.Tensor:
        trace_rules.add("colorsys")
        return x + 1

    capture(torch.compiler.disable(adds), X)
    (added,) = {*trace_rules.SKIP_DIRS} - {*before[0]}
    trace_rules.SKIP_DIRS.remove(added)
    trace_rules._recompile_re()
    assert added.endswith("colorsys.py") and _skipped_paths() == before


def test_dynamos_skipped_folders_are_put_back_after_captures_in_threads() -> None:
    before = _skipped_paths()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        captured = list(pool.map(capture, (captures, expects), (X, X)))
    assert all(one.breaks for one in captured) and _skipped_paths() == before
