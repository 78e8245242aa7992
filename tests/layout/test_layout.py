"""Graph layout: drawn nodes and a note about the rest, child processes, and their time limit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from samples_graph import F32, HOSTILE, call, chain, encoder, given, hostile, result, sin_cos, tensor

from compile_lens.errors import LayoutError, UsageError
from compile_lens.layout import Layout, OverBudget, engine, place, place_all
from compile_lens.layout import resident as resident_module
from compile_lens.layout.plan import make_plan
from compile_lens.layout.resident import Resident
from compile_lens.layout.text import clean, columns, outputs_text, shorten, tensor_text
from compile_lens.record.graph import Graph, Node, Ref

SLEEPER = """
import os, pathlib, sys, time
pathlib.Path({where!r}).write_text(pathlib.Path({where!r}).read_text() + f"{{os.getpid()}}\\n")
time.sleep(600)
"""


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the system's dot: the Graphviz inside the pygraphviz wheel is used."""
    monkeypatch.setattr(engine.shutil, "which", lambda name: None)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Drawn nodes


def test_a_small_graph_is_drawn_whole() -> None:
    layout = place(sin_cos())
    assert [b.name for b in layout.boxes] == [n.name for n in sin_cos().nodes]
    assert {(e.source, e.target) for e in layout.edges} == {
        ("primals_1", "sin"),
        ("sin", "pow_1"),
        ("primals_1", "cos"),
        ("cos", "pow_2"),
        ("pow_1", "add"),
        ("pow_2", "add"),
        ("add", "output"),
        ("primals_1", "output"),
    }
    assert {e.label for e in layout.edges} == {"f32[1000]"}
    assert (layout.stubs, layout.left_out, layout.notes, layout.note) == ((), (), (), "")


@pytest.mark.parametrize(
    "graph",
    [sin_cos(), encoder(1, width=30), chain(50), hostile()],
    ids=["sin_cos", "encoder", "chain", "hostile"],
)
def test_nothing_overlaps_and_all_is_inside(graph: Graph) -> None:
    layout = place(graph)
    rectangles = [(b.x, b.y, b.x + b.width, b.y + b.height) for b in (*layout.boxes, *layout.stubs)]
    for left, top, right, bottom in rectangles:
        assert left >= -0.2 and top >= -0.2 and right <= layout.width + 0.2 and bottom <= layout.height + 0.2
    for edge in layout.edges:
        if edge.label_at is not None:
            x, y = edge.label_at
            half = columns(edge.label) * 0.602 * 9.5 / 2
            rectangles.append((x - half, y - 5, x + half, y + 5))
    for one, other in combinations(rectangles, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_edges_start_and_end_at_their_boxes() -> None:
    layout = place(encoder(1, width=30))
    boxes = {b.name: b for b in layout.boxes}
    for edge in layout.edges:
        assert len(edge.points) % 3 == 1
        for name, (x, y) in ((edge.source, edge.points[0]), (edge.target, edge.points[-1])):
            box = boxes[name]
            assert box.x - 1 <= x <= box.x + box.width + 1
            assert box.y - 1 <= y <= box.y + box.height + 1


def test_text_fits_its_box() -> None:
    for box in place(hostile()).boxes:
        assert max(columns(line.text) * 0.6 * line.size for line in box.lines) < box.width
        assert sum(line.size for line in box.lines) < box.height


def test_the_same_graph_gives_the_same_layout() -> None:
    assert place(encoder(2, width=20)) == place(encoder(2, width=20))


def test_an_empty_graph_needs_no_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run", None)
    assert place(Graph("dynamo", "", "", ())) == Layout(0.0, 0.0)


def test_an_edge_to_nowhere_is_reported() -> None:
    node = Node("a", "call_function", "f", args=(Ref("gone"),))
    assert place(Graph("dynamo", "", "", (node,))).notes == (
        "an argument names a node outside of this graph: not drawn",
    )


def test_a_cycle_and_a_self_loop_are_drawn() -> None:
    nodes = (
        Node("a", "call_function", "f", args=(Ref("b"), Ref("a"))),
        Node("b", "call_function", "g", args=(Ref("a"),)),
    )
    layout = place(Graph("loops", "forward", "", nodes))
    assert {(e.source, e.target) for e in layout.edges} == {("a", "b"), ("b", "a"), ("a", "a")}


# Long edges


def test_a_long_edge_becomes_two_stubs() -> None:
    layout = place(chain(50))
    assert ("x", "output") not in {(e.source, e.target) for e in layout.edges}
    out, back = layout.stubs
    assert (out.box, out.outgoing, out.others, out.lines) == ("x", True, ("output",), ("→ to output",))
    assert (back.box, back.outgoing, back.others, back.lines) == ("output", False, ("x",), ("← from x",))
    assert layout.notes == ("1 edge is cut for spanning over 40 ranks: each end names the other",)
    assert layout.left_out == ()


def test_a_shorter_edge_is_kept_whole() -> None:
    layout = place(chain(30))
    assert ("x", "output") in {(e.source, e.target) for e in layout.edges}
    assert layout.stubs == ()


def test_an_input_ranks_next_to_its_first_use() -> None:
    # "late" is at the top of the graph but used 60 calls later: none of its edges is long.
    nodes = list(chain(60).nodes[:-1])
    nodes.insert(0, given("late"))
    nodes.append(call("last", "aten.add.Tensor", "mul_59", "late"))
    layout = place(Graph("forward", "", "joint", (*nodes, result("last"))))
    assert layout.stubs == ()
    boxes = {b.name: b for b in layout.boxes}
    assert boxes["late"].y > boxes["mul_50"].y


def test_many_cut_edges_of_one_box_are_one_stub() -> None:
    layout = place(encoder(3))
    into = [s for s in layout.stubs if not s.outgoing]
    assert len(into) == 1 and into[0].box == "output"
    assert into[0].lines[-1].strip() == f"and {len(into[0].others) - 3} more"
    assert len(into[0].others) == sum(len(s.others) for s in layout.stubs if s.outgoing)
    assert any(note.startswith(f"{len(into[0].others)} edges are cut") for note in layout.notes)


def test_saved_activations_of_a_whole_encoder_are_placed_soon() -> None:
    graph = encoder(11)
    assert len(graph.nodes) == 794
    layout = place(graph, timeout=60)  # 0.3 s on an idle laptop; over its time it would have fewer boxes
    assert len(layout.boxes) == 794


def test_types_move_into_the_boxes_of_a_large_graph() -> None:
    layout = place(chain(310))
    assert {e.label for e in layout.edges} == {""}
    assert "f32[1000]" in [line.text for line in layout.boxes[5].lines]
    assert "types are in the boxes: there are too many edges to label" in layout.notes


# Collapsing


def test_two_types_too_long_for_a_label_are_counted() -> None:
    pair = replace(
        call("pair", "f", "x"), outputs=(tensor(16, 2, 64, 128), tensor(16, 2, 64, 128, dtype="bool"))
    )
    layout = place(Graph("loops", "forward", "", (given("x"), pair, result("pair"))))
    assert [e.label for e in layout.edges] == ["f32[1000]", "2 tensors"]


def test_collapsed_by_module() -> None:
    graph = encoder(11)
    layout = place(graph, limit=60)
    assert len(layout.boxes) == 45
    first = layout.boxes[0]
    assert first.name == "encoder.layers.0.attn" and first.kind == "collapsed"
    assert f"holds {len(first.members)} nodes" in [line.text for line in first.lines]
    assert layout.boxes[-1].members == ("output",)
    assert sum(len(b.members) for b in layout.boxes) == 794
    assert len(layout.left_out) == 793 and "output" not in layout.left_out
    assert layout.notes[0].startswith(
        "794 nodes are too many to draw: 793 of them are collapsed by module (the first 4 parts of the path)"
    )


def test_a_tighter_limit_takes_a_shorter_path() -> None:
    names = [b.name for b in place(encoder(11), limit=20).boxes]
    assert names[:2] == ["encoder.layers.0", "encoder.layers.1"] and len(names) == 12


def test_collapsed_by_runs_without_modules() -> None:
    layout = place(chain(200), limit=10)
    assert len(layout.boxes) <= 10
    assert layout.boxes[0].name == "x … mul_19"
    assert "in runs of neighbours, as there are no modules" in layout.note


def test_a_module_called_twice_is_two_boxes() -> None:
    nodes = [given("x")]
    for i in range(40):
        nodes.append(call(f"n{i}", "aten.mul.Tensor", nodes[-1].name, module="ab"[i // 10 % 2]))
    boxes = place(Graph("forward", "", "", (*nodes, result("n39"))), limit=10).boxes
    assert [b.name for b in boxes] == ["a", "b", "a (2)", "b (2)", "output"]


@pytest.mark.full
def test_twenty_thousand_nodes() -> None:
    graph = encoder(280)
    assert len(graph.nodes) > 20_000
    layout = place(graph, timeout=60)  # 1 s on an idle laptop
    assert not any("did not finish" in note for note in layout.notes)
    assert 1000 < len(layout.boxes) <= 1500


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Generate well-formed graphs with some modules."""
    nodes: list[Node] = []
    for i in range(draw(st.integers(1, 40))):
        inputs = draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else []
        module = draw(st.sampled_from(["", "", "a", "a.b", "a.c.d", "e", "..", "x y"]))
        op = (
            draw(st.sampled_from(["placeholder", "get_attr"]))
            if not inputs and draw(st.booleans())
            else "call_function"
        )
        nodes.append(
            Node(f"n{i}", op, "f", args=tuple(Ref(f"n{j}") for j in inputs), module=module, outputs=(F32,))
        )
    return Graph("dynamo", "", "", tuple(nodes))


@pytest.mark.full
@settings(max_examples=300, deadline=None)
@for_all(graphs(), st.integers(1, 50), st.integers(1, 50))
def test_a_plan_keeps_every_node_once_in_order_and_within_the_limit(
    graph: Graph, limit: int, longest: int
) -> None:
    plan = make_plan(graph, limit, longest)
    assert 1 <= len(plan.boxes) <= limit
    assert sorted(m for b in plan.boxes for m in b.members) == sorted(n.name for n in graph.nodes)
    assert len({b.name for b in plan.boxes}) == len(plan.boxes)
    assert all(e.source < e.target for e in plan.edges)
    owner = {m: i for i, b in enumerate(plan.boxes) for m in b.members}
    wanted = {(owner[i], owner[n.name]) for n in graph.nodes for i in n.inputs if owner[i] != owner[n.name]}
    ends = {b.name: i for i, b in enumerate(plan.boxes)}
    cut = {(s.box, ends[o]) for s in plan.stubs if s.outgoing for o in s.others}
    assert cut == {(ends[o], s.box) for s in plan.stubs if not s.outgoing for o in s.others}
    assert {(e.source, e.target) for e in plan.edges} | cut == wanted
    assert bool(cut) == any("cut for spanning" in note for note in plan.notes)
    assert (len(graph.nodes) > limit) == any("too many to draw" in note for note in plan.notes)


# Child processes


def test_what_is_drawn_is_counted_before_it_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [sin_cos(), chain(40), chain(3)]
    whole = place_all(graphs)
    costs = [len(x.boxes) + len(x.edges) + len(x.stubs) for x in whole]
    assert place_all(graphs, most=sum(costs)) == whole
    run, asked = engine.run, []
    monkeypatch.setattr(engine, "run", lambda dots, timeout: asked.append(len(dots)) or run(dots, timeout))
    first, second, third = place_all(graphs, most=costs[0] + costs[2])
    assert [first, third] == [whole[0], whole[2]] and asked == [2]
    assert isinstance(second, OverBudget)
    assert str(second) == f"{costs[1]} boxes and lines are more than the {costs[2]} that are left to draw"
    assert all(isinstance(layout, OverBudget) for layout in place_all(graphs, most=0)) and asked == [2]


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": -3}, {"timeout": 0}, {"timeout": float("nan")}])
def test_unusable_arguments(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=str(next(iter(wrong.values())))):
        place(sin_cos(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="most is -1"):
        place_all([sin_cos()], most=-1)


@pytest.mark.usefixtures("embedded")
def test_without_any_graphviz_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    with pytest.raises(LayoutError, match=r"pip install 'pygraphviz>=2'.*apt install graphviz"):
        place(sin_cos())
    answers = place_all([sin_cos(), Graph("dynamo", "", "", ()), chain(3)])
    assert [type(a) for a in answers] == [LayoutError, Layout, LayoutError]


@pytest.mark.full
@pytest.mark.usefixtures("embedded")
def test_a_child_over_its_time_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.write_text("")
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text(SLEEPER.format(where=str(pids)))
    monkeypatch.setattr(engine, "CHILD", sleeper)
    with pytest.raises(LayoutError, match=r"within 4 s and was ended; give a longer timeout"):
        place(chain(2000), timeout=4.0)  # more than fits into a pipe that nobody reads
    started = [int(p) for p in pids.read_text().split()]
    assert len(started) == 2, "the graph itself, and once more with fewer boxes"
    assert not any(alive(pid) for pid in started)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("embedded")
def test_one_slow_graph_costs_only_itself_its_detail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A child that is slow with anything over 20 nodes.
    slow = tmp_path / "slow.py"
    real = engine.CHILD.read_text(encoding="utf-8")
    assert "graph = AGraph(" in real
    delay = "if line.count('width=') > 20: __import__('time').sleep(600)\n            graph = AGraph("
    slow.write_text(real.replace("graph = AGraph(", delay), encoding="utf-8")
    monkeypatch.setattr(engine, "CHILD", slow)
    first, second, third = place_all([sin_cos(), chain(60), chain(5)], timeout=10.0)
    assert isinstance(first, Layout) and first.notes == ()
    assert isinstance(third, Layout) and third.notes == ()
    assert isinstance(second, Layout)
    assert len(second.boxes) <= 15
    assert second.notes[-1] == "the drawing with more detail did not finish within 10 s"


@pytest.mark.usefixtures("embedded")
def test_a_child_that_dies_is_reported_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dying = tmp_path / "dying.py"
    dying.write_text("import sys; sys.stdin.readline(); sys.exit('out of luck')")
    monkeypatch.setattr(engine, "CHILD", dying)
    answers = place_all([sin_cos(), chain(3)])
    for answer in answers:
        assert isinstance(answer, LayoutError)
        assert "exit status 1: out of luck" in str(answer)


@pytest.mark.usefixtures("embedded")
def test_an_answer_in_another_form_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    odd = tmp_path / "odd.py"
    odd.write_text(
        'import sys\nfor _ in sys.stdin: print(\'{"plain": "graph 1 2 2\\\\nnode n0"}\', flush=True)'
    )
    monkeypatch.setattr(engine, "CHILD", odd)
    with pytest.raises(LayoutError, match="not its plain format"):
        place(sin_cos())


@pytest.mark.usefixtures("embedded")
def test_the_child_runs_nothing_of_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert isinstance(place(sin_cos()), Layout)
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("embedded")
def test_many_graphs_share_one_child(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    real = subprocess.Popen

    def popen(*args: object, **kwargs: object) -> object:
        started.append(args)
        return real(*args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(engine.subprocess, "Popen", popen)
    layouts = place_all([chain(i) for i in range(12)] + [sin_cos()])
    assert [len(layout.boxes) for layout in layouts if isinstance(layout, Layout)] == [*range(2, 14), 7]
    assert len(started) == 1


def system_dot(folder: Path, body: str) -> None:
    """Write a program named dot to ``folder``."""
    program = folder / "dot"
    program.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    program.chmod(0o755)


EACH = """
from pygraphviz import AGraph
texts = ["digraph {" + text for text in sys.stdin.read().split("digraph {")[1:]]
def placed(text): return AGraph(string=text).draw(format="plain", prog="dot").decode()
"""
"""The start of a program in place of ``dot``: the graphs that it received, and Graphviz from the wheel."""


@pytest.mark.skipif(os.name == "nt", reason="needs scripts with a #! line")
def test_the_systems_dot_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pygraphviz")
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing yet: the embedded one, which the script calls as well
    wanted = place_all([sin_cos(), chain(3)])
    system_dot(
        tmp_path,
        f"assert sys.argv[1:] == ['-Tplain']\n{EACH}"
        f"open({str(tmp_path / 'asked')!r}, 'a').write(f'{{len(texts)}} ')\n"
        "for text in texts:\n    sys.stdout.write(placed(text))",
    )
    monkeypatch.setattr(engine, "embedded_folder", lambda: None)
    assert place_all([sin_cos(), chain(3)]) == wanted
    assert (tmp_path / "asked").read_text() == "2 ", "small graphs share a process"
    monkeypatch.setattr(engine, "MAX_SHARED", 0)
    assert place_all([sin_cos(), chain(3)]) == wanted
    assert (tmp_path / "asked").read_text() == "2 1 1 ", "large ones have one each"


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="needs scripts with a #! line")
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("continue", "exit status 0"),
        ("sys.exit('no memory')", "no memory"),
        ("time.sleep(600)", "within 10 s"),
    ],
)
def test_a_graph_that_the_systems_dot_fails_at_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, said: str
) -> None:
    """Dot omits it, crashes or hangs on it: the other graphs of that process are requested again."""
    pytest.importorskip("pygraphviz")
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = place_all([sin_cos(), chain(3)])
    system_dot(
        tmp_path,
        f"{EACH}"
        "for text in texts:\n"
        f"    if text.count('->') == 3: {fault}\n"
        "    print(placed(text), end='', flush=True)",
    )
    monkeypatch.setattr(engine, "embedded_folder", lambda: None)
    first, middle, last = place_all([sin_cos(), chain(1), chain(3)], timeout=10.0)
    assert said in (str(middle) if isinstance(middle, LayoutError) else middle.note)
    assert [first, last] == wanted


@pytest.mark.skipif(os.name == "nt", reason="needs scripts with a #! line")
def test_a_broken_system_dot_gives_way_to_the_embedded_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    system_dot(tmp_path, "sys.exit('Format: \"plain\" not recognized')")
    monkeypatch.setenv("PATH", str(tmp_path))
    with monkeypatch.context() as alone:
        alone.setattr(engine, "embedded_folder", lambda: None)
        with pytest.raises(LayoutError, match=r'could not place the graph: Format: "plain" not recognized'):
            place(sin_cos())
    assert len(place(sin_cos()).boxes) == 7


@pytest.mark.skipif(os.name == "nt", reason="needs scripts with a #! line")
def test_a_slow_system_dot_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    system_dot(tmp_path, "time.sleep(600)")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LayoutError, match=r"within 0\.5 s"):
        place(sin_cos(), timeout=0.5)


def test_importing_the_layout_loads_neither_torch_nor_graphviz() -> None:
    script = "import sys, compile_lens.layout; print({'torch', 'pygraphviz', 'graphviz'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# Text


def test_types_in_short_form() -> None:
    assert tensor_text(tensor(1000, 64)) == "f32[1000, 64]"
    assert tensor_text(tensor(dtype="int64")) == "i64[]"
    assert tensor_text(tensor("s0", 3, dtype="torch.bfloat16")) == "bf16[s0, 3]"
    assert tensor_text(tensor(2, dtype="float8_e4m3fn")) == "float8_e4m3fn[2]"
    node = Node("n", "call_function", "f", outputs=(F32, tensor(dtype="bool")))
    assert outputs_text(node) == "f32[1000], b8[]"
    assert outputs_text(Node("n", "call_function", "f", outputs=(F32,) * 3)) == "3 tensors"
    assert outputs_text(Node("n", "call_function", "f")) == ""


def test_long_text_is_shortened_in_its_middle() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcde…hijk"
    assert shorten("a" + "x" * 100_000 + "z", 5) == "ax…xz"
    assert shorten("a\n b", 10) == "a b"


@for_all(st.one_of(st.text(), st.sampled_from(HOSTILE)), st.integers(1, 60))
def test_shortened_text_fits_and_can_be_written(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert columns(short) <= limit
    assert short == clean(short)
    short.encode()
    assert "\n" not in short


# A persistent process


@pytest.fixture
def staying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Resident]]:
    """Start the persistent process; it is ended after the test."""
    monkeypatch.setattr(engine, "_resident", None)

    def make() -> Resident:
        engine.keep_process()
        assert engine._resident is not None
        return engine._resident

    yield make
    if engine._resident is not None:
        engine._resident.close()


def process_of(resident: Resident) -> int:
    assert resident._process is not None
    return resident._process.pid


@pytest.mark.skipif(os.name == "nt", reason="no process stays on Windows")
@pytest.mark.parametrize("which", ["system", "embedded"])
def test_a_process_that_stays_places_as_one_for_each_page(
    staying: Callable[[], Resident], monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    if which == "embedded":
        monkeypatch.setattr(engine.shutil, "which", lambda name: None)
    elif not shutil.which("dot"):
        pytest.skip("no system dot")
    pages = [[sin_cos(), chain(3)], [chain(3), encoder(2)], [chain(900), sin_cos()]]
    wanted = [place_all(page) for page in pages]
    resident = staying()
    assert [place_all(pages[0]), place_all(pages[1])] == wanted[:2]
    process = process_of(resident)
    assert place_all(pages[2]) == wanted[2], "large ones have a process each"
    assert process_of(resident) == process
    os.kill(process, signal.SIGKILL)
    assert place_all([chain(3), sin_cos()]) == [wanted[0][1], wanted[0][0]], "what is remembered needs none"
    engine._resident = None
    alone = place_all([chain(4)])
    engine._resident = resident
    assert place_all([chain(4)]) == alone, "after its end it is asked in the ordinary way"
    assert place_all([chain(5)]) and process_of(resident) != process


@pytest.mark.skipif(os.name == "nt", reason="no process stays on Windows")
def test_half_an_answer_is_not_taken_for_the_next(
    staying: Callable[[], Resident], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt may arrive while it is waiting."""
    if not shutil.which("dot"):
        pytest.skip("no system dot")
    wanted = [place_all([graph]) for graph in (chain(3), chain(4), chain(5))]
    resident = staying()
    assert place_all([chain(3)]) == wanted[0]
    first = process_of(resident)
    with monkeypatch.context() as interrupted:

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        interrupted.setattr(resident_module.select, "select", interrupt)
        with pytest.raises(KeyboardInterrupt):
            place_all([chain(4)])
    assert place_all([chain(5)]) == wanted[2] and process_of(resident) != first
    assert place_all([chain(4)]) == wanted[1]
    assert not alive(first)


@pytest.mark.skipif(os.name == "nt", reason="needs scripts with a #! line")
def test_a_dot_that_answers_only_at_its_end_does_not_stay(
    staying: Callable[[], Resident], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("pygraphviz")
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = place_all([sin_cos(), chain(3)])
    started = tmp_path / "started"
    system_dot(
        tmp_path,
        f"open({str(started)!r}, 'a').write('.')\n{EACH}for text in texts: print(placed(text), end='')",
    )
    monkeypatch.setattr(resident_module, "TIMEOUT", 0.2)
    staying()
    assert [place_all([sin_cos(), chain(3)]) for _ in range(2)] == [wanted, wanted]
    assert len(started.read_text()) <= 3, "one that should have stayed, and one for each page"
