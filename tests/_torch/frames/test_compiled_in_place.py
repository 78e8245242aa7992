"""A capture compiles modules that were compiled in place from their own code, and reports that it drops the options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from compile_lens import capture

pytestmark = [pytest.mark.torch]

NOTE = "it was already compiled: its original is captured, with the options of this call"


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).sin()

    def other(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).cos()


class Decorated(Plain):
    forward = torch.compile(Plain.forward, mode="max-autotune")
    other = torch.compile(Plain.other, mode="max-autotune")


def in_place() -> Any:
    made = Plain()
    made.compile(mode="max-autotune", fullgraph=True)
    return made


def hooked() -> Any:
    made = in_place()
    made.register_forward_hook(lambda module, given, result: None)
    return made


def forward() -> Any:
    made = Plain()
    made.forward = torch.compile(made.forward, mode="max-autotune")  # type: ignore[method-assign]
    return made


WAYS: dict[str, Callable[[], Any]] = {
    "in place": in_place,
    "with a hook": hooked,
    "a forward": forward,
    "a class's forward": Decorated,
    "a class's forward, bound": lambda: Decorated().forward,
    "a class's method": lambda: Decorated().other,
    "its call": lambda: in_place().__call__,
    "the call of a compiled forward": lambda: forward().__call__,
}


@pytest.mark.full
@pytest.mark.parametrize("target", [None, "h100"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.cases(full=4)
def test_what_was_compiled_in_place_is_captured_as_its_original(way: str, target: str | None) -> None:
    x, fn = torch.rand(4, 8), WAYS[way]()
    before = dict(vars(fn)) if isinstance(fn, nn.Module) else {}
    plain = capture(Plain().other if "method" in way else Plain(), x, target=target)
    found = capture(fn, x, target=target)
    assert NOTE in found.notes and NOTE not in plain.notes
    assert found.kernels and [k.source for k in found.kernels] == [k.source for k in plain.kernels]
    assert not found.autotuning
    if before:
        after = vars(fn)
        assert all(after[key] is before[key] for key in before)


@pytest.mark.full
@pytest.mark.parametrize("target", [None, "h100"])
def test_parts_that_were_compiled_are_named(target: str | None) -> None:
    whole = nn.Sequential(in_place(), Plain(), torch.compile(Plain()))
    (note,) = capture(whole, torch.rand(4, 8), target=target).notes
    assert (
        note
        == "0, 2 were compiled already: captured here as a part of the whole, with the options of this call"
    )


PART = "compiled already: captured here as a part of the whole, with the options of this call"


@torch.compile(mode="max-autotune", dynamic=True)
def helper(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def calls(x: torch.Tensor) -> torch.Tensor:
    return helper(x) + 1


def asks(x: torch.Tensor) -> torch.Tensor:
    return helper(x) + 1 if x.dim() > 7 else x.cos()


HELD, PLAIN = in_place(), Plain()


def holds(x: torch.Tensor) -> torch.Tensor:
    return HELD(x) + PLAIN(x)


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = in_place(), Plain(), forward()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.third(self.second(self.first(x)))

    def some(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))

    def none(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(x)


def closes() -> Any:
    inside = torch.compile(Plain())
    return lambda x: inside(x) + 1


MET: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "a function": (lambda: calls, [f"helper was {PART}"]),
    "one that is not called": (lambda: asks, []),
    "a module of a function": (lambda: holds, [f"HELD was {PART}"]),
    "one in a closure": (closes, [f"inside was {PART}"]),
    "its call": (lambda: Whole().__call__, [f"first, third were {PART}"]),
    "its forward": (lambda: Whole().forward, [f"first, third were {PART}"]),
    "parts that a method names": (lambda: Whole().some, [f"first was {PART}"]),
    "parts that it does not": (lambda: Whole().none, []),
    "a compiled whole": (lambda: torch.compile(Whole()), [NOTE, f"first, third were {PART}"]),
}


@pytest.mark.parametrize("target", [None, "h100"])
@pytest.mark.parametrize("way", MET)
def test_what_is_compiled_and_called_is_named(way: str, target: str | None) -> None:
    fn, notes = MET[way][0](), MET[way][1]
    record = capture(fn, torch.rand(4, 8), target=target)
    assert list(record.notes) == notes
    assert len(record.compilations) == 1 and record.kernels


def test_torch_compiles_a_function_with_the_whole() -> None:
    """Plain torch compiles a function and the module that it calls into one graph, with the outer backend."""
    graphs = []

    def keep(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compile(calls, backend=keep)(torch.rand(4, 8))
    torch.compile(holds, backend=keep)(torch.rand(4, 8))
    assert [("sin" in graph.code, "add" in graph.code) for graph in graphs] == [(True, True)] * 2


def test_torch_compiles_a_part_with_the_whole() -> None:
    """Plain torch compiles a submodule into the graph of the outer module."""
    graphs = []

    def keep(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compile(nn.Sequential(in_place()), backend=keep)(torch.rand(4, 8))
    assert len(graphs) == 1 and "sin" in graphs[0].code
