"""SVG documents are well-formed whatever the names, self-contained, readable, and byte for byte reproducible."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html import unescape
from urllib.parse import unquote

import pytest
import samples
from contrast import contrast
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from samples_graph import F32, HOSTILE, call, chain, encoder, given, hostile, result, sin_cos

from compile_lens.errors import LayoutError, UsageError
from compile_lens.layout import engine, place
from compile_lens.layout.text import clean
from compile_lens.record.graph import Frame, Graph, Node, Ref
from compile_lens.views.drawing import svg
from compile_lens.views.drawing.svg import escape, to_svg, to_svgs
from compile_lens.views.words.palette import COLOURS, DARK, LIGHT, known_kind

NS = "{http://www.w3.org/2000/svg}"


def parsed(document: str) -> ElementTree.Element:
    root = ElementTree.fromstring(document.encode())
    assert root.tag == f"{NS}svg"
    return root


def nodes(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {e.attrib["data-node"]: e for e in root.iter() if "data-node" in e.attrib}


def title(element: ElementTree.Element) -> str:
    return element.findtext(f"{NS}title") or ""


def drawn(element: ElementTree.Element) -> list[str]:
    return [t.text or "" for t in element.iter(f"{NS}text")]


# Drawn elements


def test_a_small_graph() -> None:
    root = parsed(to_svg(sin_cos(), title="Forward"))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == (
        "Forward: 7 nodes, 5 calls, 1 saved for backward; in order sin, pow_1, cos, pow_2, add"
    )
    assert drawn(root)[:2] == ["Forward", "forward: 7 nodes, 5 calls, 1 saved for backward"]
    boxes = nodes(root)
    assert list(boxes) == [n.name for n in sin_cos().nodes]
    assert boxes["sin"].attrib["class"] == "node kind-pointwise"
    assert drawn(boxes["sin"]) == ["sin", "aten.sin.default"]
    edges = [e for e in root.iter() if e.attrib.get("class") == "edge"]
    assert ("sin", "pow_1") in [(e.attrib["data-from"], e.attrib["data-to"]) for e in edges]
    assert all(drawn(e) == ["f32[1000]"] for e in edges) and len(edges) == 8


def test_what_autograd_made_is_dashed_and_said() -> None:
    """By hand: one call of the program, two for its derivative."""
    calls = [replace(call(name, f"aten.{name}.default", "sin"), derivative=True) for name in ("cos", "mul")]
    graph = Graph("joint", "", "", (given("x"), call("sin", "aten.sin.default", "x"), *calls))
    svg = to_svg(graph)
    root = parsed(svg)
    boxes = nodes(root)
    assert [name for name, box in boxes.items() if "derived" in box.attrib["class"].split()] == ["cos", "mul"]
    assert ".derived>rect{stroke-dasharray:" in svg, "a dash, not a colour alone"
    text = "4 nodes, 3 calls, 2 of them made by autograd for a derivative"
    assert root.attrib["aria-label"] == f"joint: {text}; in order sin, cos, mul"
    assert "made by autograd for a derivative" in title(boxes["cos"]) and drawn(root)[-1] in text
    assert "made by autograd" not in title(boxes["sin"])
    (image,) = to_svgs([graph], plain=True)
    assert image.count(' derived"') == 1 and ".swatch{" in image
    assert "derived" not in to_svg(sin_cos())


def test_a_long_graph_is_told_by_its_first_calls() -> None:
    calls = [call(f"sin_{n}", "aten.sin.default", "x") for n in range(15)]
    label = parsed(to_svg(Graph("dynamo", "", "", (given("x"), *calls)))).attrib["aria-label"]
    assert label.endswith("sin_10, sin_11 and 3 more") and label.count("sin_") == 12


def test_the_tooltip_of_a_node_has_what_fits_no_box() -> None:
    node = replace(
        call("sin", "aten.sin.default", "x", module="layers.0"),
        frames=(
            Frame("/home/me/model.py", 3, "outer", ""),
            Frame("C:\\me\\block.py", 12, "forward", "y = x.sin()"),
        ),
    )
    root = parsed(to_svg(Graph("forward", "", "", (given("x"), node), saved=("sin",))))
    assert title(nodes(root)["sin"]).splitlines() == [
        "sin",
        "call_function aten.sin.default",
        "float32[1000] stride (1) cpu",
        "module layers.0 (Linear)",
        "block.py:12 in forward: y = x.sin()",
        "saved for backward",
    ]


def test_saved_nodes_are_marked_and_in_the_legend() -> None:
    root = parsed(to_svg(sin_cos()))
    assert nodes(root)["primals_1"].attrib["class"] == "node kind-input saved"
    assert drawn(nodes(root)["primals_1"])[-1] == "saved"
    assert drawn(root)[-1] == "saved for backward"
    plain = to_svg(replace(sin_cos(), saved=()))
    assert "saved" not in plain and "badge" not in plain


def test_the_legend_has_the_kinds_present_and_no_others() -> None:
    root = parsed(to_svg(sin_cos()))
    legend = next(e for e in root.iter() if e.attrib.get("class") == "legend")
    assert drawn(legend) == ["input", "output", "pointwise", "saved for backward"]
    style = root.findtext(f"{NS}style") or ""
    assert set(re.findall(r"\.kind-(\w+)", style)) == {"input", "output", "pointwise"}


def test_a_group_shows_its_members() -> None:
    group = Node("op0_op1", "group", "Fused", kind="pointwise", members=tuple(f"op{i}" for i in range(5)))
    box = nodes(parsed(to_svg(Graph("groups", "forward", "", (group,)))))["op0_op1"]
    assert "5 loops: op0, op1, op2 +2" in drawn(box)
    assert "members op0, op1, op2, op3, op4" in title(box)


def test_subgraphs_are_named_in_the_caption() -> None:
    graph = replace(sin_cos(), subgraphs=(("true_graph_0", sin_cos()), ("false_graph_0", chain(0))))
    words = " ".join(drawn(parsed(to_svg(graph))))
    assert "2 subgraphs are not drawn here: true_graph_0 (7 nodes), false_graph_0 (2 nodes)" in words


def test_cut_edges_are_stubs_and_in_the_caption() -> None:
    root = parsed(to_svg(chain(50)))
    stubs = [e for e in root.iter() if e.attrib.get("class") == "stub"]
    assert [(e.attrib.get("data-from"), e.attrib.get("data-to")) for e in stubs] == [
        ("x", None),
        (None, "output"),
    ]
    assert [drawn(e) for e in stubs] == [["→ to output"], ["← from x"]]
    assert [title(e) for e in stubs] == ["to: output", "from: x"]
    assert "1 edge is cut for spanning over 40 ranks" in " ".join(drawn(root))


def test_a_collapsed_drawing_says_so_and_lists_members() -> None:
    graph = encoder(11)
    root = parsed(to_svg(graph, layout=place(graph, limit=60)))
    assert "794 nodes are too many to draw: 793 of them are collapsed by module" in " ".join(drawn(root))
    box = nodes(root)["encoder.layers.0.attn"]
    assert "node kind-collapsed" in box.attrib["class"]
    members = box.attrib["data-members"].split(" ")
    assert "l0_n0" in members and f"holds {len(members)} nodes" in drawn(box)
    assert any(re.fullmatch(r"\d+ saved", t) for t in drawn(box))
    every = [m for e in nodes(root).values() for m in e.attrib.get("data-members", "").split()]
    assert sorted([*every, "output"]) == sorted(n.name for n in graph.nodes)


def test_an_empty_graph_says_so() -> None:
    document = to_svg(Graph("dynamo", "", "", ()))
    assert "This graph has no nodes: there is nothing to draw." in drawn(parsed(document))
    assert len(document) < 2500


def test_a_long_caption_stays_inside_the_document() -> None:
    names = tuple((f"body_{i}_{'x' * 90}", chain(1)) for i in range(300))
    root = parsed(to_svg(replace(sin_cos(), subgraphs=names), title="T" * 500))
    across = float(root.attrib["width"])
    captions = [e for e in root.iter(f"{NS}text") if e.attrib.get("class") in ("caption", "title")]
    assert len(captions) == 2 + 12
    for text in captions:
        size = 14 if text.attrib["class"] == "title" else 11
        assert float(text.attrib["x"]) + len(text.text or "") * 0.602 * size <= across


# Hostile text


def test_hostile_text_is_preserved_and_harmless() -> None:
    document = to_svg(hostile(), title=HOSTILE[3])
    root = parsed(document)
    for text, (name, box) in zip(HOSTILE, nodes(root).items(), strict=True):
        assert name == clean(f"{text}{HOSTILE.index(text)}")
        assert title(box).startswith(f"{name}\ncall_function {clean(text)}\n")
        assert box.attrib["class"].split()[:2] == ["node", "kind-other"]
    assert {e.tag.removeprefix(NS) for e in root.iter()} == {
        "svg",
        "style",
        "rect",
        "g",
        "text",
        "title",
        "path",
    }
    assert "<script" not in document and not any(
        name.startswith("on") for e in root.iter() for name in e.attrib
    )


@settings(max_examples=60, deadline=None)
@for_all(st.text(st.characters(), max_size=50))
def test_any_text_is_escaped(text: str) -> None:
    element = ElementTree.fromstring(f'<a b="{escape(text)}">{escape(text)}</a>'.encode())
    assert element.attrib["b"] == clean(text)
    assert (element.text or "") == clean(text)


@settings(max_examples=25, deadline=None)
@for_all(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5, unique_by=clean))
def test_any_names_give_a_whole_document(names: list[str]) -> None:
    made = [Node(n, "call_function", n, kind=n, module=n, outputs=(replace(F32, dtype=n),)) for n in names]
    made.append(
        Node("".join(names) + "!", "output", "output", kind="output", args=tuple(Ref(n) for n in names))
    )
    assert list(nodes(parsed(to_svg(Graph("dynamo", "", "", tuple(made)))))) == [clean(n.name) for n in made]


# The document


def test_self_contained_and_free_of_ids() -> None:
    for document in (to_svg(sin_cos()), to_svg(chain(50)), to_svg(hostile())):
        root = parsed(document)
        assert not [
            name
            for e in root.iter()
            for name in e.attrib
            if name.split("}")[-1] in ("id", "href", "src", "style")
        ]
        style = root.findtext(f"{NS}style") or ""
        assert "url(" not in style and "@import" not in style and "@font-face" not in style
        assert document.count("http") - sum(t.count("http") for t in HOSTILE) == 1, "only the namespace"


def test_every_rule_is_scoped_to_our_documents() -> None:
    style = parsed(to_svg(sin_cos())).findtext(f"{NS}style") or ""
    flat = style.replace("@media (prefers-color-scheme:dark){", "").replace("}}", "}")
    selectors = [s for rule in flat.split("}") if rule for s in rule.split("{")[0].split(",")]
    assert len(selectors) > 20
    assert all(s == ".lens-graph" or s.startswith(".lens-graph ") for s in selectors)


def test_numbers_have_at_most_one_decimal() -> None:
    for element in parsed(to_svg(encoder(1, width=30))).iter():
        for name in ("x", "y", "width", "height", "d", "transform", "viewBox", "rx"):
            assert not re.search(r"\d\.\d\d|\.0\b|nan|inf|e[-+]?\d", element.attrib.get(name, ""))


def test_everything_is_inside_the_document() -> None:
    root = parsed(to_svg(encoder(1, width=30)))
    across, down = float(root.attrib["width"]), float(root.attrib["height"])
    shift = next(e for e in root.iter() if e.attrib.get("class") == "drawing").attrib["transform"]
    left, top = (float(v) for v in re.findall(r"[\d.]+", shift))
    for box in nodes(root).values():
        for rect in box.iter(f"{NS}rect"):
            x, y = float(rect.attrib["x"]) + left, float(rect.attrib["y"]) + top
            assert x >= 0 and y >= 0
            assert x + float(rect.attrib["width"]) <= across and y + float(rect.attrib["height"]) <= down


def test_the_same_bytes_in_every_process() -> None:
    script = (
        "from samples_graph import *; from compile_lens.views.drawing.svg import to_svg; import sys; "
        + ("sys.stdout.buffer.write((to_svg(sin_cos()) + to_svg(encoder(1, width=30))).encode())")
    )
    search = [str(path) for path in (*sys.path,) if path]
    runs = [
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = {search!r}; {script}"],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] == (to_svg(sin_cos()) + to_svg(encoder(1, width=30))).encode()


def test_a_small_graph_is_a_small_document() -> None:
    assert len(to_svg(chain(10, module="model.layers.0.mlp")).encode()) < 12_000  # 12 nodes


def test_several_graphs_and_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [to_svg(sin_cos(), title="one"), to_svg(chain(3), title="two")]
    assert to_svgs([sin_cos(), chain(3)], titles=["one", "two"]) == wanted

    def one_fails(dots: list[str], timeout: float) -> list[object]:
        return [*real(dots[:-1], timeout), LayoutError("out of <luck> & time")]

    real = engine.run
    monkeypatch.setattr(engine, "run", one_fails)
    first, second = to_svgs([sin_cos(), chain(3)], titles=["one", "two"])
    assert first == wanted[0]
    assert "Not drawn: out of <luck> & time" in " ".join(drawn(parsed(second)))
    assert nodes(parsed(second)) == {}
    with pytest.raises(LayoutError, match="luck"):
        to_svg(chain(3))


def test_titles_must_be_as_many_as_graphs() -> None:
    with pytest.raises(UsageError, match="1 titles for 2 graphs"):
        to_svgs([sin_cos(), sin_cos()], titles=["one"])


def test_no_graphviz_gives_documents_that_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    (document,) = to_svgs([sin_cos()])
    words = " ".join(drawn(parsed(document)))
    assert "no Graphviz was found" in words and "pip install 'pygraphviz>=2'" in words


def test_the_graph_draws_itself() -> None:
    assert sin_cos().to_svg("a title") == to_svg(sin_cos(), title="a title")
    assert sin_cos()._repr_svg_() == svg.to_svg(sin_cos())


def test_a_drawing_in_a_notebook_is_no_wider_than_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sin_cos().to_svg()
    monkeypatch.setattr("compile_lens.views.drawing.svg.CELL", 100.0)
    cell = parsed(sin_cos()._repr_svg_())
    assert cell.get("width") == "100%" and cell.get("height") is None
    assert cell.get("viewBox") == parsed(whole).get("viewBox")
    assert sin_cos()._repr_svg_().partition(">")[2] == whole.partition(">")[2]


def test_a_notebook_has_a_text_in_place_of_a_drawing() -> None:
    """JupyterLab gives a bare SVG no alternative text; in HTML it takes the image as it is."""
    image = re.fullmatch(
        r"<img [^>]*? alt=\"([^\"]+)\" src='data:image/svg\+xml,([^']+)'>", sin_cos()._repr_html_()
    )
    label = parsed(sin_cos()._repr_svg_()).get("aria-label")
    assert image and label and unescape(image[1]) == label
    assert parsed(unquote(image[2])).get("aria-label") == label


@for_all(
    st.lists(st.tuples(*[st.floats(-2000, 2000)] * 2), min_size=4, max_size=10).filter(
        lambda points: len(points) % 3 == 1 and len(set(points)) > 1
    )
)
def test_steps_lead_where_the_curve_leads(points: list[tuple[float, float]]) -> None:
    """The short path syntax in images has the same points to a tenth of a pixel."""
    wanted = [float(n) for n in re.findall(r"-?[\d.]+", svg._path(points))]
    x = y = 0.0
    ends: list[float] = []
    for command, numbers in re.findall(r"([Mcml])([^Mcml]*)", svg._relative(points)):
        assert re.fullmatch(r"(?:(?:^| |(?=-))-?(?:\d+|\d*\.\d))*", numbers)
        values = [float(n) for n in re.findall(r"-?(?:\d*\.\d|\d+)", numbers)]
        for at in range(0, len(values), 2):
            point = [values[at] + x * (command != "M"), values[at + 1] + y * (command != "M")]
            ends += point
            if command != "c" or at % 6 == 4:
                x, y = point
    assert ends == pytest.approx(wanted, abs=0.11)


def test_an_image_says_what_the_document_says() -> None:
    """An image in a page has the same texts and boxes; only parts for scripts are gone."""
    graph = encoder(1)
    (whole,), (image,) = to_svgs([graph]), to_svgs([graph], plain=True)
    shown = [sorted(t.text or "" for t in parsed(d).iter(f"{NS}text")) for d in (whole, image)]
    legend = {meaning.meaning for meaning in COLOURS.values()}
    assert [t for t in shown[0] if t not in legend] == [t for t in shown[1] if t not in legend]
    boxes = [
        {(r.get("x"), r.get("y"), r.get("width")) for r in parsed(d).iter(f"{NS}rect") if r.get("rx") == "6"}
        for d in (whole, image)
    ]
    assert boxes[0] == boxes[1]
    assert len(image) < 0.8 * len(whole)


def test_an_edge_of_one_point_has_an_arrow() -> None:
    layout = place(Graph("dynamo", "", "", (given("x"), result("x"))))
    edge = replace(layout.edges[0], points=((5.0, 5.0),) * 4)
    document = to_svg(
        Graph("dynamo", "", "", (given("x"), result("x"))), layout=replace(layout, edges=(edge,))
    )
    assert "M5 5C5 5 5 5 5 5M" in document and "nan" not in document


# Colours


@pytest.mark.parametrize("kind", COLOURS)
def test_text_on_every_box_is_readable(kind: str) -> None:
    colour = COLOURS[kind]
    assert contrast(colour.fill, LIGHT.ink) >= 4.5
    assert contrast(colour.dark_fill, DARK.ink) >= 4.5
    # A box is separated from the page by its border; WCAG requires 3:1 for graphics that carry meaning.
    assert contrast(colour.line, LIGHT.paper) >= 3
    assert contrast(colour.dark_line, DARK.paper) >= 3


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_on_the_page_is_readable(theme: object) -> None:
    for name in ("ink", "quiet", "label"):
        assert contrast(getattr(theme, name), theme.paper) >= 4.5  # type: ignore[attr-defined]
    assert contrast(theme.on_saved, theme.saved) >= 4.5  # type: ignore[attr-defined]
    assert contrast(theme.edge, theme.paper) >= 3  # type: ignore[attr-defined]


def test_kinds_of_the_record_have_colours_and_others_are_other() -> None:
    kinds = re.findall(r"``(\w+)``", (Node.__doc__ or "").split("kind: ")[1].split("compute:")[0])
    assert len(kinds) == 17
    assert set(kinds) <= set(COLOURS)
    assert {kind: known_kind(kind) for kind in kinds} == {kind: kind for kind in kinds}
    assert known_kind('x" onload="alert(1)') == "other"
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize(
    "mark", ("\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\ufeff", "\x85", "\u2028")
)
def test_no_mark_turns_a_text_around(mark: str) -> None:
    """A name written right to left would appear as another one, in drawings and in their sources."""
    graph = samples.hostile(f"a{mark}b").compilations[0].graphs["dynamo"]
    for text in (graph.to_svg(title=f"t{mark}"), graph.to_dot().source, graph.to_pydot().to_string()):
        assert mark not in text
        assert f"{ord(mark):02x}" in text
