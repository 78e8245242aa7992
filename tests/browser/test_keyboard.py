"""The viewer without a mouse, and with high contrast."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture
from compile_lens.record.graph import Ref

from . import captures
from .keys import REACHABLE, Keys, Stop
from .pages import contrast
from .viewer import Viewer, expected, kernel_line

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]

_BESIDE = """
() => {
  for (const [id, place] of [["before", "prepend"], ["after", "append"]]) {
    const made = document.createElement("button");
    made.id = made.textContent = id;
    document.body[place](made);
  }
}
"""
"""A button of the page on each side of the app."""


@pytest.fixture
def opened(standalone: Standalone) -> Callable[[Capture], tuple[Viewer, Keys]]:
    """Return ``opened(capture)``, its saved page and the keyboard; nothing has the focus yet."""

    def open(capture: Capture) -> tuple[Viewer, Keys]:
        page = standalone(capture)
        return Viewer(page, capture), Keys(page)

    return open


Opened = Callable[[Capture], tuple[Viewer, Keys]]


def _many_panes(viewer: Viewer) -> None:
    viewer.open("joint", "forward", "forward.code")
    viewer.press("backward.groups", fusion=True)
    viewer.ready("backward.groups fusion")
    viewer.view("joint", "text")
    for name in ("sin", "cos"):
        viewer.click(viewer.thing(("0/0", "forward", name)))
    viewer.pane("forward").locator("button:text-is('neighbours')").click()
    viewer.find(".graph-query").fill("sin")


def _modules(viewer: Viewer) -> None:
    viewer.open("forward", "backward.code")
    viewer.pane("forward").locator("button:text-is('modules')").click()


def _broken(viewer: Viewer) -> None:
    viewer.choose(1)
    viewer.open("dynamo", "forward.code", compilation=1)


def _unseen(viewer: Viewer) -> None:
    folded = viewer.find("details:not([open]) > summary")
    while folded.count():
        folded.first.click()


WAYS: dict[str, tuple[Callable[[], Capture], Callable[[Viewer], None]]] = {
    "panes, pins and searches": (captures.sin_cos, _many_panes),
    "module boxes": (captures.mlp, _modules),
    "a graph break": (captures.graph_break, _broken),
    "a failure": (captures.failing, _unseen),
    "a stage that was not seen": (captures.softmax, _unseen),
}


@pytest.mark.parametrize(("made", "prepare"), WAYS.values(), ids=WAYS)
def test_tab_leads_through_everything_and_out_again(
    opened: Opened, made: Callable[[], Capture], prepare: Callable[[Viewer], None]
) -> None:
    viewer, keys = opened(made())
    prepare(viewer)
    viewer.leave()
    viewer.page.evaluate(_BESIDE)
    reachable = viewer.app.evaluate_handle(REACHABLE)
    wanted = reachable.evaluate("all => all.length")
    viewer.page.locator("#before").focus()
    stops = _walk(keys, wanted + 40)
    missed = reachable.evaluate(
        "(all, seen) => all.filter((e) => !seen.includes(e)).map((e) => e.outerHTML.slice(0, 200))",
        [stop.element for stop in stops],
    )
    assert missed == []
    for stop in stops:
        assert stop.inside and stop.name.strip(), stop
        # A line of text without a link is not a control.
        assert stop.role not in ("", "none") and (stop.role != "generic" or "listing-line" in stop.classes), (
            stop
        )
        assert stop.look != keys.look(stop.element), f"the focus does not show: {stop}"
        assert stop.outlined or "graph-opener" in stop.classes, stop
        assert stop.sides >= 2, f"the mark is cut off: {stop}"
    reached = {word for stop in stops for word in stop.classes.split()}
    assert {"flow-noun", "frame-close", "graph-stop", "resizer", "resizer-across"} <= reached
    # And backwards: no focus trap in the other direction either.
    viewer.page.locator("#after").focus()
    keys.press(*["Shift+Tab"] * (len(stops) + 1))
    assert keys.attribute("id") == "before"


def _walk(keys: Keys, most: int) -> list[Stop]:
    stops: list[Stop] = []
    for _ in range(most):
        keys.press("Tab")
        if keys.attribute("id") == "after":
            return stops
        stops.append(keys.stop())
    raise AssertionError(f"Tab does not lead out of the app, but on to {[s.name for s in stops[-3:]]}")


@pytest.mark.exhaustive
def test_a_chain_is_followed_by_keyboard_alone(opened: Opened) -> None:
    capture = captures.sin_cos()
    viewer, keys = opened(capture)
    dynamo, joint = viewer.number("dynamo"), viewer.number("joint")
    keys.to(".flow-all")
    keys.press("Enter")
    keys.to(f"button.card[data-stage='{joint}']")
    keys.press("Enter")
    viewer.ready("joint")
    # The list closes after a choice, and the focus returns to where it was opened.
    assert (joint, False) in viewer.shown() and keys.attribute("aria-expanded") == "false"
    keys.press("Enter")
    keys.to(f"button.card[data-stage='{joint}']")
    assert keys.attribute("aria-pressed") == "true"
    keys.press("Enter")
    assert (joint, False) not in viewer.shown() and keys.attribute("aria-expanded") == "false"
    keys.press("Enter")
    keys.to(f"button.card[data-stage='{dynamo}']", "Shift+Tab")
    keys.press("Space")
    viewer.ready("dynamo")
    # Into the drawing, and along its edges.
    keys.to(f".frame[data-stage='{dynamo}'] .graph-stop")
    assert _node(viewer, keys) == "l_x_"
    graph = capture.compilations[0].graphs["dynamo"]
    way = ["l_x_"]
    for _ in range(3):
        keys.press("ArrowDown")
        way.append(_node(viewer, keys))
        assert Ref(way[-2]) in graph[way[-1]].args, way
    assert way[-1] == "add"
    keys.press("ArrowUp")
    assert Ref(_node(viewer, keys)) in graph["add"].args
    beside = _node(viewer, keys)
    keys.press("ArrowRight" if beside == "pow_1" else "ArrowLeft")
    assert {beside, _node(viewer, keys)} == {"pow_1", "pow_2"}
    keys.press("End")
    assert _node(viewer, keys) == "output"
    keys.press("Home")
    assert _node(viewer, keys) == "l_x_"
    keys.press("ArrowDown")
    # The focus previews, Enter pins, Enter again unpins, Escape clears.
    address = ("0/0", "dynamo", _node(viewer, keys))
    wanted = expected(capture, [address])
    assert viewer.lit("dynamo", by=".lit-hover") == wanted["0/0 dynamo"] and viewer.pins() == []
    keys.press("Enter")
    assert viewer.pins() == [address[2]] and keys.attribute("aria-pressed") == "true"
    viewer.whole()
    assert viewer.lit("forward.code", by=".lit-pin-0") == wanted["0/0 forward.code"]
    keys.press("Enter")
    assert viewer.pins() == [] and keys.attribute("aria-pressed") == "false"
    keys.press("Space")
    assert viewer.lit("dynamo", by=".lit-pin-0") == wanted["0/0 dynamo"]
    keys.press("Escape")
    assert viewer.pins() == [] and viewer.lit("forward.code") == []
    assert _node(viewer, keys) == address[2], "the focus stays"


def _node(viewer: Viewer, keys: Keys) -> str:
    """Return the name of the node that has the focus."""
    item = keys.focused().evaluate("e => +e.closest('.node').dataset.item")
    return viewer.address(item)[2]


def test_lines_of_code_by_keyboard(opened: Opened) -> None:
    capture = captures.mlp()
    viewer, keys = opened(capture)
    viewer.open("forward", "forward.code")
    frame = f".frame[data-stage='{viewer.number('forward.code')}']"
    # The kernels are one Tab stop; arrow keys choose.
    keys.to(f"{frame} .code-kernels")
    keys.press("Enter")
    keys.to(f"{frame} .code-tab")
    names = [kernel.name for kernel in capture.compilations[0].code["forward"].kernels]
    keys.press("End")
    for name in names:
        keys.press("ArrowDown")
        assert keys.attribute("title") == name and keys.attribute("aria-selected") == "true"
    keys.press("Home")
    assert keys.attribute("title") == names[0]
    keys.to(f"{frame} .code-module")
    keys.press("Enter")
    assert keys.attribute("aria-pressed") == "true"
    # The listing is one stop, too.
    keys.to(f"{frame} [data-row]")
    keys.press("Home")
    assert keys.attribute("aria-expanded") == "false", "a fold is a row"
    keys.press("Enter")
    assert keys.attribute("aria-expanded") == "true"
    keys.press("Enter")
    address = kernel_line(capture, "forward.code", "erf")
    item = str(viewer.item(address))
    for _ in range(200):
        keys.press("ArrowDown")
        if keys.attribute("data-item") == item:
            break
    assert keys.attribute("data-item") == item
    wanted = expected(capture, [address])
    assert viewer.lit("forward") == wanted["0/0 forward"]
    keys.press("Enter")
    assert viewer.lit("forward", by=".lit-pin-0") == wanted["0/0 forward"]
    assert keys.attribute("aria-pressed") == "true"
    keys.press("PageDown")
    assert keys.attribute("data-item") != item
    keys.press("Escape")
    assert viewer.pins() == []
    assert viewer.find(".chip").count() == 0


def test_borders_move_with_arrows(opened: Opened) -> None:
    viewer, keys = opened(captures.sin_cos())
    viewer.open("python", "forward")
    left, right = viewer.pane("python"), viewer.pane("forward")
    line = keys.to(".resizer:not(.resizer-across)")
    assert keys.attribute("aria-orientation") == "vertical"

    def widths() -> tuple[float, float]:
        bounds = [pane.bounding_box() for pane in (left, right)]
        return tuple(box["width"] for box in bounds if box)  # type: ignore[return-value]

    before = widths()
    keys.press("ArrowRight", "ArrowRight")
    after = widths()
    moved = after[0] - before[0]
    assert moved >= 20 and abs(after[1] - before[1] + moved) < 1
    assert abs(float(line.get_attribute("aria-valuenow") or 0) - after[0]) <= 1
    keys.press("ArrowLeft")
    assert before[0] < widths()[0] < after[0]
    keys.press("Home")
    assert abs(widths()[0] - float(line.get_attribute("aria-valuemin") or 0)) < 1
    keys.press("End")
    assert abs(widths()[0] - float(line.get_attribute("aria-valuemax") or 0)) < 1
    keys.press("Enter")
    assert abs(widths()[0] - before[0]) < 1
    keys.to(".resizer-across")
    assert keys.attribute("aria-orientation") == "horizontal"
    row = viewer.find(".panes-row")
    heights = [row.evaluate("e => e.offsetHeight")]
    keys.press("ArrowDown", "ArrowDown")
    heights.append(row.evaluate("e => e.offsetHeight"))
    keys.press("ArrowUp", "ArrowUp", "ArrowUp")
    heights.append(row.evaluate("e => e.offsetHeight"))
    assert heights[2] < heights[0] < heights[1]


def test_graphs_by_keyboard(opened: Opened) -> None:
    capture = captures.mlp()
    viewer, keys = opened(capture)
    viewer.open("forward")
    pane = viewer.pane("forward")
    scale = pane.locator(".graph-scale")
    # Search: Enter moves through the matches, and the first Escape empties the field.
    field = keys.to(".graph-query")
    viewer.page.keyboard.type("erf")
    for which in ("1 of 2", "2 of 2", "1 of 2"):
        keys.press("Enter")
        assert pane.locator(".graph-count").inner_text() == which
    assert pane.locator(".node .ring.at").count() == 1
    keys.press("Escape")
    assert field.input_value() == "" and pane.locator(".node .ring").count() == 0
    keys.press("Escape")
    assert keys.focused().evaluate("e => e.matches('.graph-stop')")
    # Zoom and neighbours.
    before = scale.inner_text()
    keys.press("+")
    assert scale.inner_text() != before
    keys.press("-")
    assert scale.inner_text() == before
    keys.press("n")
    assert pane.locator(".graph-narrow").is_visible()
    assert 0 < pane.locator(".node.near").count() < pane.locator(".node").count()
    keys.press("Escape")
    assert not pane.locator(".graph-narrow").is_visible() and pane.locator(".node.near").count() == 0
    # Boxes open and close.
    keys.to("button[aria-label^='modules']", "Shift+Tab")
    keys.press("Enter")
    keys.to(".graph-stop")
    for _ in range(10):
        if keys.focused().evaluate("e => e.nextElementSibling?.matches('.graph-opener')"):
            break
        keys.press("ArrowDown")
    closed = pane.locator(".node").count()
    assert pane.locator(".node.open").count() == 0
    keys.press("o")
    assert pane.locator(".node.open").count() == 1
    viewer.page.wait_for_function(
        "([app, closed]) => app.shadowRoot.querySelectorAll('.graph-svg .node').length > closed",
        arg=[viewer.app.element_handle(), closed],
    )
    keys.press("ArrowDown")
    assert keys.focused().evaluate("e => e.closest('.node.open') !== null"), "down leads inside"
    keys.press("ArrowUp", "o")
    assert pane.locator(".node.open").count() == 0 and pane.locator(".node").count() == closed


def test_tabs_of_compilations_by_keyboard(opened: Opened) -> None:
    capture = captures.graph_break()
    viewer, keys = opened(capture)
    keys.to(".flow-which")
    keys.press("Enter")
    keys.to(".tab[tabindex='0']")
    keys.press("ArrowRight")
    assert keys.attribute("aria-selected") == "true"
    assert viewer.chip("dynamo", 1).is_visible() and viewer.chip("dynamo", 0).count() == 0
    keys.press("ArrowRight")
    assert viewer.chip("dynamo", 0).is_visible()
    keys.press("Escape")
    assert keys.focused().evaluate("e => e.className") == "flow-which", "Escape closes the list"
    # Closing a pane moves the focus to its chip.
    number = viewer.number("forward")
    keys.to(f".frame[data-stage='{number}'] .frame-close")
    keys.press("Enter")
    assert keys.attribute("data-stage") == str(number) and keys.attribute("aria-pressed") == "false"


_TEXTS = """
app => {
  const root = app.shadowRoot;
  const shell = root.querySelector(".shell");
  const known = new Map();
  const parent = (node) => node.parentElement ?? node.getRootNode().host ?? null;
  const grounds = (element) => {
    const all = [];
    for (let at = element; at; at = parent(at)) all.push(getComputedStyle(at).backgroundColor);
    return all.join();
  };
  const take = (key, make, says) => {
    if (known.has(key)) return;
    const probe = make();
    probe.dataset.probe = String(known.size);
    known.set(key, says);
  };
  // A text of its own, for what is no HTML element: drawn texts, pseudo-elements.
  const stand = (where, color, background) => {
    const made = document.createElement("span");
    made.textContent = "x";
    made.style.cssText = `color:${color};background-color:${background ?? "transparent"}`;
    where.append(made);
    return made;
  };
  for (const e of [...root.querySelectorAll("*")]) {
    if (e.closest("style, title, .unseen, option, :disabled")) continue;
    const style = getComputedStyle(e);
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height || !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const says = `${e.localName}.${e.getAttribute("class") ?? ""}: ${(e.textContent ?? "").trim().slice(0, 40)}`;
    const own = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (e instanceof SVGElement) {
      if (!own) continue;
      let ground = e.previousElementSibling;
      while (ground && (ground.matches("text, title") || getComputedStyle(ground).fill === "none")) ground = ground.previousElementSibling;
      const fill = ground ? getComputedStyle(ground).fill : "transparent";
      take(`svg ${style.fill} ${fill}`, () => stand(e.closest(".graph-view, .fusion").parentElement, style.fill, fill), says);
      continue;
    }
    if (own || e.matches("input, select")) take(`${style.color} ${grounds(e)}`, () => e, says);
    for (const part of ["::before", "::after"]) {
      const drawn = getComputedStyle(e, part);
      if (/^"\\s*[^"\\s]/.test(drawn.content)) take(`${part} ${drawn.color} ${grounds(e)}`, () => stand(e, drawn.color), `${says} ${part}`);
    }
    if (e.matches("input") && e.placeholder) {
      const { color } = getComputedStyle(e, "::placeholder");
      take(`placeholder ${color} ${grounds(e)}`, () => stand(shell, color, style.backgroundColor), `${says} placeholder`);
    }
  }
  return [...known.values()];
}
"""  # noqa: E501
"""Marks one element for each combination of text colours in the app, and returns these."""


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
@pytest.mark.parametrize(("made", "prepare"), WAYS.values(), ids=WAYS)
def test_texts_stand_out(
    opened: Opened, made: Callable[[], Capture], prepare: Callable[[Viewer], None], colour_scheme: str
) -> None:
    viewer, _ = opened(made())
    if made is captures.sin_cos:
        viewer.open("python", "forward", "forward.code")
        for name in ("primals_1", "sin", "pow_1", "cos", "pow_2", "add"):
            viewer.click(viewer.thing(("0/0", "forward", name)))
        viewer.thing(("0/0", "forward", "output")).hover()
        viewer.frame()
    else:
        prepare(viewer)
    texts = viewer.app.evaluate(_TEXTS)
    assert len(texts) >= 10
    weak = {}
    for number, says in enumerate(texts):
        ratio = contrast(viewer.find(f"[data-probe='{number}']"))
        if ratio < 4.5:
            weak[says] = round(ratio, 2)
    assert weak == {}
