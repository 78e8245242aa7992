"""The ledger on small records made by hand, in which every figure can be counted."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import pytest

from compile_lens.measures.ledger import ROW_FIGURES, AtLeast, Figure, Row, add, counts, ledger
from compile_lens.record.capture import Environment, Options
from compile_lens.record.compilation import Compilation, EagerOp, Stage
from compile_lens.record.graph import Graph, Node, Ref
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture

ENVIRONMENT = Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", "cpp")


def node(
    name: str, kind: str = "pointwise", reads: int | None = 4, writes: int | None = 2, **more: object
) -> Node:
    compute = kind not in ("view", "input", "output", "nop", "allocation")
    return Node(name, "call_function", name, kind, compute, reads=reads, writes=writes, **more)  # type: ignore[arg-type]


def phase(
    name: str, aten: int = 3, loops: int = 2, groups: int = 1, launches: tuple[int, ...] = (7,)
) -> tuple[Stage, ...]:
    """The stages of one phase: ``aten`` operators of 6 bytes, and nodes that do not count."""
    operators = [node(f"op{i}") for i in range(aten)]
    # Nodes that are drawn beside loops and groups: they do no work, and move no bytes.
    ends = [
        Node("x", "placeholder", "x", "input"),
        Node("out", "output", "out"),
        Node("n", "nop", "n", "nop"),
    ]
    extra = [node("x", "input"), node("view", "view", 100, 100), node("output", "output")]
    return (
        Graph(name, "", "joint", (*extra, *operators)),
        Graph("loops", name, f"{name}.post_grad", (*ends, *(node(f"buf{i}") for i in range(loops)))),
        Graph(
            "groups",
            name,
            f"{name}.loops",
            (*ends, *(node(f"g{i}", reads=3, writes=1) for i in range(groups))),
        ),
        Code(
            name,
            "",
            "generated only",
            "cpu",
            (Kernel("k", name, "cpp", "pointwise", "", launch_lines=launches),),
        ),
    )


def compilation(
    stages: tuple[Stage, ...], cid: str = "0/0", eager: tuple[EagerOp, ...] | None = ()
) -> Compilation:
    return Compilation(
        cid, "f", "f.py", 1, stages, eager=eager, eager_note="" if eager is not None else "print"
    )


def capture(*compilations: Compilation, nothing: str = "") -> Capture:
    return Capture("f", ENVIRONMENT, compilations=compilations, nothing_compiled=nothing)


TRAINING = (EagerOp("forward", "sin", 2), EagerOp("forward", "add", 1), EagerOp("backward", "mul", 4))


def test_every_column_of_both_phases_and_their_sum() -> None:
    stages = phase("forward") + phase("backward", aten=5, loops=3, groups=2, launches=(1, 2, 3))
    found = ledger(capture(compilation(stages, eager=TRAINING)))
    assert found.forward.figures == (3, 3, 2, 1, 1, 18, 4)
    assert found.backward.figures == (4, 5, 3, 2, 3, 30, 8)
    assert found.total.figures == (7, 8, 5, 3, 4, 48, 12)
    assert found.total.name == "both"
    assert [row.name for row in found.rows] == ["forward", "backward", "both"]
    assert not found.forward.notes + found.backward.notes + found.total.notes


def test_counts_are_measured_and_bytes_are_modelled_also_in_sums() -> None:
    found = ledger(capture(compilation(phase("forward") + phase("backward"), eager=TRAINING)))
    for row in found.rows:
        for column, figure in zip(ROW_FIGURES, row.figures, strict=True):
            assert figure is not None and figure.basis == ("modelled" if "bytes" in column else "measured")


def test_an_inference_graph_has_no_forward_and_no_backward() -> None:
    eager = (EagerOp("inference", "sin", 1),)
    found = ledger(
        capture(compilation((*phase("inference"), Missing("backward", "inference graph")), eager=eager))
    )
    assert found.inference.figures == (1, 3, 2, 1, 1, 18, 4)
    assert found.total.figures == found.inference.figures
    assert found.total.name == "total"
    assert [row.name for row in found.rows] == ["inference", "total"]
    for row in (found.forward, found.backward):
        assert not row.exists and set(row.figures) == {None}
        assert row.notes == (f"no {row.name} graph",)


def test_operators_in_subgraphs_count() -> None:
    inner = Graph("inference", "", "", (node("sin"),))
    body = Graph("inference", "", "", (node("cos"), node("view", "view")), subgraphs=(("inner", inner),))
    graph = Graph(
        "inference", "", "dynamo", (node("x", "input"), node("cond", "control")), subgraphs=(("body", body),)
    )
    found = ledger(capture(compilation((graph,))))
    assert found.inference.aten_ops == 3
    assert found.inference.bytes_before == 12  # the traffic of a `cond` is that of its bodies


def test_a_missing_stage_gives_none_and_its_reason_never_zero() -> None:
    aten, loops, *_ = phase("inference")
    stages = (
        aten,
        loops,
        Missing("inference.groups", "cache hit"),
        Missing("inference.code", "no C++ compiler"),
    )
    found = ledger(capture(compilation(stages)))
    row = found.inference
    assert (row.groups, row.launches, row.bytes_after) == (None, None, None)
    assert (row.aten_ops, row.loops, row.bytes_before) == (3, 2, 18)
    assert row.notes == (
        "inference groups, bytes after: stage inference.groups was not seen: cache hit",
        "inference launches: stage inference.code was not seen: no C++ compiler",
    )
    assert found.total.launches is None and found.total.notes == row.notes


def test_stages_of_a_phase_that_was_not_seen_at_all_say_why() -> None:
    stages = (*phase("forward"), Missing("backward", "backend is eager"))
    found = ledger(capture(compilation(stages, eager=None)))
    assert found.backward.exists and set(found.backward.figures) == {None}
    assert len(found.backward.notes) == 2 and "backend is eager" in found.backward.notes[1]
    assert found.forward.eager_ops is None and "forward eager ops: print" in found.forward.notes
    assert [str(f) for f in found.total.figures] == [
        "None",
        *(f"≥ {n} (1 of 2 graphs)" for n in (3, 2, 1, 1, 18, 4)),
    ]
    assert found.total.launches != 1, "half of a sum is not a sum"
    assert [row.name for row in found.rows] == ["forward", "backward", "both"]


def test_a_backward_that_was_declined_is_no_part_of_the_sum() -> None:
    stages = (*phase("forward"), Missing("backward", "backward=False"))
    made = capture(compilation(stages, eager=TRAINING))
    found = ledger(dataclasses.replace(made, options=Options(backward="no")))
    assert not found.backward.exists and found.backward.notes == ("no backward graph: backward=False",)
    assert found.total.figures == found.forward.figures == (3, 3, 2, 1, 1, 18, 4)
    assert found.total.name == "total" and not found.total.notes


def test_no_eager_operators_of_a_phase_that_was_not_seen_is_not_zero() -> None:
    stages = (*phase("forward"), Missing("backward", "it never ran"))
    found = ledger(capture(compilation(stages, eager=TRAINING[:2])))
    assert found.backward.eager_ops is None
    assert found.backward.notes == (
        "backward eager ops, ATen ops, loops, groups, launches, bytes before, bytes after: "
        "stage backward was not seen: it never ran",
    )


def test_a_stage_that_nobody_speaks_of_is_said_to_be_absent() -> None:
    found = ledger(capture(compilation(phase("inference")[:1])))
    assert found.inference.launches is None
    assert "inference launches: stage inference.code is not in the record" in found.inference.notes
    assert found.inference.eager_ops == 0


def test_unknown_bytes_are_counted_and_named() -> None:
    nodes = (node("a"), node("b", reads=None), node("c", writes=None), node("v", "view", None, None))
    found = ledger(capture(compilation((Graph("inference", "", "", nodes),))))
    assert found.inference.aten_ops == 3 and found.total.bytes_before == found.inference.bytes_before
    known = ledger(capture(compilation((Graph("inference", "", "", nodes[:1]),)))).inference.bytes_before
    assert known > 0 and str(found.inference.bytes_before) == f"≥ {known:,}"
    assert (
        "inference bytes before: the bytes of 2 of 3 ATen operators are unknown (b, c)"
        in found.inference.notes
    )


def test_a_graph_without_work_counts_zero() -> None:
    found = ledger(capture(compilation(phase("inference", 0, 0, 0, ()))))
    assert found.inference.figures == (0, 0, 0, 0, 0, 0, 0)


def test_a_graph_that_is_known_to_be_empty_counts_zero_though_nothing_was_lowered() -> None:
    ends = Graph(
        "backward", "", "joint", (Node("tangents_1", "placeholder", "t", "input"), Node("o", "output", "o"))
    )
    nothing = "the graph has no operation: there is nothing to lower"
    gone = (Missing(f"backward.{stage}", nothing) for stage in ("post_grad", "loops", "groups", "code"))
    found = ledger(capture(compilation((*phase("forward"), ends, *gone), eager=TRAINING[:2])))
    assert found.backward.figures == (0,) * 7 and not found.backward.notes
    assert found.total.figures == found.forward.figures


def test_graphs_sum_and_each_stands_by_itself() -> None:
    first = compilation(phase("inference"), "0/0", (EagerOp("inference", "sin", 2),))
    second = compilation(phase("inference", launches=(1, 2)), "1/0", (EagerOp("inference", "cos", 5),))
    found = ledger(capture(first, second))
    assert found.inference.figures == (7, 6, 4, 2, 3, 36, 8)
    assert [name for name, _ in found.graphs] == ["0/0", "1/0"]
    assert [part.total.launches for _, part in found.graphs] == [1, 2]


def test_one_unknown_graph_leaves_what_is_known_of_the_sum_and_is_named() -> None:
    second = compilation((*phase("inference")[:3], Missing("inference.code", "cache hit")), "1/0")
    found = ledger(capture(compilation(phase("inference")), second))
    launches = found.total.launches
    assert isinstance(launches, AtLeast) and str(launches) == "≥ 1 (1 of 2 graphs)" and found.total.loops == 4
    assert (launches.least, launches.most, launches.known, launches.graphs) == (1, None, 1, 2)
    with pytest.raises(TypeError):
        assert launches <= 1  # type: ignore[operator]
    assert [n for n in found.total.notes if "launches" in n] == [
        "1/0: inference launches: stage inference.code was not seen: cache hit"
    ]


def test_a_graph_that_lacks_a_phase_does_not_spoil_the_sum_of_the_others() -> None:
    training = compilation(phase("forward") + phase("backward"), "0/0", TRAINING)
    inference = compilation(phase("inference"), "1/0", ())
    found = ledger(capture(training, inference))
    assert found.backward.launches == 1
    assert found.total.launches == 3 and found.total.name == "total"
    assert [row.name for row in found.rows] == ["forward", "backward", "inference", "total"]


def test_nothing_compiled_has_no_rows_and_says_so() -> None:
    found = ledger(capture(nothing="no tensor operation was seen"))
    assert found.rows == ()
    assert found.total.notes == ("no tensor operation was seen",)
    assert set(found.total.figures) == {None}


def test_a_graph_that_failed_before_aot_still_counts_what_eager_would_do() -> None:
    graph = Graph("dynamo", "", "", (node("sin"),))
    found = ledger(capture(compilation((graph,), eager=(EagerOp("forward", "sin", 1),))))
    assert found.forward.eager_ops == 1 and found.forward.aten_ops is None


def test_to_dict_is_json_with_numbers_bases_and_notes() -> None:
    stages = (*phase("forward"), Missing("backward", "backend is eager"))
    data = json.loads(json.dumps(ledger(capture(compilation(stages))).to_dict()))
    assert data["forward"]["launches"] == 1 and data["forward"]["basis"]["bytes_after"] == "modelled"
    assert data["backward"]["launches"] is None and "launches" not in data["backward"]["basis"]
    assert data["inference"] is None
    assert data["graphs"]["0/0"]["forward"]["loops"] == 2
    assert list(data["forward"]) == ["name", *ROW_FIGURES, "basis", "notes"]
    assert data["total"]["launches"] is None
    known = data["total"]["at_least"]["launches"]
    assert (known["text"], known["least"], known["most"]) == ("≥ 1 (1 of 2 graphs)", 1, None)
    assert (known["known_graphs"], known["graphs"]) == (1, 2)


def test_a_figure_is_an_int_that_keeps_its_basis() -> None:
    figure = Figure(5, "modelled")
    assert figure == 5 and figure + 1 == 6 and f"{figure:,}" == "5" and hash(figure) == hash(5)
    assert type(figure + 1) is int
    assert add([Figure(1), Figure(2)]).basis == "measured"
    assert add([Figure(1), figure]).basis == "modelled" and add([Figure(1), figure]) == 6
    assert add([]) == 0 and add([]).basis == "measured"
    for other in (copy.deepcopy(figure), pickle.loads(pickle.dumps(figure))):
        assert other == 5 and other.basis == "modelled"


def test_rows_are_plain_values() -> None:
    assert Row("x", Figure(1)) == Row("x", Figure(1))
    with pytest.raises(AttributeError):
        Row("x").launches = Figure(3)  # type: ignore[misc]
    assert node("a", args=(Ref("b"),)).inputs == ("b",)


def test_what_a_figure_counts_is_told_of_each_node() -> None:
    """Three operators, two loops, one group; the nodes drawn beside them count in no figure."""
    graphs = [stage for stage in phase("inference") if isinstance(stage, Graph)]
    counted = [[node.name for node in graph.nodes if counts(graph, node)] for graph in graphs]
    assert counted == [["op0", "op1", "op2"], ["buf0", "buf1"], ["g0"]]
    bare = Graph(
        "dynamo", "", "", (Node("x", "placeholder", "x", "input"), node("view", "view"), node("sin"))
    )
    assert [node.name for node in bare.nodes if counts(bare, node)] == ["view", "sin"], "its calls"
    assert not counts(bare, node("cos"), "body/"), "a call of a body is none of the graph's own"
