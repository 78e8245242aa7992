"""A comparison as an interactive page: one source, a column for each target, the same colours, and the differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import torch

import compile_lens
from compile_lens.measures.diff.modules import OwnLines
from compile_lens.results.comparison import Comparison
from compile_lens.views.live.compare import page as document
from compile_lens.views.words.quantities import figure

from . import captures
from .pages import APP, ROOT, alive, contrast
from .settling import settle
from .viewer import box

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[], "Locator"]


@pytest.fixture
def app(standalone: Callable[..., Page]) -> Open:
    """Return ``app()``, the interactive page of a comparison of three targets."""

    def opened() -> Locator:
        page = standalone(document(captures.compared()))
        alive(page)
        found = page.locator(f"{ROOT} .cl-app")
        found.locator(".compare-column .listing-number").first.wait_for()
        return found

    return opened


def units(lines: Locator) -> set[str]:
    """Return the bar colours of the visible lines, by number."""
    colours: list[str] = lines.evaluate_all(
        """
        (all) => all.filter((e) => {
          const r = e.getBoundingClientRect();
          const f = e.closest(".listing-box").getBoundingClientRect();
          return r.top >= f.top && r.bottom <= Math.min(f.bottom, innerHeight);
        }).flatMap((e) => [...e.style.getPropertyValue("--bar").matchAll(/unit-(\\d)/g)].map((m) => m[1]))
        """
    )
    return set(colours)


NODES_IN_VIEW = """
(all) => all.filter((e) => {
  const r = e.querySelector(".face:not(.back)").getBoundingClientRect();
  const f = e.closest(".frame-body").getBoundingClientRect();
  return r.top >= f.top - 1 && r.bottom <= f.bottom + 1 && r.left >= f.left && r.right <= f.right;
}).flatMap((e) => [.../unit-(\\d)/g[Symbol.matchAll](e.getAttribute("class"))].map((m) => m[1]))
"""


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_the_first_look_has_one_colour_in_the_source_and_in_each_column(
    app: Open, viewport: tuple[int, int], colour_scheme: str
) -> None:
    page = app()
    most = 96 if viewport[1] > 640 else 84
    assert 60 < box(page.locator(".compare-band"))["y"] <= most
    calls = page.locator(".compare-band .call").evaluate_all(
        "all => all.map(e => /unit-(\\d)/.exec(e.className)[1])"
    )
    columns = page.locator(".compare-column")
    assert columns.count() == 3
    for column in columns.all():
        place = box(column)
        assert place["x"] + place["width"] <= viewport[0] + 1
        assert set(calls) & units(column.locator(".listing-number.coloured")), "the same colour"
    nodes = set(page.locator(".compare-graph .node").evaluate_all(NODES_IN_VIEW))
    lines = units(page.locator(".compare-column .listing-number.coloured"))
    assert set(calls) & nodes & lines, "and a node of the graph"
    for words in (".compare-agreement", ".flow-count", ".flow-what", ".compare-chips .top-chip"):
        for element in page.locator(words).all():
            assert contrast(element) >= 4.5, words
    for cut in page.locator(".flow-count, .flow-what").all():
        assert cut.evaluate("e => e.scrollWidth <= e.clientWidth")


_TAGS = """
column => [...column.querySelectorAll(".listing-line.coloured")].map((row) => {
  const text = document.createRange();
  const tags = row.querySelector(".tags");
  text.setStart(row, 0);
  text.setEndBefore(tags);
  const { left, right } = tags.lastChild.getBoundingClientRect();
  const first = tags.firstChild.getBoundingClientRect().left;
  const box = column.getBoundingClientRect();
  const seen = box.left <= first && right <= box.right && left < right;
  return { seen, over: text.getBoundingClientRect().right > first + 1, letters: `${text}`.trim().length };
})
"""
"""Returns, for each coloured row, whether its tags are in view, and whether they overlap its code."""


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_tags_stand_beside_the_code_of_each_column(app: Open, viewport: tuple[int, int]) -> None:
    page = app()
    for column in page.locator(".compare-column").all():
        rows = column.evaluate(_TAGS)
        assert rows and all(row["seen"] for row in rows), "or colour alone would tell"
        # If there is no room for both, they overlap the end of the code.
        assert not any(row["over"] for row in rows if row["letters"] <= viewport[0] / 45), rows


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_at_first_the_source_is_read_to_its_end(app: Open, viewport: tuple[int, int]) -> None:
    page = app()
    page.locator(".compare-graph .unit-tag").first.wait_for()
    source, last = (
        box(page.locator(".compare-band .listing-box")),
        box(page.locator(".compare-band .call").last),
    )
    assert last["x"] + last["width"] <= source["x"] + source["width"]


CUT = """
view => {
  const { top, bottom } = view.getBoundingClientRect();
  const all = [...view.querySelectorAll(".node:not(.open) .face:not(.back), .unit-tag")].map((e) => e.getBoundingClientRect());
  const whole = all.filter((r) => r.top >= top && r.bottom <= bottom);
  return { whole: whole.length, cut: all.filter((r) => r.top < bottom && r.bottom > top && !whole.includes(r)).length };
}
"""  # noqa: E501


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_the_graph_ends_below_whole_nodes_and_their_tags_and_stays_as_high(
    app: Open, viewport: tuple[int, int]
) -> None:
    page = app()
    page.locator(".compare-graph .unit-tag").first.wait_for()
    settle(page.page)
    seen = page.locator(".compare-graph .graph-view").evaluate(CUT)
    assert seen["whole"] >= 4 and seen["cut"] == 0, seen
    band = page.locator(".compare-band")
    before = box(band)
    assert abs(before["height"] - 0.35 * viewport[1]) < 60
    page.locator(".compare-band .call[role=button]").first.click(position={"x": 4, "y": 8})
    settle(page.page)
    assert box(band) == before, "nothing moves away from under the pointer"


@pytest.mark.parametrize("viewport", [(820, 600)])
def test_what_they_agree_on_gives_way_to_the_name(app: Open, viewport: tuple[int, int]) -> None:
    page = app()
    assert page.locator(".compare-agreement").evaluate("e => e.scrollHeight > e.clientHeight"), (
        "there is no room, not even in two lines"
    )
    for column in page.locator(".compare-column").all():
        assert column.locator(".code-tab .part").first.is_visible()
        assert column.locator(".code-name").first.evaluate("e => e.scrollWidth <= e.clientWidth")
    spare = """
    (e) => {
      const text = document.createRange();
      text.selectNodeContents(e);
      return e.getBoundingClientRect().width - text.getBoundingClientRect().width;
    }
    """
    assert page.locator(".top-name").evaluate(spare) >= 0, "a hair less, and it ends with dots"


def test_one_is_told_in_the_singular(standalone: Callable[..., Page]) -> None:
    """A large sum is one launch on a CPU, and two on an H100: its code has two ``.run(`` (counted in the module)."""
    comparison = compile_lens.compare(lambda x: x.sum(), torch.rand(1_000_000), targets=["cpu", "h100"])
    assert comparison.captures["h100"].code["inference"].count(".run(") == 2
    page = standalone(document(comparison))
    alive(page)
    page.locator(f"{ROOT} .compare-column .listing-number").first.wait_for()
    texts = [chip.replace("\n", " ") for chip in page.locator(".compare-chips .top-chip").all_inner_texts()]
    assert "≠ 1 launch, the other 2" in texts and "≠ 2 launches, the other 1" in texts, texts


def test_counts_that_differ_and_lines_that_others_lack_are_marked(app: Open) -> None:
    comparison = captures.compared()
    page = app()
    loops = [figure(c.ledger.inference.loops) for c in comparison.captures.values()]
    assert len(set(loops)) > 1
    chips = page.locator(".compare-differs .flow-count").all_inner_texts()
    assert " · ".join(loops) in chips
    own = OwnLines([column.capture for column in comparison.columns]).of("0/0", "inference")
    assert [bool(lines) for lines in own] == [False, True, False]
    assert all("softmax" in words for words in own[1].values()), (
        "an operator that only the H100's code computes"
    )
    signs = [column.locator(".tag-differs").count() for column in page.locator(".compare-column").all()]
    assert signs == [len(lines) for lines in own]
    assert "lines that the others lack" in page.locator(".compare-column").nth(1).inner_text()
    assert (
        page.locator(".compare-column").nth(2).locator(".compare-none").inner_text()
        == "no line that the others lack"
    )
    only = page.get_by_role("button", name="fold the lines that another has")
    only.click()
    page.locator(".compare-only[aria-pressed=true]").wait_for()
    second = page.locator(".compare-column").nth(1)
    shown = second.locator(".listing-line[data-item]")
    second.locator(".tag-differs").first.wait_for()
    assert shown.count() == signs[1], "nothing else is open"
    assert page.locator(".compare-column").first.locator(".listing-line[data-item]").count() == 0


def test_what_is_pinned_on_one_side_is_lit_on_all(app: Open) -> None:
    page = app()
    page.get_by_role("button", name="call gelu:").click()
    page.page.mouse.move(1, 1)
    for column in page.locator(".compare-column").all():
        lit = column.locator(".listing-line.lit").evaluate_all(
            "all => all.flatMap(e => [...e.querySelectorAll('[data-unit-tag]')].map(t => t.dataset.tag))"
        )
        assert set(lit) == {"gelu"}
    page.page.keyboard.press("Escape")
    assert page.locator(".listing-line.lit").count() == 0
    # And from a column to the source and to the others.
    line = (
        page.locator(".compare-column")
        .nth(1)
        .locator(".listing-line[data-item]:has([data-tag=softmax])")
        .first
    )
    line.click(position={"x": 80, "y": 8})
    page.page.mouse.move(1, 1)
    assert page.locator(".call.on").all_inner_texts() != []
    assert page.locator(".compare-column").first.locator(".listing-line.lit").count() > 0


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (390, 844)])
def test_the_head_of_a_column_is_whole(app: Open, viewport: tuple[int, int]) -> None:
    columns = app().locator(".compare-column").all()
    assert len(columns) == 3
    for column in columns:
        head = box(column.locator(".frame-head"))
        buttons = column.locator(".frame-head button:visible, .frame-head input:visible")
        assert buttons.count() >= 4, "kernel, module, tidy, copy"
        for place in map(box, buttons.all()):
            assert head["x"] <= place["x"] and place["x"] + place["width"] <= head["x"] + head["width"]
            assert head["y"] <= place["y"] and place["y"] + place["height"] <= head["y"] + head["height"]


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_a_column_is_as_high_as_its_text_up_to_a_screen(
    app: Open, viewport: tuple[int, int]
) -> None:
    for column in app().locator(".compare-column").all():
        text, shown = column.locator(".listing-body"), column.locator(".listing-box")
        whole = box(shown)["height"] >= box(text)["height"] - 1
        assert whole or abs(box(column)["height"] - viewport[1] * 0.75) < 2
        # Below the text there is only a horizontal scroll bar.
        assert box(shown)["height"] <= box(text)["height"] + 20


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
@pytest.mark.exhaustive
def test_the_whole_chain_of_a_click_is_in_view(app: Open, viewport: tuple[int, int]) -> None:
    page = app()
    calls = page.locator(".compare-band .call[role=button]").all()
    assert len(calls) == 3
    for call in calls:
        call.click(position={"x": 4, "y": 8})
        page.page.mouse.move(1, 1)
        settle(page.page)
        for column in page.locator(".compare-column").all():
            seen = column.evaluate(
                """
                (column) => [...column.querySelectorAll(".listing-number.lit, .code-tab.lit")].filter((e) => {
                  const r = e.getBoundingClientRect();
                  const f = e.closest(".listing-box, .code-launches").getBoundingClientRect();
                  return r.top >= f.top - 1 && r.bottom <= Math.min(f.bottom, innerHeight) + 1;
                }).length
                """
            )
            assert seen > 0, (call.inner_text(), column.get_attribute("aria-label"))
        page.page.keyboard.press("Escape")


def test_one_graph_stands_for_all_where_they_are_equal_and_is_lit_with_them(app: Open) -> None:
    """The node names are those of each record. A pin in any column lights all, and so does a pin on a node."""
    comparison = captures.compared()
    graphs = [
        [node.name for node in c.compilations[0].graphs["inference"].nodes]
        for c in comparison.captures.values()
    ]
    page = app()
    graph = page.locator(".compare-graph")
    assert graphs[0] == graphs[2]
    if graphs[0] == graphs[1]:
        assert "the same for all" in graph.inner_text() and graph.locator(".frame-tab").count() == 0
    names = set(graph.locator(".node").evaluate_all("all => all.map(e => e.textContent)"))
    assert any(name.startswith("mm") for name in names)
    page.locator(".compare-band .call").filter(has_text="x @ w").last.click(position={"x": 4, "y": 8})
    page.page.mouse.move(1, 1)
    settle(page.page)
    assert graph.locator(".node.lit").count() > 0
    page.page.keyboard.press("Escape")
    assert graph.locator(".node.lit").count() == 0
    graph.locator(".node", has_text="aten.mul").first.click()
    page.page.mouse.move(1, 1)
    for column in page.locator(".compare-column").all():
        assert column.locator(".listing-line.lit").count() > 0


def test_graphs_that_differ_are_chosen_by_column(standalone: Callable[..., Page]) -> None:
    """The CPU graph has one more addition than the other: each shows its own nodes."""
    one = compile_lens.capture(lambda x: x.sin() + 1, torch.rand(64))
    two = compile_lens.capture(lambda x: x.cos() * x.exp(), torch.rand(64))
    page = standalone(document(Comparison.of(one, two)))
    alive(page)
    graph = page.locator(f"{ROOT} .compare-graph")
    graph.locator(".node", has_text="sin").first.wait_for()
    assert graph.locator(".node", has_text="exp").count() == 0
    heads = graph.locator(".frame-tab")
    assert heads.count() == 2
    heads.nth(1).focus()
    page.keyboard.press("Enter")
    graph.locator(".node", has_text="exp").first.wait_for()
    assert heads.nth(1).get_attribute("aria-pressed") == "true"
    assert heads.nth(1).evaluate("e => e === e.getRootNode().activeElement")


def test_without_scripts_all_of_it_is_there(standalone: Callable[..., Page]) -> None:
    text, _, _ = document(captures.compared()).rpartition("<script>")
    page = standalone(text)
    assert page.locator(APP).count() == 0
    layer = page.locator(f"{ROOT} .cl-static")
    assert layer.is_visible()
    assert "Why they differ" in layer.inner_text()
