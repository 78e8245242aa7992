"""The ranked list of kernels, the cost bars in the source, and the explanation of a kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from compile_lens import Capture
from compile_lens.record.graph import Source
from compile_lens.views.summaries.capture_summary import summary
from compile_lens.views.summaries.short_text import issue

from . import captures
from .pages import APP, alive
from .viewer import Viewer, box

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Open = Callable[..., Viewer]


def shares(words: list[str]) -> list[int]:
    return [0 if text.startswith("<") else int(text.split()[0]) for text in words if "%" in text]


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_the_kernels_are_ranked_by_cost_and_sorted_by_order(viewer: Open) -> None:
    """By eye: the rows from top to bottom. Equal library calls, which are separate in the record, are one row."""
    page = viewer(captures.layer())
    rows = page.find(".code-tab:visible")
    places = sorted((box(row)["y"], number) for number, row in enumerate(rows.all()))
    ranked = shares([rows.nth(number).locator(".launch-share").text_content() or "" for _, number in places])
    assert ranked == sorted(ranked, reverse=True) and ranked[0] > 0
    page.find(".launch-head button").first.click()
    page.frame()
    places = sorted((box(row)["y"], number) for number, row in enumerate(rows.all()))
    numbers = [int(rows.nth(number).locator(".launch-number").text_content() or "") for _, number in places]
    assert numbers == sorted(numbers) and len(set(numbers)) == len(numbers)


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_lines_have_bars_and_kernels_an_answer(viewer: Open) -> None:
    shown = captures.layer()
    page = viewer(shown)
    costs = page.find(".source-pane .line-cost")
    assert costs.count() > 1
    wanted = {row.lines[0].line: row.share for row in shown.cost().rows if row.lines}
    for one in costs.all():
        number = int(one.evaluate("e => e.parentElement.dataset.number"))
        (percent,) = shares([one.text_content() or ""])
        assert abs(percent - 100 * (wanted[number] or 0)) <= 0.5
    answer = page.find(".code-answer")
    before = box(answer)
    row = page.find(".code-tab:visible[aria-selected=false]").first
    number = row.locator(".launch-number").text_content()
    row.click()
    page.frame()
    assert box(answer) == before, "the panes stay where they are"
    assert (answer.text_content() or "").startswith(f"#{number} ")


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_the_list_opens_at_what_costs_most(viewer: Open) -> None:
    """The open kernel below does not change that; a chosen kernel scrolls into view."""
    page = viewer(captures.layer())
    page.frame()
    rows = page.find(".code-tab:visible")
    top = min(rows.all(), key=lambda row: box(row)["y"])
    bar = "e => +e.style.getPropertyValue('--share')"
    every = [row.locator(".launch-share").evaluate(bar) for row in rows.all()]
    assert top.locator(".launch-share").evaluate(bar) == max(every)
    assert box(page.find(".launch-head"))["y"] < box(top)["y"] < box(page.find(".code-answer"))["y"]
    last = max(rows.all(), key=lambda row: box(row)["y"])
    last.click()
    page.leave()
    page.frame()
    assert box(last)["y"] + box(last)["height"] <= box(page.find(".code-answer"))["y"] + 1


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_one_kernel_has_neither_list_nor_answer(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    assert page.find(".launch-head").count() == 0
    assert page.find(".line-cost").count() == 0
    assert not page.find(".code-answer").first.is_visible()


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (640, 360), (390, 844)])
def test_a_model_opens_with_answers_that_are_not_cut(viewer: Open, viewport: tuple[int, int]) -> None:
    """Each answer leads to its evidence: the most expensive line is pinned, memory opens its pane."""
    shown = captures.layer()
    page = viewer(shown)
    page.frame()
    row = page.find(".answers > .answer")
    words = [" ".join(text.split()) for text in row.all_inner_texts()]
    assert [text.rpartition(":")[0] and text.split(" ")[0] for text in words] == [
        "Cost",
        "Try",
        "Memory",
        "Eager",
    ]
    most = max((one for one in shown.cost().rows if one.name), key=lambda one: one.share or 0)
    assert words[0].startswith(f"Cost {most.name}: {100 * (most.share or 0):.0f} %")
    for one in page.find(".answer > span").all()[: 4 if viewport[0] < 800 else 1]:
        assert one.evaluate("e => e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth + 1")
    for chip in page.find(".flow-noun .flow-count").all():
        assert chip.evaluate("e => e.scrollWidth <= e.clientWidth"), "no chip is cut"
    row.first.click()
    page.frame()
    assert [pin.endswith(most.name) for pin in page.pins()] == [True]
    row.nth(2).click()
    page.frame()
    assert (
        page.find(".frame-tab[aria-pressed=true], .frame-tab[aria-selected=true]")
        .filter(has_text="memory")
        .count()
    )


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_the_line_that_costs_most_opens_its_most_expensive_kernel(viewer: Open) -> None:
    """No other kernel that belongs to this line alone costs more; the stage row begins with that line."""
    shown = captures.layer()
    page = viewer(shown)
    page.frame()
    selected = page.find(".code-tab[aria-selected=true]:visible")
    number = selected.locator(".launch-number").text_content()
    assert (page.find(".code-answer").text_content() or "").startswith(f"#{number} "), "also at rest"
    page.find(".answers > .answer").first.click()
    page.frame()
    most = max((one for one in shown.cost().rows if one.name), key=lambda one: one.share or 0)
    line = most.name.rpartition(":")[2]
    bar = "e => +e.querySelector('.launch-share').style.getPropertyValue('--share')"
    own = page.find(f".code-tab:has(.part[data-tag='{line}']:only-child)").all()
    assert own and selected.evaluate(bar) == max(row.evaluate(bar) for row in own)
    selected.click()
    page.frame()
    assert (page.find(".flow-count .flow-names").first.text_content() or "").strip() == f"line {line}"


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_the_list_behind_a_badge_is_that_of_its_phase(viewer: Open) -> None:
    """The first section in view belongs to the phase whose number is on the badge."""
    page = viewer(captures.layer())
    page.frame()
    phases = page.find(".flow-phase")
    phases.filter(has_text="backward").click()
    page.find(".flow-note").filter(has_text="pair").click()
    at_top = page.find(".finding").first
    for phase in ("backward", "forward"):
        phases.filter(has_text=phase).click()
        page.page.wait_for_function(_FIRST_IN_VIEW, arg=[at_top.element_handle(), phase])


_FIRST_IN_VIEW = """
([pane, phase]) => {
  const top = pane.getBoundingClientRect().top;
  const places = [...pane.querySelectorAll(".finding-place")].filter((e) => e.getBoundingClientRect().bottom > top);
  return places[0]?.textContent === phase;
}
"""


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_the_sum_of_what_is_found_is_not_cut(viewer: Open) -> None:
    page = viewer(captures.layer())
    page.find(".find-all").fill("add")
    total = page.find(".find-total:visible")
    total.wait_for()
    assert 0 <= box(total)["x"] and box(total)["x"] + box(total)["width"] <= 390


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_the_flow_of_a_small_function_is_its_story(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    assert page.find(".answers").count() == 0
    assert page.find(".flow-what:visible").count() > 3


_SMALL_TARGETS = """
app => [...app.shadowRoot.querySelectorAll(".shell-first :is(button, input)")].filter((e) => {
  const { top, left, width, height } = e.getBoundingClientRect();
  const line = e.closest(".listing, .code-body, .graph-note, .source-pane");
  return !line && width && top < innerHeight && left < innerWidth && e.checkVisibility() && (width < 44 || height < 44);
}).map((e) => e.className)
"""


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(390, 844), (820, 1180)])
def test_targets_under_a_finger_are_large(
    browser: Browser, report: Callable[[Capture], Path], viewport: tuple[int, int]
) -> None:
    """WCAG's enhanced size, 44 px, of every control in view outside of lines of text."""
    width, height = viewport
    shown = captures.layer()
    context = browser.new_context(viewport={"width": width, "height": height}, has_touch=True, is_mobile=True)
    try:
        page = context.new_page()
        page.goto(report(shown).as_uri())
        alive(page)
        page.locator(".answers").wait_for()
        assert page.evaluate("matchMedia('(pointer: coarse)').matches")
        assert page.locator(APP).evaluate(_SMALL_TARGETS) == []
    finally:
        context.close()


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_steps_and_columns_have_a_definition_with_the_focus(viewer: Open) -> None:
    page = viewer(captures.layer())
    definition = page.find(".definition")
    assert not definition.is_visible()
    for step in page.find(".flow-verb[data-means], .launch-head [data-means]").all():
        step.focus()
        page.page.keyboard.press("Shift+Tab")
        page.page.keyboard.press("Tab")
        assert definition.is_visible()
        assert definition.text_content() == step.get_attribute("data-means")
    page.page.keyboard.press("Escape")
    assert not definition.is_visible()


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_a_function_of_a_library_is_one_row_below_those_of_the_program(viewer: Open) -> None:
    shown = captures.layer()
    library = Source(
        "/usr/lib/python3/site-packages/given/norm.py", 7, "norm", "def norm(x):\n    return x - x.mean()\n"
    )
    page = viewer(dataclasses.replace(shown, sources=(library, *shown.sources)))
    last = page.find(".source-part").last
    fold = last.locator(".listing-fold[aria-expanded]")
    assert page.find(".source-part .listing-fold[aria-expanded]").count() == 1
    assert (fold.text_content() or "").endswith("norm, library")
    assert not last.locator(".source-head").is_visible() and last.locator(".listing-line").count() == 0
    fold.click()
    page.frame()
    assert last.locator(".source-head").is_visible() and last.locator(".listing-line").count() >= 2


@pytest.mark.full
@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_a_graph_is_saved_as_a_drawing_and_as_a_picture(viewer: Open) -> None:
    """The saved file is self-contained: without the page's classes, and with all boxes that the page draws."""
    page = viewer(captures.layer())
    pane = page.find(".frame:has(.graph-svg)").first
    pane.locator(".node").first.wait_for()
    page.find(".top-about").click()
    saved = {}
    for name in ("SVG", "PNG"):
        with page.page.expect_download() as download:
            page.find(".about-share button").get_by_text(name, exact=True).click()
        saved[name] = Path(download.value.path()).read_bytes()
    drawn = ElementTree.fromstring(saved["SVG"])
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg" and b"class=" not in saved["SVG"]
    words = {"".join(element.itertext()) for element in drawn.iter() if element.tag.endswith("}text")}
    assert set(pane.locator(".node .name").all_text_contents()) <= words
    assert saved["PNG"].startswith(b"\x89PNG") and len(saved["PNG"]) > 5_000


def test_the_markdown_for_an_issue_is_short() -> None:
    text = issue(summary(captures.layer()))
    assert text.startswith("### ") and text.count("\n") <= 30
