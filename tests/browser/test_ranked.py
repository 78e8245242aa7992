"""The ranked list of kernels, the bars of cost in the source, and the answer about a kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import captures
from .viewer import Viewer, box

Open = Callable[..., Viewer]


def shares(words: list[str]) -> list[int]:
    return [0 if text.startswith("<") else int(text.split()[0]) for text in words if "%" in text]


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_the_kernels_are_ranked_by_cost_and_sorted_by_order(viewer: Open) -> None:
    """By eye: the rows from top to bottom. Equal library calls, which the record has apart, are one."""
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


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_the_list_opens_at_what_costs_most(viewer: Open) -> None:
    """Whichever kernel is open below it; one that is chosen comes into view."""
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
