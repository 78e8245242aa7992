"""Lesson 15, your own backend: its output, and the claims of its text."""

from __future__ import annotations

import inspect
import operator
import re
from typing import Any

import lessons
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compile_lens.course.lessons import fifteen

pytestmark = [pytest.mark.torch, pytest.mark.exhaustive]

NAME = lessons.named("15")


class Dispatched(TorchDispatchMode):
    """Counts the operators that eager PyTorch dispatches."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def _cells() -> dict[str, str]:
    return {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}


def f(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def test_plain_torch_has_the_same_calls() -> None:
    cells = _cells()
    module = torch.fx.symbolic_trace(f)
    names = [node.name for node in module.graph.nodes if node.op == "call_function"]
    assert len(names) == 5 and "the capture has 5 calls of Dynamo" in cells["given"]
    assert f"calls in the capture: {' '.join(names)}" in cells["counting"]
    assert "in this order: True" in cells["counting"] and "'call_function': 5" in cells["counting"]
    assert cells["printing"].count("return (add,)") == 1, "at the first call alone"
    assert cells["printing"].index("first call") < cells["printing"].index("return (add,)")
    assert cells["printing"].rstrip().endswith("second call:")


def test_plain_torch_runs_what_nobody_uses() -> None:
    cells, module = _cells(), torch.fx.symbolic_trace(f)
    x = torch.rand(8)
    scope: dict[str, Any] = {"torch": torch, "operator": operator}
    exec(lessons.prose(NAME)["rewriting"].partition("\n\nmodule = ")[0], scope)
    before = module.code
    scope["put_ones"](module.graph)
    assert module.code == before, "until it is made anew"
    module.recompile()
    counts = []
    for _ in range(2):
        with Dispatched() as dispatched:
            result = module(x)
        assert torch.equal(result, torch.ones(8))
        counts.append(dispatched.count)
        module.graph.eliminate_dead_code()
        module.recompile()
    assert counts == [6, 1] and "operators: 6 → 1" in cells["dead"]
    assert "the capture has 6 operators of eager PyTorch" in cells["dead"]
    assert cells["rewriting"].split("\n")[:3] == ["return (add,)", "return (add,)", "return (ones_like,)"]
    assert lessons.said(lessons.prose(NAME)["dead-meaning"], r"^(\w+): in addition to the ones") == (6,)
    rows = [line.split() for line in cells["dead-series"].splitlines()[-3:]]
    assert [row[-4:-1] for row in rows] == [["5", "1", "~8,000"], ["6", "1", "~4,000"], ["1", "1", "~4,000"]]


def test_it_is_checked_also_where_it_is_wrong() -> None:
    cells = _cells()
    assert f(torch.tensor([torch.inf])).isnan()
    assert cells["checked"].splitlines() == ["random numbers: True", "infinity: 1.0 and eager nan"]


def test_autograd_keeps_what_the_default_cut_keeps() -> None:
    cells, kept = _cells(), set()
    x = torch.rand(8, requires_grad=True)

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.add(tensor.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        f(x)
    first, second = re.findall(r"forward: inputs 1, returns \['add', (.*)\]", cells["aot"])
    assert len(kept) == 3 == len(first.split(", ")) and second == "'primals_1'"
    assert lessons.said(cells["aot-same"], r"forward (\w+) operators.*: True\nbackward (\w+)") == (5, 12)
    assert cells["aot-same"].count("True") == 2


def test_a_backend_sees_graphs_alone() -> None:
    cells = _cells()
    assert "graphs that it got: 2" in cells["lens"] and "not observed: graph breaks" in cells["lens"]
    graphs: list[Any] = []

    def spoken(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x) ** 2
        print("half way")
        return y + torch.cos(x) ** 2

    torch.compile(spoken, backend=lambda module, _: graphs.append(module) or module)(torch.rand(8))
    assert len(graphs) == 2


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
    for name in ("doubled", "added"):
        (code,) = re.findall(rf"    return (torch\.\w+\(torch.*)\n```\n\n.*`{name}`", _prose())
        assert code in _source(name)


def _prose() -> str:
    return "\n".join(lessons.prose(NAME).values())


def _source(name: str) -> str:
    return inspect.getsource(getattr(fifteen, name))
