"""DOT text is valid for Graphviz whatever the names, and is the same graph as the record."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from samples_graph import F32, HOSTILE, call, given, hostile, result, sin_cos, tensor

from compile_lens.errors import LensError
from compile_lens.layout.text import clean
from compile_lens.record.graph import Graph, Node, Ref
from compile_lens.views.drawing.dot import dot_text, quote, to_dot, to_pydot

pygraphviz = pytest.importorskip("pygraphviz", reason="reads the DOT text back")


def drawn_lines(label: str) -> list[str]:
    """Return the lines that Graphviz draws for a node whose quoted label is ``label``."""
    svg = pygraphviz.AGraph(string=f"digraph {{ a [label={label}] }}").draw(format="svg", prog="dot")
    root = ElementTree.fromstring(svg)
    return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_nodes_edges_and_types() -> None:
    text = dot_text(sin_cos())
    assert text.startswith("digraph {")
    assert 'n1 [label="sin\\naten.sin.default"' in text
    assert '    n0 -> n1 [label="f32[1000]"]' in text
    graph = pygraphviz.AGraph(string=text)
    assert graph.nodes() == [f"n{i}" for i in range(7)]
    assert sorted(graph.edges()) == sorted(
        [
            ("n0", "n1"),
            ("n1", "n2"),
            ("n0", "n3"),
            ("n3", "n4"),
            ("n2", "n5"),
            ("n4", "n5"),
            ("n5", "n6"),
            ("n0", "n6"),
        ]
    )


def test_a_saved_node_is_marked() -> None:
    lines = dot_text(sin_cos()).splitlines()
    assert [line.split()[0] for line in lines if "penwidth" in line] == ["n0"]


def test_hostile_names_stay_inside_their_quotes() -> None:
    graph = hostile()
    parsed = pygraphviz.AGraph(string=dot_text(graph))
    assert parsed.nodes() == [f"n{i}" for i in range(len(HOSTILE))]
    assert len(parsed.edges()) == len(HOSTILE) - 1
    tooltip = pygraphviz.Node(parsed, f"n{HOSTILE.index('x' * 10_000)}").attr["tooltip"]
    assert tooltip == f"{'x' * 10_000}8\\ncall_function {'x' * 10_000}"


@pytest.mark.parametrize("text", [t for t in HOSTILE if len(t) < 100 and t.strip() and "\n" not in t])
def test_graphviz_draws_the_text_itself(text: str) -> None:
    assert drawn_lines(quote(text)) == [clean(text)]


@settings(max_examples=150, deadline=None)
@for_all(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x2FF), min_size=1, max_size=40))
def test_any_text_is_drawn_as_it_is(text: str) -> None:
    # U+00A0 and the like are preserved; only a label of blanks alone has nothing to draw.
    assert drawn_lines(quote(text)) == [clean(text)]


def test_a_quoted_string_is_never_too_long_for_graphviz() -> None:
    for text in ("&" * 20_000, "👩" * 20_000, "\\" * 20_000):
        pieces = quote(text).split('" + "')
        assert max(len(piece.encode()) for piece in pieces) < 16_384
        pygraphviz.AGraph(string=f"digraph {{ a [tooltip={quote(text)}] }}")


def test_subgraphs_are_clusters_with_ids_of_their_own() -> None:
    inner = Graph("dynamo", "", "", (given("a"), call("neg", "aten.neg.default", "a"), result("neg")))
    empty = Graph("dynamo", "", "", (), subgraphs=(("innermost", inner),))
    graph = Graph(
        "dynamo", "", "", (given("x"), result("x")), subgraphs=(("true_graph", inner), ("other", empty))
    )
    for text in (dot_text(graph), to_pydot(graph).to_string()):
        parsed = pygraphviz.AGraph(string=text)
        assert len(parsed.nodes()) == 2 + 3 + 3
        assert len(parsed.edges()) == 1 + 2 + 2
        names = [s.name for s in parsed.subgraphs()]
        assert len(names) == 2 and len(set(names)) == 2
        assert [s.graph_attr["label"] for s in parsed.subgraphs()] == ["true_graph", "other"]
        assert [s.graph_attr["label"] for s in parsed.subgraphs()[1].subgraphs()] == ["innermost"]


def test_pydot_says_the_same_as_the_text() -> None:
    for graph in (sin_cos(), hostile()):
        ours = pygraphviz.AGraph(string=dot_text(graph))
        theirs = pygraphviz.AGraph(string=to_pydot(graph).to_string())
        assert ours.nodes() == theirs.nodes()
        assert sorted(ours.edges()) == sorted(theirs.edges())
        for name in ours.nodes():
            mine, other = pygraphviz.Node(ours, name), pygraphviz.Node(theirs, name)
            assert (mine.attr["label"], mine.attr["tooltip"]) == (other.attr["label"], other.attr["tooltip"])


def test_to_dot_is_a_graphviz_source() -> None:
    graphviz = pytest.importorskip("graphviz")
    source = to_dot(sin_cos())
    assert isinstance(source, graphviz.Source)
    assert source.source == dot_text(sin_cos())
    assert sin_cos().to_dot().source == source.source


@pytest.mark.parametrize(("package", "convert"), [("graphviz", to_dot), ("pydot", to_pydot)])
def test_a_missing_package_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, package: str, convert: object
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LensError, match=f"pip install {package}"):
        convert(sin_cos())  # type: ignore[operator]


def test_references_to_nowhere_and_many_outputs() -> None:
    pair = Node(
        "pair",
        "call_function",
        "aten.max.dim",
        args=(Ref("gone"), Ref("x")),
        outputs=(F32, tensor(3, dtype="int64")),
    )
    text = dot_text(Graph("dynamo", "", "", (given("x"), pair, result("pair"))))
    assert 'n1 -> n2 [label="f32[1000], i64[3]"]' in text
    assert text.count("->") == 2


def test_an_empty_graph() -> None:
    assert pygraphviz.AGraph(string=dot_text(Graph("dynamo", "", "", ()))).nodes() == []
