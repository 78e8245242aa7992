"""Drawings that open box by box: contents of boxes, sharing of layouts, and the cost of a bad graph."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from samples_graph import F32, HOSTILE, call, chain, encoder, given, hostile, result, sin_cos

from compile_lens.errors import LayoutError, UsageError
from compile_lens.layout import Nest, engine, nest_all
from compile_lens.layout.fold import fold
from compile_lens.layout.text import columns
from compile_lens.record.graph import Frame, Graph, Node, Ref


def bodies(nest: Nest, drawing: int = 0) -> list[int]:
    """Return numbers of all bodies of a drawing in its folded state, the outermost first."""
    numbers = [nest.drawings[drawing].folded]
    for number in numbers:
        numbers += [box.inside for box in nest.bodies[number].boxes if box.inside >= 0]
    return numbers


def names(nest: Nest, body: int) -> list[str]:
    return [box.name for box in nest.bodies[body].boxes]


def opened(nest: Nest, *path: str, drawing: int = 0) -> int:
    """Return the body inside the box that is reached by these names."""
    body = nest.drawings[drawing].folded
    for name in path:
        (body,) = [box.inside for box in nest.bodies[body].boxes if box.name == name]
    return body


def training(layers: int) -> Graph:
    """Return a graph like a joint one: modules in order, then in reverse, each with a sum of gradients inside."""
    step, block = Frame("m.py", 3, "forward"), Frame("m.py", 9, "forward")
    nodes = [given("x"), given("tangent")]

    def work(name: str, module: str, *inputs: str) -> None:
        nodes.append(replace(call(name, "aten.mul.Tensor", *inputs, module=module), frames=(step, block)))

    for layer in range(layers):
        for part in ("norm", "norm", "up", "up"):
            work(f"fw{len(nodes)}", f"net.layers.{layer}.{part}", nodes[-1].name if layer else "x")
    nodes.append(replace(call("loss", "aten.sum.default", nodes[-1].name), frames=(step,)))
    last = "tangent"
    for layer in reversed(range(layers)):
        for part in ("up", "up", "", "norm", "norm"):
            name = f"bw{len(nodes)}"
            work(name, f"net.layers.{layer}.{part}" if part else "", last, f"fw{2 + 4 * layer}")
            last = name
    return Graph("joint", "", "", (*nodes, result("loss", last)))


def without_modules(graph: Graph) -> Graph:
    return replace(graph, nodes=tuple(replace(n, module="", module_type="") for n in graph.nodes))


def follow(graph: Graph, nest: Nest, drawing: int, limit: int) -> None:
    """Compare the complete folded drawing of ``graph`` with the graph itself."""
    users: dict[str, list[str]] = {n.name: [] for n in graph.nodes}
    for node in graph.nodes:
        for name in node.inputs:
            users[name].append(node.name)
    inputs = {n.name: n.inputs for n in graph.nodes}
    holds = {nest.drawings[drawing].folded: {n.name for n in graph.nodes}}
    seen: set[str] = set()
    for number in bodies(nest, drawing):
        body, layout = nest.bodies[number], nest.layouts[nest.bodies[number].layout]
        assert 1 <= len(body.boxes) == len(layout.boxes) <= limit
        assert len(body.labels) == len(layout.curves) and len(body.stubs) == len(layout.tails)
        owner = {name: i for i, box in enumerate(body.boxes) for name in box.members}
        assert set(owner) == holds[number]
        assert sum(len(box.members) for box in body.boxes) == len(owner)
        for box in body.boxes:
            assert (box.inside >= 0) == (len(box.members) > 1) == (box.kind == "collapsed")
            if box.inside >= 0:
                assert box.name not in seen and box.name not in users
                seen.add(box.name)
                holds[box.inside] = set(box.members)
        flows = {(owner[i], owner[n]) for n in owner for i in inputs[n] if i in owner}
        inner = {(a, b) for a, b in flows if a != b}
        assert all(a < b for a, b in inner), "a cycle between boxes needs an edge against their order"
        at = {name: i for i, name in enumerate(names(nest, number))}
        far: dict[tuple[int, bool], set[str]] = {}
        cut = set()
        for tail, stub in zip(layout.tails, body.stubs, strict=True):
            assert len(set(stub.others)) == len(stub.others)
            far[tail.box, tail.outgoing] = {o for o in stub.others if o not in at}
            cut |= {(tail.box, at[o]) if tail.outgoing else (at[o], tail.box) for o in stub.others if o in at}
        drawn = [(curve.source, curve.target) for curve in layout.curves]
        assert len(set(drawn)) == len(drawn) and not set(drawn) & cut
        assert set(drawn) | cut == inner
        wanted: dict[tuple[int, bool], set[str]] = {}
        for name, box in owner.items():
            for other in inputs[name]:
                if other not in owner:
                    wanted.setdefault((box, False), set()).add(other)
            for other in users[name]:
                if other not in owner:
                    wanted.setdefault((box, True), set()).add(other)
        assert {side: others for side, others in far.items() if others} == wanted


def check_room(nest: Nest) -> None:
    """Assert that nothing overlaps, everything is inside, and every text fits."""
    for layout in nest.layouts:
        rectangles = [*layout.boxes, *(tail.at for tail in layout.tails)]
        for x, y, across, down in rectangles:
            # Graphviz gives five digits, which is less than a tenth of a pixel in a tall drawing.
            assert x >= -1 and y >= -1
            assert x + across <= layout.width + 1 and y + down <= layout.height + 1
        for (x0, y0, w0, h0), (x1, y1, w1, h1) in combinations(rectangles, 2):
            assert x0 + w0 <= x1 or x1 + w1 <= x0 or y0 + h0 <= y1 or y1 + h1 <= y0
    for body in nest.bodies:
        layout = nest.layouts[body.layout]
        for box, (_, _, across, down) in zip(body.boxes, layout.boxes, strict=True):
            assert max(columns(line.text) * 0.6 * line.size for line in box.lines) < across
            assert sum(line.size for line in box.lines) < down
        for stub, tail in zip(body.stubs, layout.tails, strict=True):
            assert max(columns(line) for line in stub.lines) * 0.6 * 9.5 < tail.at[2]
            assert len(stub.lines) * 9.5 < tail.at[3]
        for label, curve in zip(body.labels, layout.curves, strict=True):
            assert bool(label) == (curve.label_at is not None)


# Contents of boxes


def test_modules_open_level_by_level() -> None:
    nest = nest_all([encoder(3)], whole_limit=0)
    assert names(nest, nest.drawings[0].folded) == [
        "encoder.layers.0",
        "encoder.layers.1",
        "encoder.layers.2",
        "output",
    ]
    inner = nest.bodies[opened(nest, "encoder.layers.1")]
    assert [box.name for box in inner.boxes] == [
        f"encoder.layers.1.{part}" for part in ("attn", "norm1", "mlp", "norm2")
    ]
    # Inside a box, names lack its path, and so do the modules of nodes.
    assert [box.lines[0].text for box in inner.boxes] == ["attn", "norm1", "mlp", "norm2"]
    leaf = nest.bodies[opened(nest, "encoder.layers.1", "encoder.layers.1.attn")]
    assert {"attn (Linear)", "encoder.layers.1.attn (Linear)"}.isdisjoint(
        line.text for box in leaf.boxes for line in box.lines
    )
    assert all(len(box.members) == 1 for box in leaf.boxes)


@pytest.mark.parametrize("limit", [2, 7, 60])
@pytest.mark.parametrize(
    "graph",
    [encoder(3), without_modules(encoder(3)), training(6), chain(100), chain(70, module="m.layers.{}.fc")],
    ids=["encoder", "no modules", "training", "chain", "single-node layers"],
)
def test_every_level_holds_every_node_once_and_every_value_leads_somewhere(graph: Graph, limit: int) -> None:
    nest = nest_all([graph], opened=limit, whole_limit=120)
    follow(graph, nest, 0, limit)
    check_room(nest)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Generate well-formed graphs of calls with some modules."""
    nodes: list[Node] = []
    for i in range(draw(st.integers(1, 40))):
        inputs = draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else []
        module = draw(
            st.sampled_from(["", "a", "a.0", "a.1.b", "a.1.c.d", "a.1.c.e", "f", "..", "1.2.3", "x y"])
        )
        source = not inputs and draw(st.booleans())
        op = draw(st.sampled_from(["placeholder", "get_attr"])) if source else "call_function"
        frames = (Frame("m.py", 1, "f"),) * draw(st.integers(0, 2))
        refs = tuple(Ref(f"n{j}") for j in inputs)
        nodes.append(Node(f"n{i}", op, "f", args=refs, module=module, frames=frames, outputs=(F32,)))
    return Graph("dynamo", "", "", tuple(nodes))


@pytest.mark.full
@settings(max_examples=15, deadline=None)
@for_all(st.lists(graphs(), min_size=1, max_size=6), st.integers(2, 12))
def test_any_graphs_are_drawn_without_loss(many: list[Graph], limit: int) -> None:
    nest = nest_all(many, opened=limit, whole_limit=20)
    for index, graph in enumerate(many):
        drawing = nest.drawings[index]
        assert (drawing.whole >= 0) == (len(graph.nodes) <= 20)
        assert drawing.folded >= 0 or drawing.whole >= 0
        if drawing.folded >= 0:
            follow(graph, nest, index, limit)
        if drawing.whole >= 0:
            assert names(nest, drawing.whole) == [n.name for n in graph.nodes]
    check_room(nest)


def test_forward_and_backward_of_a_module_are_two_boxes() -> None:
    nest = nest_all([training(4)])
    assert names(nest, nest.drawings[0].folded) == [
        *(f"net.layers.{i}" for i in range(4)),
        "loss",
        *(f"net.layers.{i} (2)" for i in reversed(range(4))),
        "output",
    ]


def test_a_sum_of_gradients_stays_in_the_module_around_it() -> None:
    graph = training(3)
    nest = nest_all([graph])
    inner = nest.bodies[opened(nest, "net.layers.1 (2)")].boxes
    assert [box.lines[0].text for box in inner] == ["up (2)", inner[1].name, "norm (2)"]
    assert graph[inner[1].name].module == ""
    # Called from elsewhere, it is not counted to the module.
    elsewhere = tuple(n if n.module else replace(n, frames=n.frames[:1]) for n in graph.nodes)
    apart = nest_all([replace(graph, nodes=elsewhere)])
    assert inner[1].name in names(apart, apart.drawings[0].folded)


def test_a_seed_that_takes_nothing_does_not_cut_a_layer_in_two() -> None:
    def layers(*between: Node) -> Nest:
        nodes = [given("x")]
        for layer in range(3):
            for i, part in enumerate(("attn", "attn", "drop", "drop")):
                nodes += between if (layer, i) == (0, 1) else ()
                last = [n.name for n in nodes if n not in between][-1]
                seeds = [n.name for n in between if part == "drop"]
                nodes.append(call(f"{part}{layer}{i}", "f", last, *seeds, module=f"layers.{layer}.{part}"))
        return nest_all([Graph("forward", "", "", (*nodes, result(nodes[-1].name)))])

    whole = ["layers.0", "layers.1", "layers.2", "output"]
    for module in ("", "layers"):
        nest = layers(call("seeds", "inductor_seeds", kind="random", module=module))
        assert names(nest, nest.drawings[0].folded) == ["seeds", *whole]
    # A node with an input stays in place.
    nest = layers(call("seeds", "inductor_seeds", "attn00", kind="random"))
    assert names(nest, nest.drawings[0].folded) != ["seeds", *whole]


def test_one_child_only_is_merged_and_one_node_only_is_a_node() -> None:
    nodes = [given("x")]
    for i in range(12):
        nodes.append(call(f"a{i}", "f", nodes[-1].name, module="top.inner.deep"))
    nodes += [given("w"), call("b", "f", "a11", "w", module="top.single"), call("c", "f", "b")]
    nest = nest_all([Graph("forward", "", "", (*nodes, result("c")))])
    assert names(nest, nest.drawings[0].folded) == ["top", "c", "output"]
    assert names(nest, opened(nest, "top")) == ["top.inner.deep", "w", "b"]
    assert "x" in nest.bodies[opened(nest, "top")].boxes[0].members


@pytest.mark.full
def test_the_one_module_around_all_is_open_from_the_start() -> None:
    nodes = [given("x")]
    for i in range(40):
        nodes.append(call(f"n{i}", "f", nodes[-1].name, module=f"model.block{i // 10}.fc{i // 5 % 2}"))
    graph = Graph("forward", "", "", (*nodes, result("n39")))
    nest = nest_all([graph])
    assert names(nest, nest.drawings[0].folded) == [*(f"model.block{i}" for i in range(4)), "output"]
    # Both of its occurrences, in a training graph.
    assert "net" not in " ".join(names(nest_all([training(4)], opened=6), 0)).split()
    deep = nest_all([encoder(100)])
    start = deep.drawings[0].folded
    assert names(deep, start)[0] == "encoder.layers.0 … encoder.layers.9"
    assert deep.bodies[start].boxes[0].lines[0].text == "encoder.layers.0 … encoder.layers.9"
    assert len(names(deep, start)) == 11
    assert names(deep, deep.bodies[start].boxes[1].inside) == [f"encoder.layers.{i}" for i in range(10, 20)]


def test_plain_nodes_give_way_to_modules_where_room_is_short() -> None:
    nodes = [given("x")]
    for part in range(6):
        nodes += [call(f"p{part}_{i}", "f", "x") for i in range(15)]
        nodes += [call(f"m{part}_{i}", "f", "x", module=f"part{part}") for i in range(5)]
    nest = nest_all([Graph("forward", "", "", tuple(nodes))])
    assert names(nest, nest.drawings[0].folded) == [
        name
        for i in range(6)
        for name in (f"{'p' if i else 'x'}{f'{i}_0' if i else ''} … p{i}_14", f"part{i}")
    ]


def test_modules_can_be_given_by_name() -> None:
    graph = encoder(2, width=24)
    bare, paths = without_modules(graph), {n.name: n.module for n in graph.nodes}
    by_name, own = nest_all([bare], modules=[paths]), nest_all([graph])
    assert [names(by_name, b) for b in bodies(by_name)] == [names(own, b) for b in bodies(own)]
    assert nest_all([graph], modules=[None]) == own
    nowhere = nest_all([graph], modules=[{}], opened=20)
    assert names(nowhere, nowhere.drawings[0].folded)[0].startswith("primals_0 … ")
    # The class of a module is known from another stage.
    both = nest_all([graph, bare], modules=[None, paths])
    for nest, drawing, known in ((by_name, 0, False), (both, 1, True)):
        leaf = nest.bodies[opened(nest, "encoder.layers.0", drawing=drawing)].boxes[0]
        assert ("Linear" in [line.text for line in leaf.lines]) == known


# Drawn and omitted items


def test_forms_of_small_and_large_graphs() -> None:
    small, middle, large, empty = nest_all(
        [sin_cos(), encoder(1, width=30), chain(400), Graph("dynamo", "", "", ())]
    ).drawings
    assert small.whole >= 0 and (small.folded, small.note) == (-1, "")
    assert middle.whole >= 0 and middle.folded >= 0 and middle.note == ""
    assert large.whole == -1 and large.folded >= 0
    assert large.note == "402 nodes are more than the 200 that are drawn at once"
    assert (empty.whole, empty.folded, empty.note) == (-1, -1, "there is no node to draw")


def test_a_graph_without_a_whole_form_always_has_the_other() -> None:
    drawing = nest_all([sin_cos()], whole_limit=0).drawings[0]
    assert drawing.whole == -1 and drawing.folded >= 0


def test_nothing_to_fold_is_not_folded() -> None:
    nodes = [given("x"), *(call(f"n{i}", "f", "x", module=f"m{i}") for i in range(20))]
    assert nest_all([Graph("forward", "", "", tuple(nodes))]).drawings[0].folded == -1


def test_stubs_name_the_far_nodes() -> None:
    nest = nest_all([training(3)])
    number = opened(nest, "net.layers.1 (2)")
    body, layout = nest.bodies[number], nest.layouts[nest.bodies[number].layout]
    # The first box takes the gradient and a saved value; both are in other boxes of the outermost body.
    incoming = [s for s, t in zip(body.stubs, layout.tails, strict=True) if t.box == 0 and not t.outgoing]
    assert [s.others for s in incoming] == [("fw6", "bw19")], "in their order"
    assert incoming[0].lines == ("← from fw6", "       bw19")


def test_long_edges_inside_of_a_body_are_cut() -> None:
    nodes = [given("x")]
    for i in range(58):
        nodes.append(call(f"n{i}", "f", nodes[-1].name, *(["x"] if i == 57 else []), module="m"))
    nodes += [call(f"o{i}", "f", "n57", module="o") for i in range(3)]
    nest = nest_all([Graph("forward", "", "", tuple(nodes))])
    stubs = [stub.others for stub in nest.bodies[opened(nest, "m")].stubs]
    assert stubs == [("n57",), ("x",), ("o0", "o1", "o2")]


def test_an_argument_from_nowhere_is_reported() -> None:
    graph = Graph("dynamo", "", "", (Node("a", "call_function", "f", args=(Ref("gone"),)),))
    assert nest_all([graph]).drawings[0].note == ("an argument names a node outside of this graph: not drawn")


def test_a_graph_with_a_cycle_is_drawn() -> None:
    nodes = [
        Node(f"n{i}", "call_function", "f", args=(Ref(f"n{(i + 1) % 20}"), Ref(f"n{i}"))) for i in range(20)
    ]
    nest = nest_all([Graph("loops", "forward", "", tuple(nodes))], opened=6)
    assert nest.drawings[0].whole >= 0 and nest.drawings[0].folded >= 0


@settings(max_examples=15, deadline=None)
@for_all(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=20, unique=True))
def test_any_names(texts: list[str]) -> None:
    nodes = [Node(n, "call_function", n, kind=n, module=n, module_type=n, outputs=(F32,)) for n in texts]
    nodes.append(Node("".join(texts) + "!", "output", "output", args=tuple(Ref(n) for n in texts)))
    graph = Graph("dynamo", "", "", tuple(nodes))
    nest = nest_all([graph], whole_limit=0, opened=4)
    follow(graph, nest, 0, 4)
    check_room(nest)


def test_hostile_names_are_kept_and_fit() -> None:
    graph = hostile()
    inside = replace(graph, nodes=tuple(replace(n, module=f"{HOSTILE[3]}.{HOSTILE[8]}") for n in graph.nodes))
    nest = nest_all([graph, inside], opened=4)
    for index, one in enumerate((graph, inside)):
        assert names(nest, nest.drawings[index].whole) == [n.name for n in one.nodes]
        follow(one, nest, index, 4)
    check_room(nest)


# One layout for all equal boxes


def test_twelve_equal_layers_share_their_layouts() -> None:
    nest = nest_all([encoder(12)])
    assert len(nest.bodies) == 1 + 12 + 48
    layers = [nest.bodies[opened(nest, f"encoder.layers.{i}")] for i in range(12)]
    # The first and the last one have other neighbours, so they may have other stubs.
    assert len({body.layout for body in layers[1:-1]}) == 1
    assert len(nest.layouts) <= 12
    check_room(nest)


def test_spans_of_equal_layers_hold_the_same_though_the_first_has_an_input_and_a_filled_tensor_more() -> None:
    nodes, last = [given("x")], "x"
    for layer in range(3):
        for step in range(57):
            module, name = f"layers.{layer}", f"op{step}_{layer}"
            more = ["x"] * (step == 50)
            if step == 30:
                if layer == 0:
                    nodes.append(call("full", "aten.full.default", module=module))
                more = ["full"]
            nodes.append(call(name, f"aten.op{step}.default", last, *more, module=module))
            last = name
    nest = nest_all([Graph("forward", "", "", (*nodes, result(last)))], opened=20)
    cut = []
    for layer in range(3):
        boxes = nest.bodies[opened(nest, f"layers.{layer}")].boxes
        assert len(boxes) > 4
        cut.append([[m.split("_")[0] for m in box.members if m not in ("x", "full")] for box in boxes])
    assert cut[0] == cut[1] == cut[2]


def test_a_much_longer_name_does_not_widen_the_others() -> None:
    def named(name: str) -> Graph:
        return Graph("forward", "", "", (given("x"), call(name, "f", "x"), result(name)))

    short, longer, longest = nest_all([named("n"), named("n_1234"), named("n" * 30)]).bodies
    assert short.layout == longer.layout != longest.layout


def test_stages_that_differ_in_names_only_share_all_layouts() -> None:
    graph = encoder(3, width=40)

    def renamed(node: Node) -> Node:
        target = f"{node.name}_" if node.op == "placeholder" else node.target
        return replace(node, name=f"{node.name}_", target=target, args=tuple(again(a) for a in node.args))

    def again(value: object) -> object:
        if isinstance(value, Ref):
            return Ref(f"{value.name}_")
        return tuple(again(v) for v in value) if isinstance(value, tuple) else value

    other = replace(graph, nodes=tuple(renamed(n) for n in graph.nodes))
    both = nest_all([graph, other], whole_limit=0)
    assert len(both.layouts) == len(nest_all([graph], whole_limit=0).layouts)
    one, two = (([both.bodies[b].layout for b in bodies(both, i)]) for i in (0, 1))
    assert one == two


def test_graphviz_is_started_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = engine.run, []

    def run(dots: Sequence[str], timeout: float) -> list[engine.Answer]:
        asked.append(len(dots))
        return real(dots, timeout)

    monkeypatch.setattr(engine, "run", run)
    nest = nest_all([encoder(3), training(5), chain(20), sin_cos()], whole_limit=80)
    assert len(asked) == 2
    # Layouts of the outermost bodies come first; these are requested separately.
    assert len(nest.layouts) <= sum(asked) < len(nest.bodies)


@pytest.mark.full
def test_the_same_graphs_give_the_same_drawings_in_every_process() -> None:
    script = (
        "from test_nest import *; nest = nest_all([encoder(2, width=30), training(4), hostile()], opened=9); "
    )
    script += "import sys; sys.stdout.buffer.write(repr(nest).encode())"
    search = [str(path) for path in sys.path if path]
    runs = [
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = {search!r}; {script}"],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    here = nest_all([encoder(2, width=30), training(4), hostile()], opened=9)
    assert runs[0] == runs[1] == repr(here).encode()


# Large and bad graphs


@pytest.mark.full
def test_twenty_thousand_nodes_without_modules() -> None:
    graph = chain(20_000)
    nest = nest_all([graph])
    follow(graph, nest, 0, 60)
    assert len(nest.layouts) < 20


@pytest.mark.full
def test_paths_of_any_depth() -> None:
    nodes = [
        call(f"n{i}", "f", *([f"n{i - 1}"] if i else []), module="a." * min(i, 2000)) for i in range(3000)
    ]
    graph = Graph("forward", "", "", tuple(nodes))
    follow(graph, nest_all([graph]), 0, 60)


@pytest.mark.full
def test_levels_are_few() -> None:
    levels = fold(chain(20_000).nodes, None, 60).levels
    assert max(len(level.parts) for level in levels) <= 60
    assert len(levels[0].parts) == 28, "as many boxes as each of them holds in turn, over three levels"


def late(dots: Sequence[str], timeout: float) -> list[engine.Answer]:
    return [engine.TimeLimit("too late")] * len(dots)


def test_without_graphviz_every_note_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    nest = nest_all([sin_cos(), encoder(3)])
    assert (nest.bodies, nest.layouts) == ((), ())
    for drawing in nest.drawings:
        assert (drawing.whole, drawing.folded) == (-1, -1)
        assert "could not be placed: no Graphviz was found" in drawing.note
        assert "pip install 'pygraphviz>=2'" in drawing.note


def test_one_bad_drawing_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine.run

    def run(dots: Sequence[str], timeout: float) -> list[engine.Answer]:
        answers = real(dots, timeout)
        return [LayoutError("bad luck") if d.count("[width") == 4 else a for d, a in zip(dots, answers)]

    monkeypatch.setattr(engine, "run", run)
    fine, broken = nest_all([sin_cos(), chain(2)]).drawings
    assert fine.whole >= 0 and fine.note == ""
    assert broken.whole == -1
    assert broken.note == "the whole graph could not be placed: bad luck"


def test_an_inside_that_cannot_be_placed_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = engine.run, []

    def run(dots: Sequence[str], timeout: float) -> list[engine.Answer]:
        calls.append(dots)
        return real(dots, timeout) if len(calls) == 1 else late(dots, timeout)

    monkeypatch.setattr(engine, "run", run)
    nest = nest_all([encoder(3)], whole_limit=0)
    assert len(nest.bodies) == 1 and nest.drawings[0].folded == 0
    assert [box.inside for box in nest.bodies[0].boxes] == [-1] * 4
    assert "the inside of encoder.layers.0 could not be placed: too late; and 2 more" in nest.drawings[0].note
    assert len(calls) == 3, "the outermost, all insides, and those once more with less in them"


def test_a_late_drawing_is_tried_once_more_with_shorter_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = engine.run, []

    def run(dots: Sequence[str], timeout: float) -> list[engine.Answer]:
        calls.append(dots)
        return real(dots, timeout) if len(calls) > 1 else late(dots, timeout)

    monkeypatch.setattr(engine, "run", run)
    nest = nest_all([chain(30)])
    drawing = nest.drawings[0]
    assert "edges are cut short" in drawing.note
    assert ("x",) in [stub.others for stub in nest.bodies[drawing.whole].stubs]
    assert not nest_all([chain(30)]).bodies[0].stubs


@pytest.mark.parametrize(
    "wrong", [{"opened": 1}, {"whole_limit": -1}, {"timeout": 0}, {"timeout": float("nan")}, {"modules": []}]
)
def test_unusable_arguments(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        nest_all([sin_cos()], **wrong)  # type: ignore[arg-type]
