"""Records far longer or deeper than those of real programs are refused when opened, or shown by every view.

``LONG`` nodes in a row exceed Python's recursion limit, so that a recursion over them would fail.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

import mutations
import pytest
import samples

from compile_lens.errors import RecordError
from compile_lens.layout import engine
from compile_lens.measures.control_flow import aten
from compile_lens.record.figures import Count, count
from compile_lens.record.graph import Graph, Node, Ref
from compile_lens.results.capture import Capture

LONG = 1200
HUGE = 200_000


@pytest.fixture(autouse=True)
def quick_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run", mutations.asked_once(engine.run))


def changed(key: str, change: Callable[[dict[str, Any]], Any]) -> str:
    """Return the JSON text of the sample in which ``change`` edits the graph ``key``, or each graph for ``""``."""
    raw = json.loads(samples.sample().to_json())
    number = 0
    for stage in raw["compilations"][0]["stages"]:
        name = f"{stage.get('phase', '')}.{stage['stage']}".strip(".") if stage["is"] == "Graph" else None
        if name is not None and key in ("", name):
            change(stage)
            number += 1
    assert number
    return json.dumps(raw)


def nodes(
    count: int, module: Callable[[int], str] = lambda i: "", circle: bool = False
) -> list[dict[str, Any]]:
    """Return nodes in a row, each of which takes the one before it, and comes from one of that name."""
    tensor = {"dtype": "float32", "shape": [1000], "stride": [1], "device": "cpu", "nbytes": 4000}
    rows = []
    for i in range(count):
        before = f"n{(i - 1) % count}"
        node: dict[str, Any] = {"name": f"n{i}", "op": "call_function", "target": "aten.sin.default"}
        node |= {"kind": "pointwise", "compute": True, "outputs": [tensor], "origins": [before]}
        node |= {"args": [{"is": "Ref", "name": before}]} if i or circle else {}
        node |= {"frames": [{"file": samples.FILE, "line": 5, "function": "f"}], "module": module(i)}
        rows.append(node)
    return rows


def bodies(depth: int) -> str:
    """Return a graph in a graph in a graph, as JSON text, which ``json.dumps`` itself could not finish."""
    text = changed("dynamo", lambda graph: graph.update(subgraphs=["here"]))
    body = '["body", {"stage": "dynamo", "phase": "", "before": "", "nodes": [], "subgraphs": ['
    return text.replace('"here"', body * depth + "]}]" * depth)


def circle_of_stages(graph: dict[str, Any]) -> None:
    graph["before"] = "backward.groups"


def circle_within(graph: dict[str, Any]) -> None:
    graph["before"] = ".".join(filter(None, (graph.get("phase", ""), graph["stage"])))
    graph["nodes"] = nodes(60)


def wide(graph: dict[str, Any]) -> None:
    """Set bytes and elements whose product no float can represent."""
    for node in graph["nodes"]:
        for tensor in node.get("outputs", ()):
            tensor.update(shape=[2**63] * 40, stride=[2**63] * 40, nbytes=2**64 - 1)


RECORDS: dict[str, Callable[[], str]] = {
    "a chain": lambda: changed("joint", lambda g: g.update(nodes=nodes(LONG))),
    "a chain of groups": lambda: changed("forward.groups", lambda g: g.update(nodes=nodes(LONG))),
    "a cycle": lambda: changed("joint", lambda g: g.update(nodes=nodes(LONG, circle=True))),
    "stages in a circle": lambda: changed("dynamo", circle_of_stages),
    "stages that come from themselves": lambda: changed("", circle_within),
    "modules in modules": lambda: changed(
        "joint", lambda g: g.update(nodes=nodes(30, lambda i: ".".join(["m"] * 300 * (i + 1))))
    ),
    "a module path of 10,000": lambda: changed(
        "joint", lambda g: g.update(nodes=nodes(12, lambda i: ".".join(["m"] * 10_000)))
    ),
    "bodies in bodies": lambda: bodies(40),
    "sizes beyond a float": lambda: changed("", wide),
}


@pytest.mark.full
@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.cases(full=4)
def test_is_shown(name: str) -> None:
    text = RECORDS[name]()
    Capture.from_json(text)
    assert mutations.bare(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(bodies(200), id="200 bodies"),
        pytest.param(bodies(5000), id="5,000 bodies"),
        pytest.param(bodies(200_000), id="200,000 bodies"),
        pytest.param("[" * HUGE + "]" * HUGE, id="lists alone"),
        pytest.param(
            changed("dynamo", lambda g: g["nodes"][0].update(args=["here"])).replace(
                '"here"', "[" * 400 + "]" * 400
            ),
            id="an argument",
        ),
    ],
)
def test_nesting_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        Capture.from_json(text)


def long(count: int, circle: bool) -> str:
    return changed("joint", lambda g: g.update(nodes=nodes(count, circle=circle)))


def seconds(count: int, circle: bool) -> dict[str, float]:
    """Return the CPU time of opening a record and of each of its views, without other processes and old garbage."""
    text, taken = long(count, circle), {}

    def timed(name: str, made: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = made()
        taken[name] = time.process_time() - start
        return result

    gc.collect()
    gc.disable()
    try:
        capture = timed("opening", lambda: Capture.from_json(text))
        for name, view in mutations.views(capture, drawn=False).items():
            timed(name, view)
    finally:
        gc.enable()
    return taken


@pytest.mark.exhaustive
@pytest.mark.parametrize("circle", [False, True], ids=["chain", "cycle"])
def test_time_grows_as_the_nodes_do(circle: bool) -> None:
    """Four times the nodes take about four times as long; code that compares all pairs would take sixteen times."""
    few, many = seconds(3_000, circle), seconds(12_000, circle)
    grown = {name: (few[name], taken) for name, taken in many.items() if taken > 10 * few[name] + 0.2}
    assert len(many) > 15 and many["json"] > 0.1 and grown == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("circle", [False, True], ids=["chain", "cycle"])
def test_two_hundred_thousand_nodes(circle: bool) -> None:
    """It takes minutes, mostly for reading: everything but the drawings, whose time ``test_layout`` bounds."""
    assert mutations.bare(long(HUGE, circle), drawn=False) == {}


def test_many_choices_beside_a_loop_are_said_in_short_time() -> None:
    """Each choice doubles the possible numbers, so they are not listed one by one."""
    choices = [(Count(2**i), Count(0)) for i in range(60)]
    loop = (Count(iterations=(Count(1),)), Count(0))
    assert "per iteration" in count(either=[*choices, loop]).text()


def test_a_body_that_is_called_twice_in_each_of_many_is_summed_once() -> None:
    control = {"kind": "control", "args": (Ref("body"),)}
    graph = Graph("dynamo", "", "", (Node("sin", "call_function", "aten.sin.default", "pointwise"),))
    for _ in range(40):
        calls = [Node(n, "call_function", "higher_order.invoke_subgraph", **control) for n in "ab"]
        graph = Graph(
            "dynamo", "", "", (Node("body", "get_attr", "body"), *calls), subgraphs=(("body", graph),)
        )
    assert aten(graph, lambda node: node.name == "sin").fixed == 2**40
