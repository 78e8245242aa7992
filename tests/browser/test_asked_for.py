"""A click or a key brings its result into view: nothing jumps away, and no click is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import torch

from compile_lens import Capture, capture

from . import captures
from .settling import settle
from .test_graphs import blocks
from .viewer import Viewer, box

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[Capture], Viewer]

WIDE = pytest.mark.parametrize("viewport", [(1280, 720)])


def _in_view(pane: Locator, which: str = ":not(.open)") -> set[str]:
    """Return names of the boxes of a graph that are at least partially in its window; an open one is ``.open``."""
    return set(
        pane.evaluate(
            """(pane, which) => {
              const view = pane.querySelector(".graph-view").getBoundingClientRect();
              return [...pane.querySelectorAll(".node" + which)].filter((node) => {
                const face = node.querySelector(".face");  // a box that is not drawn has none
                if (!face) return false;
                const { left, right, top, bottom } = face.getBoundingClientRect();
                return right > view.left && left < view.right && bottom > view.top && top < view.bottom;
              }).map((node) => node.querySelector(".graph-stop").getAttribute("aria-label").split(", ")[0]);
            }""",
            which,
        )
    )


def _once(page: Viewer, seen: Callable[[], set[str]]) -> set[str]:
    """Return the first non-empty result: boxes are drawn a few at a time, which takes longer on a busy machine."""
    for _ in range(100):
        names = seen()
        if names:
            return names
        page.page.wait_for_timeout(50)
        page.frame()
    return set()


@pytest.mark.exhaustive
@WIDE
def test_opening_and_closing_all_boxes_keeps_what_was_in_view(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    page = viewer(blocks())
    pane = page.find(".frame:has(.graph-pane)")
    pane.locator(".heading").first.wait_for()
    view = pane.locator(".graph-view")
    pane.locator("button:text-is('close all')").click()
    for _ in range(5):
        pane.get_by_role("button", name="zoom in").click()
    last = pane.locator(".graph-stop[aria-label^='blocks.3']").first
    last.scroll_into_view_if_needed()
    page.frame()
    before = _in_view(pane)
    assert "blocks.3" in before and "blocks.0" not in before
    pane.locator("button:text-is('open level')").click()
    page.frame()
    assert _once(page, lambda: _in_view(pane)), "the canvas is empty"
    frames = _once(page, lambda: _in_view(pane, ".open") & before)
    assert frames, "none of what was in view"
    pane.locator("button:text-is('close all')").click()
    page.frame()
    assert _once(page, lambda: frames & _in_view(pane))
    # With the second block in view, it is that one.
    pane.locator("button:text-is('open level')").click()
    page.frame()
    name = pane.locator(".heading", has_text="blocks.1").last
    name.scroll_into_view_if_needed()
    view.evaluate("e => e.scrollBy(0, e.clientHeight / 2)")
    page.frame()
    pane.locator("button:text-is('close all')").click()
    page.frame()
    assert _once(page, lambda: {"blocks.1"} & _in_view(pane))


def test_the_address_names_the_phase_and_back_undoes_it(standalone: Callable[..., Page]) -> None:
    shown = captures.sin_cos()
    page = Viewer(standalone(shown), shown)
    pressed = ".flow-phase[aria-pressed=true]"
    page.find(".flow-phase.phase-backward").click()
    page.page.wait_for_url("**#phase=backward&*")
    page.find(".frame .node > .graph-stop[aria-label^='neg']").first.click()
    page.leave()
    page.page.wait_for_url("**pin=*")
    fragment = page.page.url.partition("#")[2]
    assert "phase=backward&pin=" in fragment
    page.page.go_back()
    page.page.wait_for_function("() => !location.hash.includes('pin=')")
    page.opened()
    assert page.find(pressed).inner_text().startswith("backward")
    page.page.go_back()
    page.find(f"{pressed}.phase-forward").wait_for()
    page.opened()
    assert page.find(".frame .node > .graph-stop[aria-label^='neg']").count() == 0
    again = Viewer(standalone(shown, fragment), shown)
    again.opened()
    assert again.find(pressed).inner_text().startswith("backward")
    assert again.pins() == ["neg"]
    assert again.find(".frame .node > .graph-stop[aria-label^='neg']").count() == 1
    assert not again.find(".link-trouble").is_visible()


@WIDE
@pytest.mark.parametrize("key", ["Escape", "ArrowDown"])
@pytest.mark.exhaustive
def test_a_click_on_a_step_is_not_lost(viewer: Open, viewport: tuple[int, int], key: str) -> None:
    """The row shows a chain because of the line with the focus; without it there would be none."""
    page = viewer(captures.layer())
    page.opened()
    y = box(page.find(".flow-name:text-is('fused')"))["y"] + 6

    def under(x: float) -> str:
        """Return the number of the stage or the name of the step at that position."""
        read = """(app, [x, y]) => {
          const under = app.shadowRoot.elementFromPoint(x, y);
          return under.closest(".flow-noun")?.dataset.stage ?? under.closest(".flow-verb")?.innerText ?? "";
        }"""
        return str(page.app.evaluate(read, [x, y]))

    rest = {x: under(x) for x in range(500, 1150, 10)}
    if key == "Escape":
        rest = {x: text for x, text in rest.items() if text.startswith("fused")}
    page.find(".source-pane .listing-line.coloured, .source-pane [data-item]").first.wait_for()
    line = page.find(".source-pane .listing-line[data-item]").first
    line.click(position={"x": 30, "y": 9})
    page.page.keyboard.press("Escape")
    if key != "Escape":
        page.page.keyboard.press(key)
    shown = {str(stage) for stage, _ in page.shown()}
    wanted = {
        str(page.number(f"{phase}.{what}"))
        for phase in ("forward", "inference")
        for what in ("loops", "groups")
        if page.find(f".phase-{phase}").count()
    }
    place = next(x for x in rest if key == "Escape" or (under(x) in wanted - shown and under(x) != rest[x]))
    page.page.mouse.move(place, y)
    page.frame()
    assert page.find(".flow-lit").count() == (0 if key == "Escape" else 1)
    text = under(place)
    assert key != "Escape" or text == rest[place]
    page.page.mouse.down()
    page.page.wait_for_timeout(60)
    page.page.mouse.up()
    page.leave()
    page.frame()
    page.find(".frame[data-finding=fusion]" if key == "Escape" else f".frame[data-stage='{text}']").wait_for()


@WIDE
def test_a_kernel_that_is_half_in_view_is_chosen_by_a_click(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(captures.layer())
    page.opened()
    strip = page.find(".code-launches")
    strip.evaluate("e => (e.scrollTop = 0)")
    page.frame()
    whole = box(strip)
    bottom = whole["y"] + whole["height"]
    rows = strip.locator(".code-tab:visible")
    cut = next(i for i, row in enumerate(rows.all()) if box(row)["y"] < bottom - 4 < box(row)["y"] + 28)
    row = rows.nth(cut)
    at = box(row)
    page.page.mouse.move(at["x"] + 200, bottom - 5)
    settle(page.page)
    page.page.mouse.down()
    page.page.mouse.up()
    settle(page.page)
    assert row.get_attribute("aria-selected") == "true"
    over = strip.evaluate("e => e.querySelector('.code-tab:hover').dataset.page")
    assert over == row.get_attribute("data-page"), "another one came below the pointer"
    page.leave()
    settle(page.page)
    assert box(row)["y"] + box(row)["height"] <= bottom + 1, "it comes into view once the pointer has left"


@WIDE
def test_the_search_knows_the_names_of_kernels(viewer: Open, viewport: tuple[int, int]) -> None:
    """Library calls are included, and found by the operator's name in the graphs."""
    page = viewer(captures.layer())
    page.opened()
    pane = page.find(".frame:has(.code-launches)")
    names = [name.lower() for name in pane.locator(".code-tab").evaluate_all("all => all.map(e => e.title)")]
    count = pane.locator(".finder-count")
    for typed, looked in (("op:bmm", "bmm"), ("softmax", "softmax"), ("addmm", "addmm")):
        hits = sum(looked in name for name in names)
        assert hits > 0
        page.find(".find-all").fill(typed)
        settle(page.page)
        assert pane.locator(".code-tab[data-found]").count() == hits
        assert int(count.inner_text().split("/")[1]) >= hits
    page.page.keyboard.press("Enter")
    now = pane.locator(".code-tab[data-found=now]")
    assert now.count() == 1
    window, row = box(pane.locator(".code-launches")), box(now)
    assert window["y"] <= row["y"] and row["y"] + row["height"] <= window["y"] + window["height"] + 1
    page.find(".find-all").fill("nothing is called this")
    settle(page.page)
    assert count.inner_text() == "no match"
    assert pane.locator(".code-tab[data-found]").count() == 0


@WIDE
def test_find_counts_over_all_panes_and_closes_what_it_opened(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    page = viewer(captures.layer())
    page.opened()
    total = page.find(".find-total")
    folds, boxes = page.find(".listing-fold[aria-expanded=true]"), page.find(".graph-frame")
    before = folds.count(), boxes.count()
    page.find(".find-all").fill("softmax")
    settle(page.page)
    text = total.inner_text()
    hits, parts = int(text.split()[0]), text.partition("found")[2].split(";")
    assert hits == sum(int(part.split()[0]) for part in parts) and len(parts) >= 2
    assert any(" in Python source" in part for part in parts)
    page.find(".find-all").fill("include")
    settle(page.page)
    page.page.keyboard.press("Enter")
    settle(page.page)
    assert folds.count() > before[0], "a match was folded"
    page.page.keyboard.press("Escape")
    settle(page.page)
    assert (folds.count(), boxes.count()) == before and not total.is_visible()


@WIDE
def test_find_says_what_became_of_a_call(viewer: Open, viewport: tuple[int, int]) -> None:
    """ATen has no operator of that name: counted by hand, it is a product, an error function and a sum."""
    page = viewer(capture(lambda x: torch.nn.functional.gelu(x) + 1, torch.rand(8)))
    page.opened()
    page.find(".find-all").fill("gelu")
    settle(page.page)
    (part,) = (part for part in page.find(".find-total").inner_text().split(";") if "decomposed" in part)
    assert part.strip().startswith("0 in inference: decomposed into mul, erf, add")


@WIDE
def test_the_step_of_tracing_opens_a_tab_as_others_do(viewer: Open, viewport: tuple[int, int]) -> None:
    for shown, text in ((captures.sin_cos(), "Guards"), (captures.graph_break(), "Graph break")):
        page = viewer(shown)
        page.opened()
        page.find(".flow-verb").filter(has_text="traced").click()
        pane = page.find(".frame[data-finding=traced]")
        pane.locator("h3", has_text=text).wait_for()
        assert page.page.evaluate("scrollY") == 0
        assert page.find(".frame-tab[aria-pressed=true]").filter(has_text="traced").count() == 1
        page.page.wait_for_url(re.compile("why:traced"))
        again = page.page.url.partition("#")[2]
    page.page.reload()
    page.opened()
    assert page.page.url.endswith(again)
    assert page.find(".frame[data-finding=traced] h3").count() > 0


def test_where_a_chip_led_is_shown_for_a_moment(viewer: Open) -> None:
    page = viewer(captures.graph_break())
    page.opened()
    page.find(".top-chip").filter(has_text="graph break").click()
    line = page.find(".source-pane .listing-line:focus")
    line.wait_for()
    shown = "e => [getComputedStyle(e).outlineStyle, getComputedStyle(e).outlineWidth]"
    assert line.evaluate(shown) == ["solid", "3px"]
    page.page.wait_for_function(f"e => ({shown})(e).join() !== 'solid,3px'", arg=line.element_handle())


def test_a_stage_says_what_a_click_does(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    page.opened()
    chip = page.chip("python")
    assert (chip.get_attribute("title") or "").endswith("(click: close the pane)")
    chip.click()
    assert (chip.get_attribute("title") or "").endswith("(click: open the pane)")
    page.find(".frame[data-stage='0']").wait_for(state="detached")


def test_a_question_mark_lists_the_keys(viewer: Open) -> None:
    """`tests/browser/test_keyboard.py` checks that each key does what the list describes."""
    page = viewer(captures.sin_cos())
    page.opened()
    page.page.keyboard.press("?")
    keys = page.find(".about-keys")
    keys.wait_for()
    text = keys.inner_text()
    assert all(f"{key} " in text for key in ("/", "n", "N", "f", "b", "w", "m", "o", "Enter", "Esc"))
    place, (width, height) = box(keys), page.page.evaluate("[innerWidth, innerHeight]")
    assert place["y"] + place["height"] <= height and place["x"] + place["width"] <= width
    assert keys.evaluate("one => one.scrollWidth <= one.clientWidth")  # its end is read as well
    page.page.keyboard.press("?")
    keys.wait_for(state="hidden")
    page.page.keyboard.press("?")
    keys.wait_for()
    page.page.keyboard.press("Escape")
    keys.wait_for(state="hidden")


def test_what_nothing_saved_has_not_the_colour_of_a_saving(viewer: Open) -> None:
    """A single sine is one launch and moves as many bytes as eager PyTorch; sin² + cos² makes fewer and moves less."""
    alone = viewer(capture(lambda x: torch.sin(x), torch.rand(64))).find(".top-savings")
    assert "1 eager op → 1 launch" in alone.inner_text() and "~512 B" in alone.inner_text()
    assert alone.locator(".saving-after").count() == 0
    assert viewer(captures.sin_cos()).find(".top-savings").locator(".saving-after").count() == 2
