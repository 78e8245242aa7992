"""Printed pages with a script: the open panes, at a legible size and with their colours."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens.views.live import page as html
from compile_lens.views.live.compare import fragment as compared_cell
from compile_lens.views.live.compare import page as compared_page
from compile_lens.views.live.compare import page as differing_page
from compile_lens.views.words.palette import UNITS

from . import captures
from .pages import WITHOUT_PAPER, alive, is_dark, static
from .settling import settle
from .viewer import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]

_SIZES = "all => [...new Set(all.map((e) => parseFloat(getComputedStyle(e).fontSize)))]"
_WIDE = "paper => [...paper.querySelectorAll('*')].filter((e) => !e.closest('.paper-part') && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 120))"  # noqa: E501


def _printed(page: Page) -> Locator:
    """Return the page as printed: A4 without its margins."""
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})
    paper = page.locator(".compile-lens .cl-app .paper")
    paper.locator("h1").wait_for()
    return paper


def _left(paper: Locator) -> str:
    return " ".join(paper.locator(".paper-left").first.inner_text().split())


def test_a_device_that_is_not_here_is_printed(standalone: Standalone) -> None:
    page = standalone(captures.on_h100())
    Viewer(page, captures.on_h100()).ready("forward.code")
    facts = _printed(page).locator(".paper-facts").first.inner_text()
    assert facts.endswith("NVIDIA H100 SXM (h100), sm_90 · device absent, generated only")


def test_long_names_of_kernels_are_printed_whole(standalone: Standalone) -> None:
    capture = captures.gpt2()
    page = standalone(capture)
    Viewer(page, capture).ready("inference.code" if "inference" in capture.code else "forward.code")
    paper = _printed(page)
    names = paper.locator(".code-launches .code-name")
    assert any(len(name) > 60 for name in names.all_inner_texts())
    assert names.evaluate_all(
        "all => all.every((e) => e.scrollWidth <= e.clientWidth && e.offsetHeight <= e.parentElement.clientHeight)"
    )
    assert paper.locator(".code-foot").first.evaluate("e => getComputedStyle(e).breakInside") == "avoid"


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
def test_what_is_open_is_printed_with_its_colours(standalone: Standalone, colour_scheme: str) -> None:
    capture = captures.sin_cos()
    page = standalone(capture)
    viewer = Viewer(page, capture)
    viewer.ready("forward.code")
    paper = _printed(page)
    assert not static(page).is_visible() and not viewer.find(".shell").is_visible()
    assert not is_dark(paper), "paper is white"
    assert min(paper.locator(".listing-line").evaluate_all(_SIZES)) >= 12, "9 pt"
    look = "`${s.printColorAdjust} ${s.backgroundColor} ${s.fill}`"
    looks = f"all => all.map((e) => getComputedStyle(e)).map((s) => {look})"
    calls = paper.locator(".call").evaluate_all(looks)
    faces = paper.locator(".paper-graph .node[class*=' unit-'] .face").evaluate_all(looks)
    fills = {f"rgb({', '.join(str(int(unit.fill[i : i + 2], 16)) for i in (1, 3, 5))})" for unit in UNITS[:5]}
    assert all("exact" in look for look in (*calls, *faces))
    for group in (calls, faces):
        assert {fill for fill in fills if any(fill in look for look in group)} == fills
    grounds = paper.locator(".listing-line.coloured").evaluate_all(
        "all => all.map((e) => getComputedStyle(e).backgroundImage)"
    )
    assert len({ground for ground in grounds if "gradient" in ground}) >= 5, "the kernel's lines"
    # Folded parts stay folded, and are labelled.
    folds = paper.locator(".listing-fold[aria-expanded=false]")
    assert folds.count() >= 1
    assert "not printed" in folds.first.evaluate("e => getComputedStyle(e, '::after').content")
    assert paper.evaluate(_WIDE) == []


def test_what_is_not_printed_is_said(standalone: Standalone) -> None:
    capture = captures.sin_cos()
    page = standalone(capture)
    viewer = Viewer(page, capture)
    viewer.open("dynamo", "backward.code")
    paper = _printed(page)
    code = capture.compilations[0].code["backward"].kernels[0].name
    assert code in paper.inner_text() and paper.locator("h2").all_inner_texts() == ["Dynamo", "backward code"]
    left = _left(paper)
    assert "joint" in left and "forward code" in left and "backward code" not in left and "Dynamo" not in left
    page.emulate_media(media="screen")
    page.wait_for_function(
        "app => !app.shadowRoot.querySelector('.paper').childElementCount", arg=viewer.app.element_handle()
    )


def test_a_model_is_a_few_pages(standalone: Standalone) -> None:
    capture = captures.layer()
    page = standalone(capture)
    settle(Viewer(page, capture).page)

    def pages() -> int:
        return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))

    few = pages()
    assert 1 <= few <= 8
    page.evaluate(WITHOUT_PAPER)
    assert few < pages(), "all that there is is more"


def test_of_a_graph_that_is_too_large_all_is_printed_small(standalone: Standalone) -> None:
    capture = captures.layer()
    page = standalone(capture)
    Viewer(page, capture).ready("forward.code")
    paper = _printed(page)
    whole = paper.locator(".paper-graph").nth(1)
    text = paper.locator(".paper-left", has_text="of this graph").inner_text()
    count = int(re.findall(r"of ([\d,]+) boxes", text)[0].replace(",", ""))
    boxes = whole.locator("rect")
    assert boxes.count() == count + 1, "and a frame around what is printed above"
    assert len(set(boxes.evaluate_all("all => all.map((e) => getComputedStyle(e).fill)"))) >= 5
    assert whole.bounding_box()["width"] <= 700 and whole.bounding_box()["height"] <= 500


_WIDE_LINE = """import torch
def f(x):
    return torch.sin(x) * torch.cos(x) + torch.tanh(x) * torch.sigmoid(x) - torch.exp(x) * torch.log1p(x * x) + torch.sqrt(x.abs() + 1) / torch.erf(x) + x.tan()
"""  # noqa: E501


@pytest.mark.exhaustive
def test_a_graph_that_can_be_read_on_a_page_is_printed_whole(standalone: Standalone) -> None:
    """The graph is small or rotated: many boxes side by side fit the length of a page."""
    capture = captures.written(_WIDE_LINE, "wide")
    page = standalone(capture)
    viewer = Viewer(page, capture)
    viewer.ready("forward.code")
    upright = viewer.find(".graph-svg > g").evaluate("g => [g.getBBox().width, g.getBBox().height]")
    assert upright[0] > 1050 > upright[1], "wider than a page where its letters have 6 points"
    paper = _printed(page)
    graph = paper.locator(".paper-graph")
    assert graph.count() == 1 and paper.locator(".paper-left", has_text="of this graph").count() == 0
    nodes = graph.locator(".node")
    assert nodes.count() == len(capture.compilations[0].graphs["forward"].nodes)
    inside = """
    graph => { const { left, top, right, bottom } = graph.getBoundingClientRect();
      return [...graph.querySelectorAll(".face, text")].map((e) => e.getBoundingClientRect())
        .every((e) => e.left >= left && e.right <= right && e.top >= top && e.bottom <= bottom); }
    """
    assert graph.evaluate(inside)
    # Letters are rotated: their width is their height.
    drawn = graph.evaluate("g => g.getBoundingClientRect().height / g.viewBox.baseVal.height")
    assert 12 * drawn >= 8, "6 points"
    assert graph.bounding_box()["height"] <= 1000 and graph.bounding_box()["width"] <= 700


def test_names_of_calls_stand_below_a_line_that_is_broken(standalone: Standalone) -> None:
    capture = captures.written(_WIDE_LINE, "broken")
    page = standalone(capture)
    Viewer(page, capture).ready("forward.code")
    row = _printed(page).locator(".listing-line.calls")
    names = row.locator(".call-name").evaluate_all(
        "all => all.map((e) => e.getBoundingClientRect().toJSON())"
    )
    last = max(row.locator(".call").evaluate_all("all => all.map((e) => e.getBoundingClientRect().bottom)"))
    assert len(names) >= 18
    places = [(name["top"], name["left"], name["right"]) for name in names]
    assert all(top >= last - 4 and right <= 718 for top, _, right in places)
    rows = zip(sorted(places), sorted(places)[1:])
    assert all(one[2] <= other[1] for one, other in rows if one[0] == other[0]), "and none over another"


def test_long_lines_of_code_are_broken_also_without_a_script(standalone: Standalone) -> None:
    page = standalone(captures.layer())
    alive(page)
    page.evaluate(WITHOUT_PAPER)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})
    sizes = static(page).locator(".cl-listing").evaluate_all(_SIZES)
    assert min(sizes) >= 10
    out = "all => all.filter((e) => e.getBoundingClientRect().right > innerWidth).length"
    assert static(page).locator("pre.cl-code").evaluate_all(out) == 0


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["compared", "differing"])
def test_columns_are_printed_below_each_other_with_their_colours(
    standalone: Standalone, name: str, colour_scheme: str
) -> None:
    if name == "compared":
        columns, page = ["cpu", "h100", "mps"], standalone(compared_page(captures.compared()))
    else:
        columns, page = ["before", "after"], standalone(differing_page(captures.differing()))
    app = alive(page)
    app.locator(".compare-column .listing-number").first.wait_for()
    on_screen = app.locator(".compare-band").evaluate(_UNITS)
    paper = _printed(page)
    assert not static(page).is_visible() and not app.locator(".shell").is_visible()
    assert not is_dark(paper), "paper is white"
    heads = paper.locator(".paper-section > h2:first-child").all_inner_texts()
    assert [head.removesuffix(": code") for head in heads if head.endswith(": code")] == columns
    assert len([head for head in heads if head.startswith("Python source")]) == (
        1 if name == "compared" else 2
    )
    sections = paper.locator(".paper-section")
    sources = [
        one for one in sections.all() if one.locator("h2").first.inner_text().startswith("Python source")
    ]
    assert sources and set().union(*(one.evaluate(_UNITS) for one in sources)) == set(on_screen)
    for number, head in enumerate(heads):
        if head.endswith(": code"):
            units = sections.nth(number).locator(".paper-rows").first.evaluate(_UNITS)
            assert units and set(units) <= set(on_screen), head
            names = sections.nth(number).locator(".code-tab .code-name").all()
            assert all(one.bounding_box()["height"] > 5 for one in names), "launches too"  # type: ignore[index]
    exact = (
        "e => [e, ...e.querySelectorAll('*')].every((e) => getComputedStyle(e).printColorAdjust === 'exact')"
    )
    assert paper.evaluate(exact)
    assert paper.evaluate(_WIDE) == []
    if name == "differing":
        assert "torch.sort is new" in paper.inner_text() and heads[-1] == "What differs, and why"
        folds = app.locator(".compare-reasons details")
        assert not all(folds.evaluate_all("all => all.map((fold) => fold.open)")), (
            "some are folded on the screen"
        )
        causes = paper.locator(".compare-reason").all()
        assert len(causes) > 1 and all(cause.is_visible() for cause in causes), "no cause is a title alone"


_UNITS = """
e => [...new Set([...e.querySelectorAll(".call, .listing-line.coloured, .listing-number.coloured")].flatMap((one) =>
  [...`${one.className} ${one.getAttribute("style") ?? ""}`.matchAll(/unit-(\\d)/g)].map((found) => found[1])))].sort()
"""
"""Colours of units that code has, by number."""


def test_a_cell_of_a_notebook_is_printed_with_its_grounds(standalone: Standalone) -> None:
    """It prints the layer without script, whose style is inline: browsers omit backgrounds unless requested."""
    for fragment in (html.fragment(captures.sin_cos()), compared_cell(captures.compared())):
        page = standalone(f"<!doctype html><title>cell</title><body>{fragment}")
        page.emulate_media(media="screen")
        alive(page)
        page.emulate_media(media="print")
        layer = static(page)
        assert layer.is_visible() and not page.locator(".compile-lens .cl-app").is_visible()
        grounds = layer.locator("[style*='background']")
        assert grounds.count() > 20
        exact = "all => all.every((e) => getComputedStyle(e).printColorAdjust === 'exact')"
        assert grounds.evaluate_all(exact)
        assert not is_dark(layer)
