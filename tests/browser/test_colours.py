"""Colours visible without a click: a colour and a tag for each unit of work, the same in source, graph and kernel."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture
from compile_lens.measures.source_units import units
from compile_lens.views.words.palette import UNITS

from . import captures
from .viewer import Viewer, box, kernel_line, python_line

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[Capture], Viewer]


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def ground(element: Locator) -> str:
    return str(element.evaluate("e => getComputedStyle(e).backgroundColor"))


def fill(element: Locator) -> str:
    return str(element.evaluate("e => getComputedStyle(e).fill"))


def bar(page: Viewer, key: str, line: Locator) -> str:
    """Return the bar at the left of a line."""
    row = line.get_attribute("data-row")
    number = page.pane(key).locator(f".listing-number[data-row='{row}']")
    return str(number.evaluate("e => getComputedStyle(e).backgroundImage"))


def tags(elements: Locator) -> list[str]:
    names: list[str] = elements.evaluate_all("all => all.map(e => e.dataset.tag)")
    return names


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
def test_calls_of_one_line_have_one_colour_everywhere(viewer: Open, colour_scheme: str) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    page.open("python", "forward", "forward.code")
    texts = {"sin": "sin()", "pow_1": "tmp1 * tmp1", "cos": "cos()", "pow_2": "tmp3 * tmp3", "add": "tmp2 +"}
    seen = set()
    for number, (name, text) in enumerate(texts.items()):
        colour = UNITS[number]
        wanted = rgb(colour.fill if colour_scheme == "light" else colour.dark_fill)
        strip = rgb(colour.bar if colour_scheme == "light" else colour.dark_bar)
        call = (
            page.pane("python")
            .locator(".call[role=button]")
            .nth(
                page.pane("python")
                .locator(".call[role=button]")
                .evaluate_all(
                    "(all, name) => all.findIndex(e => e.ariaLabel.startsWith(`call ${name}:`))", name
                )
            )
        )
        assert ground(call) == wanted
        face = page.pane("forward").locator(
            f"[data-item='{page.item(('0/0', 'forward', name))}'] > .graph-stop > .face"
        )
        assert fill(face) == wanted
        line = page.thing(kernel_line(capture, "forward.code", text))
        assert strip in bar(page, "forward.code", line)
        assert name in tags(line.locator(".tag"))
        below = page.pane("python").locator(".call-name").nth(number)
        assert below.is_visible()
        seen.add(wanted)
    assert len(seen) == 5
    assert sorted(tags(page.pane("python").locator(".call-name"))) == sorted(texts)
    load = page.thing(kernel_line(capture, "forward.code", "loadu"))
    assert tags(load.locator(".tag")) == ["sin", "cos"], "what serves two says both"
    assert bar(page, "forward.code", load).count("rgb(") == 4, "and its bar is split"


def test_names_below_a_line_do_not_cover_each_other(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    page.open("python")
    boxes = [e.bounding_box() for e in page.pane("python").locator(".call-name").all()]
    spans = sorted((b["x"], b["x"] + b["width"]) for b in boxes if b)
    assert len(spans) == 5
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_lines_have_a_colour_each_where_there_are_several(viewer: Open) -> None:
    capture = captures.rematerialised()
    page = viewer(capture)
    page.open("python", "forward", "forward.code")
    parts = units(capture)["0/0"].all
    assert len(parts) == 2 and all(unit.column is None for unit in parts)
    for number, text in enumerate(("torch.relu(", "torch.sigmoid(")):
        item = page.item(python_line(capture, text))
        line = page.pane("python").locator(f".listing-line[data-item='{item}']")
        assert "coloured" in (line.get_attribute("class") or "")
        assert rgb(UNITS[number].bar) in bar(page, "python", line)
    texts = page.pane("forward").locator(".on-unit-tag").all_text_contents()
    assert set(texts) == {unit.tag for unit in parts}, "a box says which line it came from"


def test_modules_of_a_single_call_have_a_colour_each_and_their_names_stand_on_the_line(viewer: Open) -> None:
    capture = captures.wrapped()
    page = viewer(capture)
    page.open("python", "forward", "forward.code")
    item = page.item(python_line(capture, "return self.net(x)"))
    line = page.pane("python").locator(f".listing-line[data-item='{item}']")
    names = ["net.0", "net.1", "net.2"]
    assert tags(line.locator(".tag")) == names
    assert all(rgb(colour.bar) in bar(page, "python", line) for colour in UNITS[:3])
    assert set(page.pane("forward").locator(".on-unit-tag").all_text_contents()) == set(names)
    tanh = page.pane("forward.code").locator(".listing-line", has_text="tanh()")
    assert tags(tanh.first.locator(".tag")) == ["net.1"]


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (390, 844)])
@pytest.mark.exhaustive
def test_names_of_modules_leave_their_line_to_be_read(viewer: Open, viewport: tuple[int, int]) -> None:
    """A row of names is below the line; names that do not fit are counted, and none overlaps another."""
    page = viewer(captures.sequence())
    line = page.pane("python").locator(".listing-line", has_text="return self.")
    text, *tags = map(box, (line, *line.locator(".tag").all()))
    pane = box(page.pane("python"))
    written = line.evaluate(
        "(e) => { const r = document.createRange(); r.setStart(e, 0);"
        " r.setEndBefore([...e.children].find((c) => c.querySelector('.tag')) ?? null);"
        " const { right, bottom } = r.getBoundingClientRect(); return { right, bottom }; }"
    )
    assert len(tags) >= 5 and written["right"] <= pane["x"] + pane["width"]
    for one in tags:
        assert one["y"] >= written["bottom"] - 2, "below the text"
        assert one["x"] + one["width"] <= pane["x"] + pane["width"]
        assert one["y"] + one["height"] <= text["y"] + text["height"]
    for one in tags:
        for other in tags:
            if one is not other and abs(one["y"] - other["y"]) < 2:
                assert one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]


def test_a_name_of_a_module_lights_what_that_module_computes_alone(viewer: Open) -> None:
    capture = captures.wrapped()
    page = viewer(capture)
    page.open("python", "forward", "forward.code")
    page.pane("python").locator(".tag[data-tag='net.1']").click()
    page.leave()
    page.frame()
    assert page.pins() == ["net.1"]
    assert page.pane("forward.code").locator(".listing-line.lit", has_text="tanh()").count() > 0
    assert page.pane("forward.code").locator(".listing-line.lit", has_text="exp()").count() == 0


_EDGE = """
(e) => {
  const { borderStyle, outlineStyle, strokeDasharray, backgroundColor } = getComputedStyle(e);
  return [backgroundColor, [borderStyle, outlineStyle, strokeDasharray].some((one) => /dashed|px/.test(one))];
}
"""


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
def test_a_colour_that_comes_again_has_broken_edges_and_what_computes_nothing_has_none(
    viewer: Open, colour_scheme: str
) -> None:
    capture = captures.sequence()
    page = viewer(capture)
    page.open("python", "forward", "forward.code")
    names = [f"layers.{n}" for n in (0, 1, 3, 4, 5, 7, 8, 10)]
    shown = page.pane("python").locator(".tag")
    assert tags(shown) == names, "no dropout of nothing, no identity"
    for parts, attribute in ((shown, "data-tag"), (page.pane("forward.code").locator(".part"), "title")):
        looks = {one.get_attribute(attribute): one.evaluate(_EDGE) for one in parts.all()}
        assert looks["layers.0"][0] == looks["layers.8"][0], "six colours"
        assert [name for name in names if looks[name][1]] == names[6:]
        assert len({tuple(look) for look in looks.values()}) == len(names)
    for name, broken in (("sigmoid", True), ("addmm", False), ("addmm_3", True)):
        node = page.find(f".node[data-item='{page.item(('0/0', 'forward', name))}']")
        assert node.locator(".face").last.evaluate(_EDGE)[1] == broken, name


def test_two_calls_on_a_line_do_not_light_up_together(viewer: Open) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    page.open("python", "dynamo", "forward.code")
    call = page.pane("python").get_by_role("button", name="call cos:")
    call.click()
    page.leave()
    assert page.pins() == ["cos"]
    assert page.lit("dynamo") == ["cos"]
    assert page.pane("python").locator(".call.on").all_inner_texts() == ["torch.cos(x)"]
    assert tags(page.pane("python").locator(".call-name.on")) == ["cos"]
    page.page.keyboard.press("Escape")
    assert page.pins() == [] and page.pane("python").locator(".call.on").count() == 0


def test_the_keyboard_comes_to_each_call(viewer: Open) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    page.open("python", "forward.code")
    line = page.pane("python").locator(".listing-line.calls")
    line.focus()
    names = []
    for _ in range(5):
        page.page.keyboard.press("ArrowRight")
        names.append(page.app.evaluate("app => app.shadowRoot.activeElement.ariaLabel").partition(":")[0])
    assert names == [f"call {name}" for name in ("sin", "pow_1", "add", "cos", "pow_2")]
    page.page.keyboard.press("Enter")
    assert page.pins() == ["pow_2"]
    for _ in range(5):
        page.page.keyboard.press("ArrowLeft")
    assert line.evaluate("e => e === e.getRootNode().activeElement")


def test_the_colours_are_those_of_the_compilation_that_is_shown(viewer: Open) -> None:
    capture = captures.graph_break()
    page = viewer(capture)
    shown = {}
    for number, compilation in enumerate(capture.compilations):
        page.choose(number)
        page.open("python", compilation=number)
        shown[compilation.id] = tags(page.pane("python").locator(".call-name"))
    assert list(shown.values()) == [["y"], ["cos", "mul"]], "a node that was given a name goes by it"


def test_kinds_are_a_switch(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    page.open("forward")
    node = page.pane("forward").locator(".node", has_text="aten.sin")
    face = node.locator(".face").first
    before = fill(face)
    page.pane("forward").get_by_role("button", name="colours for kinds").click()
    assert fill(face) != before
    page.pane("forward").get_by_role("button", name="colours for kinds").click()
    assert fill(face) == before
