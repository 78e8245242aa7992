"""Units of work: parts of the source with their own colour, and their outcome."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import samples
import torch

from compile_lens import capture, versions
from compile_lens.measures.source_units import Unit, instances, units
from compile_lens.record.capture import Record
from compile_lens.record.graph import Frame, Graph, Node, Source
from compile_lens.results.capture import Capture

pytestmark = pytest.mark.torch

columns = pytest.mark.skipif(
    sys.version_info < (3, 11) or versions.torch_version() < (2, 12),
    reason="frames carry columns from Python 3.11 and torch 2.12 on",
)


def spans(found: Sequence[Unit]) -> list[tuple[str, int | None, int | None]]:
    return [(unit.tag, unit.column, unit.end_column) for unit in found]


def one_line(x: Any) -> Any:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


# fmt: off
def two_lines(x: Any) -> Any:
    y = torch.sin(x) * 2
    return y + torch.cos(
        x
    )
# fmt: on


def through_views(x: Any, w: Any) -> Any:
    y = x @ w  # on three dimensions: a product of two, and a view of it
    z = y.transpose(0, 1)
    t = torch.sin(z).flatten()
    return torch.cumsum(t, 0)


class Wrapped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> Any:
        return self.net(x)


def with_columns(frames: Sequence[Frame]) -> Capture:
    """The sample with a Dynamo graph that has one node for each frame."""
    return with_nodes(
        tuple(Node(f"n{i}", "call_function", "f", frames=(frame,)) for i, frame in enumerate(frames))
    )


def with_nodes(nodes: tuple[Node, ...]) -> Capture:
    whole = samples.sample()
    (made,) = whole.compilations
    stages = (Graph("dynamo", "", "", nodes),)
    return dataclasses.replace(whole, compilations=(dataclasses.replace(made, stages=stages),))


def at(line: int, start: int | None = None, end: int | None = None, text: str = "a") -> Frame:
    return Frame(samples.FILE, line, "f", text, start, end)


@columns
def test_the_calls_of_a_single_line_are_units_and_end_where_they_end() -> None:
    record = capture(one_line, torch.rand(8, requires_grad=True))
    (found,) = units(record).values()
    assert spans(found.all) == [
        ("sin", 11, 23),
        ("pow_1", 11, 28),
        ("cos", 31, 43),
        ("pow_2", 31, 48),
        ("add", 11, 48),
    ]
    assert {name: found.of["0/0", "forward", name] for name in ("sin", "pow_1", "cos", "pow_2", "add")} == {
        "sin": (0,),
        "pow_1": (1,),
        "cos": (2,),
        "pow_2": (3,),
        "add": (4,),
    }, "that the derivative of cos reads the sine is no matter of the forward"
    assert found.of["0/0", "backward", "neg"] == (2,), "the derivative of cos is cos's"
    kernel = record.kernels[0]
    lines = kernel.source.split("\n")
    said = {
        lines[line.line - 1].strip().partition(" = ")[2]: found.of[
            "0/0", "forward.code", f"{kernel.name}:{line.line}"
        ]
        for line in kernel.lines
        if line.origins
    }
    assert said["tmp0.sin();"] == (0,) and said["tmp3 * tmp3;"] == (3,)
    assert ("0/0", "forward", "primals_1") not in found.of, "an input is no work"


def test_lines_are_units_where_there_are_several() -> None:
    record = capture(two_lines, torch.rand(8))
    (found,) = units(record).values()
    first = two_lines.__code__.co_firstlineno
    assert [(u.tag, u.line, u.column) for u in found.all] == [
        (str(first + 1), first + 1, None),
        (str(first + 2), first + 2, None),
    ]
    assert {found.of["0/0", "inference", name] for name in ("sin", "mul")} == {(0,)}


@columns
def test_a_call_over_several_lines_takes_the_rest_of_its_line() -> None:
    record = capture(two_lines, torch.rand(8))
    frames = {n.name: n.innermost[0] for n in record.compilations[0].graphs["dynamo"].calls}
    assert (frames["sin"].column, frames["sin"].end_column) == (8, 20)
    assert (frames["cos"].column, frames["cos"].end_column) == (15, 25), "'torch.cos(' ends with its line"


def test_without_columns_a_line_is_one_unit() -> None:
    (found,) = units(with_columns([at(5), at(5)])).values()
    assert spans(found.all) == [("5", None, None)]


def test_a_line_that_is_not_ascii_has_units_by_its_calls() -> None:
    (found,) = units(with_columns([at(5, 4, 9, "é + f(x)"), at(5, 0, 9, "é + f(x)")])).values()
    assert spans(found.all) == [("n0", 4, 9), ("n1", 0, 9)]


def test_calls_of_one_place_are_one_unit_named_after_the_last() -> None:
    (found,) = units(with_columns([at(5, 4, 9), at(5, 4, 9), at(5, 2, 12)])).values()
    assert spans(found.all) == [("n1 +1", 4, 9), ("n2", 2, 12)]
    assert [len(unit.nodes) for unit in found.all] == [2, 1]


def test_what_a_single_call_runs_goes_by_its_modules() -> None:
    """``return self.net(x)`` is one line and one call: a single colour for all of it would be useless."""
    record = capture(Wrapped(), torch.rand(4, 8))
    (found,) = units(record).values()
    line = Wrapped.forward.__code__.co_firstlineno + 1
    assert [(u.tag, u.line, u.column) for u in found.all] == [
        (f"net.{i}", line, None) for i in range(len(Wrapped().net))
    ]
    of = {address[2]: own for address, own in found.of.items() if address[1] == "forward"}
    assert (of["addmm"], of["tanh"], of["sigmoid"]) == ((0,), (1,), (2,))


def test_own_nodes_of_the_module_that_is_called_are_a_part() -> None:
    nodes = tuple(
        Node(f"n{i}", "call_function", "f", frames=(at(5, 3, 9),), module=module)
        for i, module in enumerate(("up.body.left.0", "up.body", "up.body.left.1", "up.body", "up.body.1"))
    )
    (found,) = units(with_nodes(nodes)).values()
    assert [(u.tag, [address[2] for address in u.nodes]) for u in found.all] == [
        ("left", ["n0", "n2"]),
        ("n3 +1", ["n1", "n3"]),
        ("body.1", ["n4"]),
    ]
    (one,) = units(with_nodes(nodes[1:2] + nodes[3:4])).values()
    assert spans(one.all) == [("n3 +1", 3, 9)], "one part is the call itself"


def test_lines_of_two_files_say_which() -> None:
    other = dataclasses.replace(at(3), file="/home/ada/model.py")
    (found,) = units(with_columns([other, at(5)])).values()
    assert [unit.tag for unit in found.all] == ["example:5", "model:3"], "what is shown first comes first"


def test_lines_of_two_cells_of_a_notebook_say_in_which_function() -> None:
    cells = [dataclasses.replace(at(n), file=f"/tmp/ipykernel_7/{n}28.py", function=f"f{n}") for n in (2, 4)]
    (found,) = units(with_columns(cells)).values()
    assert [unit.tag for unit in found.all] == ["f2:2", "f4:4"], "the file is but a number"


def test_a_call_that_takes_all_of_its_line_has_the_rest_of_it() -> None:
    (found,) = units(with_columns([at(5, 4, 9), at(5)])).values()
    assert spans(found.all) == [("n0", 4, 9), ("n1", 0, None)]


def test_a_method_is_run_by_the_modules_whose_own_nodes_are_in_it() -> None:
    """By hand: two layers, each with an inner module from torch."""
    shown = samples.sample()
    graph = shown.compilations[0].graphs["dynamo"]
    text = "def forward(self, x):\n    x = self.linear(x)\n    return x + 1\n"
    source = Source("layers.py", 5, "Layer.forward", text)

    def with_nodes(*modules: tuple[str, str]) -> Record:
        nodes = tuple(
            dataclasses.replace(
                graph.nodes[1], name=f"n{i}", module=module, module_type=kind,
                frames=(Frame("layers.py", 6, "forward"),),
            )
            for i, (module, kind) in enumerate(modules)
        )  # fmt: skip
        stages = (dataclasses.replace(graph, nodes=nodes),)
        made = dataclasses.replace(shown.compilations[0], stages=stages)
        return dataclasses.replace(shown, sources=(source,), compilations=(made,))

    both = [("a.0", "Layer"), ("a.0.linear", "Linear"), ("a.1", "Layer"), ("a.1.linear", "Linear")]
    assert instances(with_nodes(*both)) == {source: ("a.0", "a.1")}
    assert instances(with_nodes(*both[:2])) == {}, "one alone is no number"
    assert instances(with_nodes(*both, ("b.linear", "Linear"))) == {}, (
        "another ran it, of which nothing is known"
    )
    assert instances(with_nodes(*both, ("b", "Heir"))) == {}, "so may a class that inherits it"


class Idle(torch.nn.Module):
    """Runs modules from one line, two of which compute nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, 8),
            torch.nn.Dropout(0.0),
            torch.nn.Tanh(),
            torch.nn.Identity(),
            torch.nn.Sigmoid(),
        )

    def forward(self, x: torch.Tensor) -> Any:
        return self.net(x)


@pytest.mark.parametrize("training", [True, False])
def test_what_nothing_is_left_of_is_no_unit(training: bool) -> None:
    (found,) = units(capture(Idle().train(training), torch.rand(4, 8))).values()
    assert [unit.tag for unit in found.all] == ["net.0", "net.2", "net.4"]


@columns
def test_the_calls_of_the_only_line_that_something_is_left_of_are_units() -> None:
    def program(x: torch.Tensor) -> Any:
        torch.cos(x)
        x = torch.nn.functional.dropout(x, 0.0)
        return torch.sin(x) * 2

    whole = capture(program, torch.rand(8, requires_grad=True))
    (found,) = units(whole).values()
    assert [unit.tag for unit in found.all] == ["sin", "mul"]
    (made,) = whole.compilations
    traced = dataclasses.replace(
        made, stages=tuple(s for s in made.stages if getattr(s, "key", "") == "dynamo")
    )
    (alone,) = units(dataclasses.replace(whole, compilations=(traced,))).values()
    assert len(alone.all) > 1 and all(unit.column is None for unit in alone.all), (
        "of what came of it, nothing is known"
    )


def test_a_kernel_is_not_of_the_line_whose_view_it_reads_through() -> None:
    seen = capture(through_views, torch.rand(4, 6, 8), torch.rand(8, 5))
    found = units(seen)["0/0"]
    first = through_views.__code__.co_firstlineno
    product, _, sine, *_ = (unit.line - first for unit in found.all)
    assert (product, sine) == (1, 3)
    code = seen.compilations[0].code["inference"]
    of = {
        kernel.name: {found.all[i].line - first for i in found.of["0/0", code.key, kernel.name]}
        for kernel in code.kernels
    }
    assert {1} in of.values() and {3} in of.values(), of
    assert not any({1, 3} <= lines or 2 in lines for lines in of.values()), of
    view = next(node.name for node in seen.compilations[0].graphs["inference"].nodes if node.kind == "view")
    assert found.of["0/0", "inference", view], "a node that is a view keeps its colour"
