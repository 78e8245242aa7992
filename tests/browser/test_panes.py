"""The strip and the panes: which are open, how wide they are, and what remains visible of them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture
from compile_lens.record.breaks import Ending, Skip
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph
from compile_lens.record.kernel import Code
from compile_lens.record.missing import AbsentStage, Missing
from compile_lens.views.live import page as html
from compile_lens.views.words import quantities

from . import captures
from .settling import settle
from .viewer import ROOM, Viewer, box, expected, through

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]
Open = Callable[[Capture], Viewer]


def _compilation(shown: Capture) -> Compilation:
    (only,) = shown.compilations
    return only


@pytest.mark.parametrize("made", [captures.sin_cos, captures.mlp, captures.softmax, captures.rematerialised])
def test_the_strip_says_what_the_record_holds(viewer: Open, made: Callable[[], Capture]) -> None:
    shown = made()
    page = viewer(shown)
    seconds = {t.stage.removeprefix("0/0 "): t.seconds for t in shown.timings}
    seen = 0
    for stage in _compilation(shown).stages:
        if isinstance(stage, AbsentStage):
            kind = "missing" if isinstance(stage, Missing) else "none"
            card = page.find(f".card-{kind}[data-key='{stage.key}']")
            assert stage.reason in card.inner_text() and card.get_attribute("title") == stage.reason
            assert card.get_attribute("tabindex") == "0"
            continue
        text = page.card(stage.key).locator(".card-facts").inner_text()
        for fact in _facts(stage):
            assert fact in text, stage.key
        assert page.card(stage.key).locator(".card-time").inner_text() == quantities.duration(
            seconds[stage.key]
        )
        seen += 1
    cards = page.find("button.card:not(.card-why)")
    assert cards.count() == seen + 1 + page.find(".card-fusion").count(), "and the Python source"
    assert page.find(".card-missing").count() == len(shown.missing)
    assert page.find(".card-none").count() == len(shown.not_applicable)
    assert f"{len(shown.sources)} function" in page.card("python").inner_text()


def _facts(stage: Graph | Code) -> list[str]:
    if isinstance(stage, Code):
        launches = sum(kernel.launches for kernel in stage.kernels)
        return [_count(len(stage.kernels), "kernel"), f"{launches} launch"]
    if stage.stage in ("loops", "groups"):
        work = [
            n for n in stage.nodes if n.op not in ("placeholder", "get_attr", "output") and n.kind != "nop"
        ]
        return [_count(len(work), stage.stage.removesuffix("s"))]
    return [_count(len(stage.nodes), "node"), _count(len(stage.calls), "call")]


def _count(count: int, one: str) -> str:
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def test_what_ran_eagerly_is_said_in_the_head_and_below(viewer: Open) -> None:
    text = captures.HOSTILE["image"]
    frame = Frame("/home/ada/step.py", 9, "step", "loss.backward()")
    cause = Ending(
        "graph break", f"Unsupported call {text}", (frame,), "Set an option.", "https://example.org/gb1"
    )
    skip = Skip("function", "step", frame.file, 7, cause, ((8, 12),), "graph break in loop")
    page = viewer(dataclasses.replace(captures.sin_cos(), skipped=(skip,)))
    verdict = page.find(".top-verdict")
    assert "state-partial" in (verdict.get_attribute("class") or "")
    assert "partly compiled" in verdict.inner_text() and "1 function skipped" in verdict.inner_text()
    (words,) = page.find(".top-eager li").all_inner_texts()
    assert "step.py, lines 8-12" in words and text in words and "step.py:9" in words
    below = page.find(".below-section").filter(has_text="Ran eagerly")
    below.locator("summary").first.click()
    shown = below.inner_text()
    assert "Set an option." in shown and "https://example.org/gb1" in shown and "graph break in loop" in shown


def test_a_stage_that_was_not_seen_says_why(viewer: Open) -> None:
    shown = captures.sin_cos()
    reasons = {
        "joint": "an AOTAutograd cache hit hides it",
        "forward.groups": f"this torch lacks a hook: {captures.HOSTILE['image']}",
    }
    stages = tuple(
        Missing(s.key, reasons[s.key]) if s.key in reasons else s for s in _compilation(shown).stages
    )
    changed = dataclasses.replace(_compilation(shown), stages=stages)
    page = viewer(dataclasses.replace(shown, compilations=(changed,)))
    page.find(".flow-all").click()
    for key, reason in reasons.items():
        card = page.find(f".card-missing[data-key='{key}']")
        assert card.is_visible() and "not seen" in card.inner_text()
        card.focus()
        assert card.locator(".card-reason").inner_text() == reason
        card.click()
    page.find(".flow-all").click()
    assert page.find(".card-fusion").count() == 1, "without groups there is no fusion to show"
    # Pins across the gap show it as well.
    page.pin(("0/0", "dynamo", "sin"))
    assert reasons["joint"] in page.why("joint")
    assert reasons["forward.groups"] in page.why("forward groups")


@pytest.mark.parametrize("viewport", [(1600, 900)], ids=["wide enough for six"])
def test_panes_open_and_close_and_a_fourth_is_a_tab(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    usual = [(page.number(key), False) for key in ("python", "forward", "forward.code")]
    assert page.shown() == usual
    for place in page.shown():
        number = place[0]
        assert page.find(f"button.card[data-stage='{number}']").get_attribute("aria-pressed") == "true"
    page.pane("forward").locator(".frame-close").click()
    assert page.shown() == [usual[0], usual[2]]
    page.open()
    assert page.find(".panes-empty").is_visible()
    order = ["joint", "backward.code", "python"]
    for key in order:
        page.press(key)
    assert page.shown() == sorted((page.number(key), False) for key in order)
    page.ready(*order)
    widths = [box(frame)["width"] for frame in page.find(".frame").all()]
    # A fourth graph shares the pane of the first, code that of code.
    page.press("dynamo")
    page.press("forward.groups", fusion=True)
    assert page.shown() == [(0, False), (page.number("dynamo"), False), (page.number("forward.groups"), True)]
    assert _tabs(page.pane("dynamo")) == ["Dynamo", "joint"]
    assert _tabs(page.pane("forward.groups", fusion=True))[:3] == ["forward fusion", "kernel", "module"]
    assert page.card("backward.code").get_attribute("aria-pressed") == "false", (
        "it is a tab that is not shown"
    )
    assert [box(frame)["width"] for frame in page.find(".frame").all()] == pytest.approx(widths, abs=1)
    page.pane("dynamo").locator(".frame-tab").last.click()
    assert page.pane("joint").is_visible() and not page.pane("dynamo").count()
    # Closing a tab reveals the previously used one; closing the last tab closes the pane.
    page.press("joint")
    assert page.pane("dynamo").is_visible() and not page.pane("dynamo").locator(".frame-tab").count()
    page.press("dynamo")
    assert page.shown() == [(0, False), (page.number("forward.groups"), True)]
    assert len(page.shown()) < ROOM


def _tabs(pane: Locator) -> list[str]:
    return pane.locator(".frame-tab").all_inner_texts()


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_each_pane_can_have_the_room_of_all(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(captures.layer())
    before, places = page.shown(), [box(frame) for frame in page.find(".frame").all()]
    row = box(page.find(".panes-row"))
    keyboard = page.page.keyboard
    for key in ("python", "forward", "forward.code"):
        page.pane(key).locator(".frame-size").click()
        assert page.shown() == [(page.number(key), False)]
        assert box(page.pane(key)) == pytest.approx(row, abs=1)
        assert page.pane(key).locator(".frame-size").get_attribute("aria-pressed") == "true"
        keyboard.press("Escape")
        assert page.shown() == before
        assert [box(frame) for frame in page.find(".frame").all()] == places, "as it was"
    # A key does it for the most recently used pane; Escape restores it and leaves the pins alone.
    page.pane("python").locator(".listing-line.coloured").first.click(position={"x": 120, "y": 8})
    page.leave()
    keyboard.press("m")
    assert page.shown() == [(0, False)]
    keyboard.press("Escape")
    assert page.shown() == before and len(page.pins()) == 1
    keyboard.press("m")
    # Opening a pane beside it restores it; opening a tab of its own does not.
    page.press("joint")
    assert page.pane("joint").is_visible() and len(page.shown()) == 3


def test_a_graph_as_text(viewer: Open) -> None:
    shown = captures.mlp()
    page = viewer(shown)
    page.open("joint", "forward.groups")
    assert page.pane("joint").locator(".graph-pane").is_visible()
    for key in ("joint", "forward.groups"):
        page.view(key, "text")
        text = _compilation(shown).graphs[key].text
        lines = (
            page.pane(key)
            .locator(".listing-line")
            .evaluate_all("all => all.map(e => e.firstChild ? e.textContent : '')")
        )
        assert "\n".join(lines).rstrip() == text.rstrip()
        pressed = page.pane(key).locator(".frame-view[aria-pressed=true]")
        assert pressed.all_inner_texts() == ["text"] and page.pane(key).locator(".graph-pane").count() == 0
    address = ("0/0", "joint", "addmm")
    page.click(page.thing(address))
    assert page.lit("joint") == expected(shown, [address])["0/0 joint"]
    page.view("joint", "graph")
    assert page.lit("joint") == expected(shown, [address])["0/0 joint"]


def test_borders_are_dragged(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    keys = ("python", "forward.loops", "forward")
    page.open("python", "joint")
    page.open(*keys)
    frames = [page.find(".frame").nth(number) for number in range(3)]
    before = [box(frame)["width"] for frame in frames]
    assert max(before) - min(before) < 1
    _drag(page.page, page.find(".resizer:not(.resizer-across)").first, 120, 0)
    after = [box(frame)["width"] for frame in frames]
    assert abs(after[0] - before[0] - 120) < 3 and abs(after[1] - before[1] + 120) < 3
    assert abs(after[2] - before[2]) < 1
    # A tab has the width of the one that it replaces.
    page.press("joint")
    assert [box(frame)["width"] for frame in page.find(".frame").all()] == pytest.approx(after, abs=1)
    page.press("joint")
    # Neither side disappears.
    _drag(page.page, page.find(".resizer:not(.resizer-across)").first, 900, 0)
    assert box(frames[1])["width"] >= 239
    page.find(".resizer:not(.resizer-across)").first.dblclick()
    assert [box(frame)["width"] for frame in frames] == pytest.approx(before, abs=1)
    height = box(frames[0])["height"]
    _drag(page.page, page.find(".resizer-across"), 0, -90)
    assert abs(box(frames[0])["height"] - height + 90) < 3


def _drag(page: Page, thing: Locator, right: float, down: float) -> None:
    thing.scroll_into_view_if_needed()
    at = box(thing)
    x, y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right / 2, y + down / 2)
    page.mouse.move(x + right, y + down)
    page.mouse.up()


@pytest.mark.parametrize("viewport", [(1280, 480)], ids=["a low window"])
def test_scrolling_is_remembered(viewer: Open) -> None:
    page = viewer(captures.mlp())
    keys = ("joint", "backward", "backward.code")
    page.open(*keys)
    page.view("joint", "text")
    places = {"joint": ".listing-box", "backward": ".graph-view", "backward.code": ".listing-box"}
    for key, place in places.items():
        page.pane(key).locator(place).evaluate("e => e.scrollTo(0, 120)")
    page.frame()
    before = {key: _scrolled(page, key, place) for key, place in places.items()}
    assert set(before.values()) == {120}
    page.open("python", "dynamo")
    page.open(*keys)
    assert {key: _scrolled(page, key, place) for key, place in places.items()} == before
    # Another view of the same graph, and back.
    page.view("joint", "graph")
    page.view("joint", "text")
    assert _scrolled(page, "joint", ".listing-box") == before["joint"]
    # Another width of the row.
    page.page.set_viewport_size({"width": 1100, "height": 800})
    page.frame()
    assert _scrolled(page, "backward.code", ".listing-box") == before["backward.code"]


@pytest.mark.parametrize("viewport", [(390, 844)])
@pytest.mark.parametrize(
    "made",
    [
        captures.sin_cos,
        captures.gpt2,
        captures.graph_break,
        captures.on_h100,
        captures.failing,
        captures.nothing,
    ],
)
def test_on_a_phone_a_page_opens_at_its_top(viewer: Open, made: Callable[[], Capture]) -> None:
    page = viewer(made())
    page.frame()
    settle(page.page)  # whatever the initial view scrolls
    assert page.page.evaluate("() => scrollY") == 0
    assert box(page.find(".top"))["y"] == 0


def _scrolled(page: Viewer, key: str, place: str) -> float:
    return float(page.pane(key).locator(place).evaluate("e => e.scrollTop"))


@pytest.mark.parametrize("viewport", [(390, 800)])
@pytest.mark.parametrize("made", [captures.mlp, captures.graph_break, captures.hostile, captures.failing])
def test_on_a_phone_panes_stand_below_each_other(viewer: Open, made: Callable[[], Capture]) -> None:
    shown = made()
    page = viewer(shown)
    page.frame()

    def stacked() -> None:
        frames = [box(frame) for frame in page.find(".frame").all()]
        for frame in frames:
            assert frame["x"] == 0 and frame["width"] == 390
        for above, below in itertools.pairwise(frames):
            assert above["y"] + above["height"] <= below["y"]
        _nothing_sticks_out(page)

    first = page.shown()
    assert len(first) == 3
    stacked()
    # The stage row stays in view, and scrolls sideways to its last stage.
    page.find(".frame").last.evaluate("e => e.scrollIntoView()")
    row = page.find(".flow")
    assert box(row)["y"] == 0 and page.page.evaluate("() => scrollY") > 0
    chip = page.find(".flow-noun").last
    assert box(chip)["x"] > 390 and chip.locator(".flow-count").evaluate(
        "e => e.scrollWidth <= e.clientWidth"
    )
    chip.scroll_into_view_if_needed()
    assert box(chip)["x"] + box(chip)["width"] <= box(page.find(".flow-more"))["x"] + 1
    page.page.evaluate("() => scrollTo(0, 0)")
    # After rotation, they are side by side again.
    for width in (800, 1280, 390):
        page.page.set_viewport_size({"width": width, "height": 800})
        page.frame()
        assert page.shown() == first
        assert (len({box(frame)["x"] for frame in page.find(".frame").all()}) == 1) == (width == 390)
    for key in ("forward", "backward.code", "forward.groups fusion", "python"):
        stage, _, fusion = key.partition(" ")
        if page.card(stage, fusion=fusion != "").get_attribute("aria-pressed") == "false":
            page.press(stage, fusion=fusion != "")
        page.ready(key)
        assert (page.number(stage), fusion != "") in page.shown()
        stacked()
    first_line = page.find(".source-scroll .listing-line[data-item]").first
    first_line.click(position={"x": 30, "y": 9})
    page.facts()
    assert len(page.pins()) == 1
    stacked()


def _nothing_sticks_out(page: Viewer) -> None:
    out = page.page.evaluate("() => document.scrollingElement.scrollWidth - innerWidth")
    assert out <= 0
    inner = page.find(".shell").evaluate("shell => shell.scrollWidth - shell.clientWidth")
    assert inner <= 0


@pytest.mark.exhaustive
def test_captures_on_one_page_do_not_disturb_each_other(standalone: Standalone) -> None:
    shown = [captures.sin_cos(), captures.sin_cos(), captures.softmax()]
    parts = "<p>between</p>".join(html.fragment(one) for one in shown)
    page = standalone(f"<!doctype html><html><body><h1 id='top'>Three cells</h1>{parts}</body></html>")
    one, same, other = (Viewer(page, capture, n, len(shown)) for n, capture in enumerate(shown))
    untouched = [v.app.evaluate(_STATE) for v in (same, other)]
    one.open("dynamo", "joint", "forward.code")
    one.click(one.thing(("0/0", "dynamo", "sin")))
    one.find(".graph-query").first.fill("sin")
    one.frame()
    assert one.pins() == ["sin"]
    assert [v.app.evaluate(_STATE) for v in (same, other)] == untouched
    other.open("dynamo")
    other.click(other.thing(("0/0", "dynamo", "softmax")))
    other.frame()
    assert (one.pins(), same.pins(), other.pins()) == (["sin"], [], ["softmax"])
    assert other.listed() == through(shown[2], [("0/0", "dynamo", "softmax")])
    page.keyboard.press("Escape")
    other.frame()
    assert (one.pins(), other.pins()) == (["sin"], [])
    assert one.lit("joint") == expected(shown[0], [("0/0", "dynamo", "sin")])["0/0 joint"]
    # A notebook cell leaves the address of the page alone, and styles nothing outside.
    settle(page)
    assert "#" not in page.url
    assert page.locator("#top").evaluate("e => getComputedStyle(e).fontFamily") == page.evaluate(
        "() => getComputedStyle(document.body).fontFamily"
    )


_STATE = """
app => [app.shadowRoot.querySelector(".panes").innerHTML, app.shadowRoot.querySelector(".inspector").innerHTML,
        app.shadowRoot.querySelector(".strip").innerHTML].join()
"""
