"""Graphs in the viewer: their nodes, boxes and cut edges, and navigation through them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from compile_lens import Capture, capture
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Node, Ref
from compile_lens.views.live.index import modules

from . import captures
from .viewer import Viewer, box, expected, through

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[Capture], Viewer]


@functools.cache
def deep() -> Capture:
    """Return a chain of fifty operators with an edge past all of them."""
    import torch

    def f(x: Any) -> Any:
        y = x
        for _ in range(50):
            y = torch.sin(y)
        return y + torch.exp(x)

    return capture(f, torch.rand(10))


@functools.cache
def branches() -> Capture:
    """Return a higher-order operator: two graphs within a graph."""
    import torch

    def f(x: Any) -> Any:
        def up(x: Any) -> Any:
            return torch.sin(x) * 2

        def down(x: Any) -> Any:
            return torch.cos(x) + 1

        return torch.cond(x.sum() > 0, up, down, (x,)) + 1

    return capture(f, torch.rand(10))


def _compilation(shown: Capture) -> Compilation:
    (only,) = shown.compilations
    return only


def test_drawn_nodes_are_those_of_the_record(viewer: Open) -> None:
    shown = captures.mlp()
    page = viewer(shown)
    page.open("forward", "backward.groups")
    for key in ("forward", "backward.groups"):
        graph = _compilation(shown).graphs[key]
        boxes = page.pane(key).locator(".node > .graph-stop")
        labels = boxes.evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
        assert sorted(label.split(", ")[0] for label in labels) == sorted(node.name for node in graph.nodes)
        saved = [label.split(", ")[0] for label in labels if label.endswith("saved for backward")]
        assert sorted(saved) == sorted(graph.saved)
        assert page.pane(key).locator(".badge").count() == len(graph.saved)
        label = page.pane(key).locator(".graph-svg").get_attribute("aria-label") or ""
        assert f"{len(graph.nodes)} nodes" in label


def test_module_boxes_open_and_close(viewer: Open) -> None:
    shown = captures.mlp()
    page = viewer(shown)
    page.open("forward")
    pane = page.pane("forward")
    whole = pane.locator(".node").count()
    pane.locator("button:text-is('modules')").click()
    nodes = pane.locator(".node")
    openers = pane.locator(".node:not(.open) > .graph-opener")
    page.page.wait_for_function(
        "app => app.shadowRoot.querySelectorAll('.graph-opener').length > 0", arg=page.app.element_handle()
    )
    closed, boxes = nodes.count(), openers.count()
    assert closed < whole
    seen, paths = page.seen("forward"), modules(page.items)
    owners = {paths[seen.item(name)][0].partition(".")[0] for name in seen.names} - {""}
    assert boxes == len(owners) == 2
    openers.first.click()
    assert pane.locator(".node.open").count() == 1
    page.page.wait_for_function(
        "([app, n]) => app.shadowRoot.querySelectorAll('.node').length > n",
        arg=[page.app.element_handle(), closed],
    )
    inside = pane.locator(".node.open .node")
    assert inside.count() == nodes.count() - closed > 0
    assert nodes.evaluate_all(_OVERLAPS) == []
    pane.locator(".node.open > .graph-opener").first.click()
    assert nodes.count() == closed and pane.locator(".node.open").count() == 0
    # A double click opens as well, and pins nothing.
    pane.locator(".node:has(> .graph-opener) > .graph-stop").last.dblclick()
    assert pane.locator(".node.open").count() == 1
    assert page.pins() == []
    level = pane.locator("button:text-is('open level')")
    while level.is_enabled():
        level.click()
        page.frame()
    assert pane.locator(".node:not(.open)").count() == whole, "with every box open each node is there"
    assert nodes.evaluate_all(_OVERLAPS) == []
    pane.locator("button:text-is('close all')").click()
    assert nodes.count() == closed
    pane.locator("button:text-is('modules')").click()
    page.ready("forward")
    assert nodes.count() == whole


_OVERLAPS = """
nodes => {
  const places = nodes.filter((e) => !e.classList.contains("open")).map((e) => {
    const at = e.querySelector(":scope > .graph-stop > .face").getBoundingClientRect();
    return [e.textContent.slice(0, 20), at];
  });
  const found = [];
  for (const [i, [one, a]] of places.entries()) for (const [other, b] of places.slice(i + 1)) {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1 && down > 1) found.push([one, other]);
  }
  return found;
}
"""
"""Pairs of boxes that overlap."""


def test_nodes_are_found(viewer: Open) -> None:
    shown = captures.mlp()
    page = viewer(shown)
    page.open("forward")
    pane = page.pane("forward")
    graph = _compilation(shown).graphs["forward"]
    seen, paths = page.seen("forward"), modules(page.items)

    def shape(node: Node) -> list[str]:
        return ["x".join(map(str, tensor.shape)) for tensor in node.outputs]

    queries: dict[str, Callable[[Node], bool]] = {
        "name:mul_": lambda node: "mul_" in node.name,
        "op:aten.mul": lambda node: "aten.mul" in node.target,
        "shape:8x32": lambda node: any("8x32" in one for one in shape(node)),
        'shape:"[8, 32]" op:erf': lambda node: "erf" in node.target and "8x32" in shape(node),
        "dtype:float32": lambda node: any(tensor.dtype == "float32" for tensor in node.outputs),
        "module:second": lambda node: "second" in paths[seen.item(node.name)][0],
        "addmm": lambda node: "addmm" in f"{node.name} {node.target}",
        "nothing like this": lambda node: False,
    }
    field = pane.locator(".graph-query")
    for query, wanted in queries.items():
        field.fill(query)
        names = sorted(node.name for node in graph.nodes if wanted(node))
        text = pane.locator(".graph-count").inner_text()
        assert text == (f"{len(names)} found" if names else "none"), query
        ringed = pane.locator(".node:has(> .extra > .ring)")
        items = ringed.evaluate_all("all => all.map(e => +e.dataset.item)")
        assert sorted(page.address(item)[2] for item in items) == names, query
    # The arrows lead to nodes out of view, also inside a closed box.
    field.fill("module:second erf")
    pane.locator("button:text-is('modules')").click()
    assert pane.locator(".tally").count() == 1
    pane.locator("button[aria-label='next match']").click()
    current = pane.locator(".node:has(> .extra > .ring.at)")
    current.wait_for()
    assert page.address(int(current.last.get_attribute("data-item") or ""))[2] == "erf_1"
    assert _within(current.last, pane.locator(".graph-view"))


def _within(thing: Locator, view: Locator) -> bool:
    one, other = box(thing), box(view)
    return (
        other["x"] - 1 <= one["x"]
        and other["y"] - 1 <= one["y"]
        and one["x"] + one["width"] <= other["x"] + other["width"] + 1
        and one["y"] + one["height"] <= other["y"] + other["height"] + 1
    )


def test_a_large_drawing_has_a_map(viewer: Open) -> None:
    page = viewer(deep())
    page.open("inference", "inference.loops")
    pane = page.pane("inference")
    assert not page.pane("inference.loops").locator(".graph-map").is_visible(), "a small one needs none"
    window = pane.locator(".map-window")
    assert not pane.locator(".graph-map").is_visible(), "nothing covers a graph that no one moves"
    pane.locator(".graph-view").evaluate("e => { e.scrollTop += 5 }")
    pane.locator(".graph-map").wait_for(state="visible")
    pane.locator("button:text-is('map')").click()
    before = float(window.get_attribute("y") or 0)
    at = box(pane.locator(".graph-map svg"))
    page.page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] - 4)
    page.frame()
    assert float(window.get_attribute("y") or 0) > before
    last = pane.locator(".node").last
    assert _within(last, pane.locator(".graph-view"))
    pane.locator("button:text-is('map')").click()
    assert not pane.locator(".graph-map").is_visible()
    # A drawing that fits needs no map.
    pane.locator("button:text-is('map')").click()
    pane.locator("button:text-is('fit')").click()
    page.frame()
    assert not pane.locator(".graph-map").is_visible()
    view, drawing = box(pane.locator(".graph-view")), box(pane.locator(".graph-room"))
    assert drawing["height"] <= view["height"] + 1
    pane.locator(".graph-scale").click()
    assert pane.locator(".graph-scale").inner_text() == "100%"


def test_a_cut_edge_says_where_it_leads_and_goes_there(viewer: Open) -> None:
    shown = deep()
    page = viewer(shown)
    page.open("inference")
    pane = page.pane("inference")
    stubs = pane.locator(".stub > .graph-stop")
    assert stubs.count() == 2
    labels = sorted(stubs.evaluate_all("all => all.map(e => e.getAttribute('aria-label'))"))
    (add,) = (n for n in _compilation(shown).graphs["inference"].nodes if n.name == "add")
    (exp,) = (n for n in _compilation(shown).graphs["inference"].nodes if n.name == "exp")
    names = {add.name, exp.name, "arg0_1"}
    for label in labels:
        owner, _, rest = label.partition(": cut edge ")
        assert owner in names and rest.split(" ")[1].strip(";") in names, label
    # From the top to the bottom, and back.
    out = pane.locator(".stub > .graph-stop[aria-label*='cut edge to']")
    target = (out.get_attribute("aria-label") or "").partition("cut edge to ")[2].partition(";")[0]
    out.click()
    arrived = pane.locator(f".node[data-item='{page.item(('0/0', 'inference', target))}']")
    page.page.wait_for_function(
        "e => e.getRootNode().activeElement?.closest('.node') === e", arg=arrived.element_handle()
    )
    assert _within(arrived, pane.locator(".graph-view"))
    assert page.pins() == []


@pytest.mark.exhaustive
def test_graphs_within_a_graph(viewer: Open) -> None:
    shown = branches()
    page = viewer(shown)
    page.open("inference", "inference.post_grad", "inference.code")
    pane = page.pane("inference")
    graph = _compilation(shown).graphs["inference"]
    scenes = pane.locator(".graph-scene")
    assert scenes.locator("option").all_inner_texts() == ["inference", *(name for name, _ in graph.subgraphs)]
    name, body = graph.subgraphs[1]
    scenes.select_option(label=name)
    _drawn(page, "inference", len(body.nodes))
    items = pane.locator(".node").evaluate_all("all => all.map(e => +e.dataset.item)")
    assert sorted(page.address(item)[2] for item in items) == sorted(f"{name}/{n.name}" for n in body.nodes)
    address = ("0/0", "inference", f"{name}/cos")
    page.click(page.thing(address))
    page.frame()
    # The pane beside it follows into the graph that contains the match.
    wanted = expected(shown, [address])
    beside = page.pane("inference.post_grad").locator(".graph-scene")
    assert beside.evaluate("e => e.selectedOptions[0].textContent") == name
    assert page.lit("inference.post_grad") == wanted["0/0 inference.post_grad"] == [address[2]]
    assert page.lit("inference.code") == wanted["0/0 inference.code"]
    assert page.listed() == through(shown, [address])
    # Another graph is shown if it contains the search term.
    scenes.select_option(label="inference")
    _drawn(page, "inference", len(graph.nodes))
    pane.locator(".graph-query").fill("name:cos")
    pane.locator(".graph-query").press("Enter")
    assert scenes.evaluate("e => e.selectedOptions[0].textContent") == name


def _drawn(page: Viewer, key: str, count: int) -> None:
    page.page.wait_for_function(
        "([svg, n]) => svg.querySelectorAll('.node').length === n",
        arg=[page.pane(key).locator(".graph-svg").element_handle(), count],
    )


def test_neighbours_of_a_node(viewer: Open) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    page.open("joint")
    pane = page.pane("joint")
    page.click(page.thing(("0/0", "joint", "pow_4")))
    pane.locator("button:text-is('neighbours')").click()
    graph = _compilation(shown).graphs["joint"]
    reads = {node.name: _reads(node) for node in graph.nodes}
    users = {name: {n for n in reads if name in reads[n]} for name in reads}
    up, down = {"pow_4"}, {"pow_4"}
    for steps in (1, 2):
        pane.locator(f".graph-narrow button:text-is('{steps}')").click()
        up |= set().union(*(reads[name] for name in up))
        down |= set().union(*(users[name] for name in down))
        items = pane.locator(".node.near").evaluate_all("all => all.map(e => +e.dataset.item)")
        assert {page.address(item)[2] for item in items} == up | down, steps
    pane.locator("button:text-is('show all')").click()
    assert pane.locator(".node.near").count() == 0


def _reads(node: Node) -> set[str]:
    def names(value: object) -> set[str]:
        if isinstance(value, Ref):
            return {value.name}
        return set().union(*map(names, value)) if isinstance(value, tuple) else set()

    return names(node.args) | names(tuple(value for _, value in node.kwargs))


def test_the_ground_is_dragged_and_zoomed(viewer: Open) -> None:
    page = viewer(deep())
    page.open("inference", "inference.code")
    pane = page.pane("inference")
    view = pane.locator(".graph-view")
    at = box(view)
    x, y = at["x"] + 20, at["y"] + at["height"] - 30
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x, y - 150, steps=3)
    page.page.mouse.up()
    assert view.evaluate("e => e.scrollTop") == pytest.approx(150, abs=2)
    assert page.pins() == []
    scale = pane.locator(".graph-scale")
    before = scale.inner_text()
    page.page.keyboard.down("Control")
    page.page.mouse.wheel(0, -120)
    page.page.keyboard.up("Control")
    page.page.wait_for_function(
        "([e, before]) => e.textContent !== before", arg=[scale.element_handle(), before]
    )
    assert int(scale.inner_text().rstrip("%")) > int(before.rstrip("%"))


@functools.cache
def layers() -> Capture:
    """Return three equal layers, without a gradient."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x: Any) -> Any:
            y = self.up(self.norm(x))
            for _ in range(8):
                y = torch.sin(y) + torch.cos(y)
            return x + self.down(y)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(3))

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    with torch.no_grad():
        return capture(Net(), torch.rand(4, 16))


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
@pytest.mark.parametrize("made", [captures.sin_cos, captures.layer, layers])
def test_a_graph_opens_so_that_it_can_be_read(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    pane = page.find(".frame:has(.graph-pane)")
    pane.locator(".node .name").first.wait_for()
    page.frame()
    scale = int(pane.locator(".graph-scale").inner_text().rstrip("%"))
    assert 100 <= scale <= 135
    sizes: dict[str, list[float]] = pane.locator(".graph-svg").evaluate(
        """
        (svg) => {
          const scale = svg.firstElementChild.getScreenCTM().a;
          const of = (selector) => [...svg.querySelectorAll(selector)].map(
            (e) => scale * parseFloat(getComputedStyle(e).fontSize));
          return { words: of(".name, .target, .small, .heading, .halo text"), all: of("text") };
        }
        """
    )
    assert min(sizes["words"]) > 11.99 and min(sizes["all"]) > 9.99


def test_a_kernel_is_one_ground_under_its_nodes_and_says_so(viewer: Open) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    pane = page.pane("forward")
    halo = pane.locator(".halo")
    halo.first.wait_for(state="attached")
    (kernel,) = shown.compilations[0].code["forward"].kernels
    assert halo.count() == 1
    assert halo.get_attribute("data-kernel") == str(page.item(("0/0", "forward.code", kernel.name)))
    assert halo.locator("text").all_text_contents() == ["5 ops, 1 kernel", "inlined into 1 loop"]
    grounds = [box(one) for one in halo.locator("rect").all()]
    names = {call.name for call in shown.compilations[0].graphs["forward"].calls}
    nodes = [
        box(pane.locator(f"[data-item='{page.item(('0/0', 'forward', n))}'] .face").first) for n in names
    ]
    assert len(grounds) == len(nodes) == 5
    for node in nodes:
        assert any(g["x"] < node["x"] and node["x"] + node["width"] < g["x"] + g["width"] for g in grounds)
    words = box(halo.locator("text").first)
    for face in pane.locator(".face").all():
        at = box(face)
        beside = at["x"] >= words["x"] + words["width"] or at["x"] + at["width"] <= words["x"]
        assert beside or at["y"] >= words["y"] + words["height"] or at["y"] + at["height"] <= words["y"]


def test_no_ground_joins_what_two_kernels_compute(viewer: Open) -> None:
    shown = captures.mlp()
    page = viewer(shown)
    page.open("forward")
    pane = page.pane("forward")
    pane.locator(".halo").first.wait_for(state="attached")
    code = shown.compilations[0].code["forward"]
    assert pane.locator(".halo").count() <= sum(kernel.language != "extern" for kernel in code.kernels)
    assert not any("library" in text for text in pane.locator(".halo title").all_text_contents())


def test_of_equal_layers_the_first_is_open_and_the_others_say_so(viewer: Open) -> None:
    page = viewer(layers())
    page.open("inference")
    pane = page.pane("inference")
    pane.locator(".node.open, .graph-frame").first.wait_for(state="attached")
    assert pane.locator(".graph-frame").count() == 1
    assert pane.locator(".heading").all_text_contents() == ["layers.0 = layers.1 = layers.2"]
    texts = [text for text in pane.locator(".target").all_text_contents() if text.startswith("= ")]
    assert [text.partition(",")[0] for text in texts] == ["= layers.0"] * 2
    parts = [text for text in pane.locator(".small").all_text_contents() if "launch" in text]
    assert len(parts) >= 2 and all(re.fullmatch(r"\d+ launch(es)?, ~.* k?B", text) for text in parts), parts


@functools.cache
def blocks() -> Capture:
    """Return four blocks of two branches, forward and backward: wider and higher than a pane."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 64), nn.Linear(64, 16)
            self.gate = nn.Linear(16, 64)

        def forward(self, x: Any) -> Any:
            y = self.norm(x)
            gate = torch.sigmoid(self.gate(y))
            up = torch.relu(self.up(y))
            both = gate * up
            down = self.down(both)
            return x + down

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.place = nn.Embedding(100, 16), nn.Embedding(32, 16)
            self.blocks = nn.ModuleList(Block() for _ in range(4))

        def forward(self, ids: Any) -> Any:
            x = self.embedding(ids)
            place = self.place(torch.arange(ids.shape[1]))
            x = x + place
            for block in self.blocks:
                x = block(x)
            return x

    return capture(Net(), torch.randint(0, 100, (2, 32)))


@pytest.mark.parametrize("viewport", [(1280, 720)])
@pytest.mark.exhaustive
def test_a_transformer_opens_on_its_first_layer(viewer: Open, viewport: tuple[int, int]) -> None:
    """The layer's name is in view although it is wider than the pane, and its computation is in the middle."""
    page = viewer(blocks())
    pane = page.find(".frame:has(.graph-pane)")
    pane.locator(".heading").first.wait_for()
    page.frame()
    view, heading = box(pane.locator(".graph-view")), pane.locator(".heading").first
    assert (heading.text_content() or "").startswith("blocks.0 = blocks.1 = blocks.2")
    name, frame = box(heading), box(pane.locator(".graph-frame").first)
    assert frame["width"] > view["width"]
    assert view["x"] <= name["x"] and name["x"] + name["width"] <= view["x"] + view["width"]
    assert view["y"] <= name["y"] and name["y"] + name["height"] <= view["y"] + view["height"]
    assert pane.locator(".graph-view").evaluate("e => e.scrollTop") == 0
    faces = [box(one) for one in pane.locator(".node:not(.open) > .graph-stop > .face:not(.back)").all()]
    inside = [f for f in faces if frame["y"] < f["y"] < view["y"] + view["height"]]
    middle = view["x"] + view["width"] / 2
    assert inside and any(f["x"] < middle < f["x"] + f["width"] for f in inside)
    # It follows the window's size.
    pane.locator(".graph-view").evaluate("e => e.scrollBy(60, 0)")
    page.frame()
    moved = box(heading)
    assert box(pane.locator(".graph-frame").first)["x"] < view["x"] <= moved["x"] < view["x"] + 30
