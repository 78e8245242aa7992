"""A diff as an interactive page: the cause first, both sources and kernels, only differences unfolded, all linked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compile_lens.views.live.compare import page as document

from . import captures
from .pages import APP, ROOT, alive, contrast
from .settling import settle
from .viewer import box

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from compile_lens.results.comparison import Difference

pytestmark = [pytest.mark.browser, pytest.mark.torch]


@pytest.fixture
def found() -> Difference:
    """Return the diff of two versions of one function."""
    return captures.differing()


@pytest.fixture
def app(standalone: Callable[..., Page], found: Difference) -> Callable[[], Locator]:
    def opened() -> Locator:
        page = standalone(document(found))
        alive(page)
        shown = page.locator(f"{ROOT} .cl-app")
        shown.locator(".compare-column .listing-number").first.wait_for()
        return shown

    return opened


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
def test_the_first_look_says_the_cause_and_shows_both_sides(
    app: Callable[[], Locator], found: Difference, colour_scheme: str
) -> None:
    page = app()
    first = page.locator(".compare-summary p").first
    consequence, _, cause = first.inner_text().partition(" · ")
    assert consequence.startswith("launches ") and " → " in consequence
    assert cause == "torch.sort is new ← net.py:7: beta = torch.sort(beta)[0]"
    assert page.locator(".compare-all p").nth(1).inner_text().startswith("so: launches")
    before, after = found.figures["launches"]
    assert f"{before} → {after}" in page.locator(".compare-differs .flow-count").all_inner_texts()
    assert page.locator(".compare-band .source-pane").count() == page.locator(".compare-column").count() == 2
    # Only differences are unfolded, and each unfolded line has its sign.
    assert page.locator(".compare-only[aria-pressed=true]").count() == 1
    for column in page.locator(".compare-column").all():
        open_lines = column.locator(".listing-line[data-item]")
        assert 0 < open_lines.count() <= column.locator(".tag-differs").count()
    assert page.locator(".compare-band .source-pane").nth(1).locator(".tag-differs").count() >= 4
    for place in page.locator(".compare-place").all():
        assert (place.get_attribute("aria-label") or "").count(place.inner_text()) == 1, "read out once"
    for words in (".compare-cause", ".compare-mark", ".compare-place", ".compare-reasons h2"):
        for element in page.locator(words).all():
            assert contrast(element) >= 4.5, words


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (390, 844)])
def test_nothing_is_squeezed_by_what_is_below(app: Callable[[], Locator], viewport: tuple[int, int]) -> None:
    page = app()
    top, row = (box(page.locator(f".compare-screen > {part}")) for part in (".top", ".flow"))
    assert row["height"] == (52 if viewport[1] > 640 else 46)
    # On a phone the cause has its own lines.
    least = 42 if viewport[1] > 640 else 36
    assert top["height"] == least or (viewport[0] < 640 and top["height"] > least)
    for part in page.locator(".compare-flow .flow-noun, .compare-flow .flow-phase, .compare-only").all():
        place = box(part)
        assert row["y"] < place["y"] and place["y"] + place["height"] < row["y"] + row["height"]


_ENDS = """
(all) => all.map((row) => {
  const text = document.createRange();
  text.setStart(row, 0);
  text.setEndBefore(row.querySelector(".call-names") ?? row.querySelector(".tags") ?? row.lastChild);
  return row.closest(".listing-box").getBoundingClientRect().right - text.getBoundingClientRect().right;
})
"""


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_a_source_is_seen_to_the_end_of_each_line_beside_its_sign(
    standalone: Callable[..., Page], viewport: tuple[int, int]
) -> None:
    text = "import torch\n\n\ndef net(x):\n    return torch.{0}(x) ** 2 + torch.cos(x) ** 2\n"
    page = standalone(document(captures.difference(text.format("sin"), text.format("tanh"))))
    alive(page)
    page.locator(f"{ROOT} .compare-band .tag-differs").first.wait_for()
    left = page.locator(f"{ROOT} .compare-band .listing-line").evaluate_all(_ENDS)
    assert len(left) >= 4 and min(left) >= 0, left


_CODE = """
(all) => all.map((row) => {
  const tags = row.querySelector(".tags");
  const text = document.createRange();
  text.setStart(row, 0);
  text.setEndBefore(tags ?? row.lastChild);
  const { right } = row.closest(".listing-box").getBoundingClientRect();
  const places = [...text.getClientRects()], last = places.at(-1);
  const beside = tags?.firstElementChild.getBoundingClientRect();
  return places.every((one) => one.right <= right + 1) && (!beside || last.bottom > beside.top);
})
"""
"""Returns, for each row, whether all of its text is in the column; its tags are beside the last part of it."""


@pytest.mark.parametrize("tidy", [True, False])
@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_code_is_seen_to_the_end_of_each_line_as_the_source_is(
    app: Callable[[], Locator], viewport: tuple[int, int], tidy: bool
) -> None:
    page = app()
    for button in page.locator(".compare-column .code-tidy").all() if not tidy else ():
        button.click()
    for column in page.locator(".compare-column").all():
        rows = column.locator(".listing-line.coloured")
        assert rows.count() > 0 and all(rows.evaluate_all(_CODE))
        box_of = column.locator(".listing-box").first
        assert box_of.evaluate("e => e.scrollWidth <= e.clientWidth"), "nothing is out of sight"
    assert page.locator(".compare-column .wrap").count() > 0
    copied = page.locator(".compare-column .listing-line:has(.wrap)").first
    assert "\n" not in (copied.text_content() or ""), "it stays one line"


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_what_one_never_saw_is_shown_before_it_is_closed(
    app: Callable[[], Locator], viewport: tuple[int, int]
) -> None:
    level = app().locator(".compare-reasons details").first
    first = level.locator(".compare-reason").first
    first.wait_for(state="attached")
    assert box(first)["y"] >= viewport[1] - 20
    level.locator("summary").click()
    assert level.get_attribute("open") is not None and box(first)["y"] < viewport[1] - 20
    level.locator("summary").click()
    assert level.get_attribute("open") is None


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_the_cause_the_counts_and_each_source_have_the_whole_width(
    app: Callable[[], Locator], found: Difference, viewport: tuple[int, int]
) -> None:
    page = app()
    for part in (".compare-summary p:visible", ".compare-band .source-pane", ".compare-column"):
        for one in page.locator(part).all():
            assert box(one)["width"] > viewport[0] - 30, part
    sources = [box(one) for one in page.locator(".compare-band .source-pane").all()]
    assert sources[1]["y"] >= sources[0]["y"] + sources[0]["height"]
    for line in page.locator(".compare-band .listing-line").all():
        assert box(line)["y"] + box(line)["height"] < viewport[1], "all of both is in view"
    for column in page.locator(".compare-column").all():
        head = box(column.locator(".frame-head"))
        for place in map(box, column.locator(".frame-head button:visible").all()):
            assert head["y"] <= place["y"] and place["y"] + place["height"] <= head["y"] + head["height"]
    whole = [
        b
        for b in map(box, page.locator(".compare-flow .flow-noun").all())
        if b["x"] + b["width"] < viewport[0]
    ]
    assert len(whole) >= 3
    page.locator(".compare-only").scroll_into_view_if_needed()
    only = box(page.locator(".compare-only"))
    assert only["x"] + only["width"] <= viewport[0], "and the rest of the row is a swipe away"


COLOURS_IN_VIEW = """
(app) => {
  const seen = (e) => {
    const r = e.getBoundingClientRect(), f = e.closest(".frame-body, .source-pane").getBoundingClientRect();
    return r.width > 0 && r.bottom <= Math.min(f.bottom, innerHeight) + 1 && r.top >= f.top - 1;
  };
  const all = (selector) => [...app.shadowRoot.querySelectorAll(selector)].filter(seen);
  const of = (style) => [...style.matchAll(/unit-(\\d)/g)].map((m) => m[1]);
  const bars = (selector) => all(selector).flatMap((e) => of(e.getAttribute("style") ?? ""));
  return {
    source: bars(".compare-band .listing-number.coloured"),
    graph: all(".compare-graph .node[class*=' unit-'] > .graph-stop > .face")
      .flatMap((e) => of(e.closest(".node").getAttribute("class"))),
    code: bars(".compare-column .listing-number.coloured"),
    launches: all(".compare-column .launch-bar > .part").flatMap((e) => of(e.className)),
  };
}
"""


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_the_head_is_low_and_each_unit_is_seen_in_the_code(
    app: Callable[[], Locator], viewport: tuple[int, int]
) -> None:
    """Without a click, the softmax, the sort and the product each have a colour, in the sources and below them."""
    page = app()
    most = 96 if viewport[1] > 640 else 84
    assert 60 < box(page.locator(".compare-band"))["y"] <= most
    settle(page.page)
    seen: dict[str, list[str]] = page.evaluate(COLOURS_IN_VIEW)
    assert len(set(seen["source"])) == 3
    assert set(seen["source"]) == set(seen["launches"]), seen
    assert set(seen["source"]) & set(seen["graph"]) & set(seen["code"]), seen


STEPS = "".join(f"    x = x * {n}\n" for n in range(3, 13))
SLOW = f"import torch\n\n\ndef net(x):\n{STEPS}    x = torch.tanh(x)\n    x = torch.softmax(x, 1)\n    return x * 2\n"
OTHER = SLOW.replace("torch.tanh(x)", "torch.cumsum(x, 1)").replace("x * 2", "torch.sort(torch.erf(x))[0]")


@pytest.mark.parametrize(
    "last",
    ["torch.{}(x) ** 2 + torch.cos(x) ** 2", "torch.{}(torch.relu(torch.exp(torch.cos(torch.erf(x)))))"],
)
@pytest.mark.parametrize("viewport", [(1280, 720)])
@pytest.mark.exhaustive
def test_the_graph_opens_where_the_first_difference_is(
    standalone: Callable[..., Page], viewport: tuple[int, int], last: str
) -> None:
    """The graph shows the operator of the first cause, although many others precede it, some of the same line."""
    steps = "".join("    x = torch.softmax(torch.relu(x @ x) + x, 1)\n" for _ in range(4))
    text = f"import torch\n\n\ndef net(x):\n{steps}    x = {last}\n    return x.sum(0)\n"
    page = standalone(document(captures.difference(text.format("sin"), text.format("tanh"))))
    alive(page)
    graph = page.locator(f"{ROOT} .compare-graph")
    graph.locator(".graph-note", has_text="Shown first: what differs first.").wait_for()
    settle(page)
    stage, node = (
        box(graph.locator(".graph-stage")),
        box(graph.locator(".node", has=page.get_by_text("tanh", exact=True))),
    )
    assert stage["y"] <= node["y"] and node["y"] + node["height"] <= stage["y"] + stage["height"]
    assert graph.locator(".graph-note").count() == 1 and graph.inner_text().count("Shown first") == 1


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_several_causes_leave_sources_and_code_in_view(
    standalone: Callable[..., Page], viewport: tuple[int, int]
) -> None:
    """The first cause and its effect have a line each; the long sources are scrolled to the causes."""
    several = captures.difference(SLOW, OTHER)
    assert len(several.causes) > 3
    page = standalone(document(several))
    alive(page)
    shown = page.locator(f"{ROOT} .cl-app")
    shown.locator(".compare-column .listing-number").first.wait_for()
    settle(page)

    def bottom(thing: Locator) -> float:
        place = box(thing)
        return place["y"] + place["height"]

    lines = shown.locator(".compare-all p")
    assert shown.locator(".compare-summary p:visible").count() == 1 < lines.count()
    for source, words in zip(
        shown.locator(".compare-band .source-pane").all(), ("tanh", "cumsum"), strict=True
    ):
        line = source.locator(".listing-line", has_text=words)
        assert box(source)["y"] < box(line)["y"] and bottom(line) <= bottom(source)
    columns = shown.locator(".compare-column").all()
    for column in columns:
        assert bottom(column.locator(".tag-differs").first) <= bottom(column) <= viewport[1]
    assert bottom(shown.locator(".compare-reasons h2").first) <= viewport[1], "there is more below"
    whole = shown.get_by_role("button", name="all of it")
    whole.click()
    assert whole.get_attribute("aria-expanded") == "true"
    assert shown.locator(".compare-all p:visible").count() == lines.count()
    for line in lines.all():
        assert line.evaluate("e => e.scrollWidth <= e.clientWidth")
    whole.press("Escape")
    assert shown.locator(".compare-all p:visible").count() == 0


_END_OF_NUMBER = "e => e.getBoundingClientRect().right - parseFloat(getComputedStyle(e).paddingRight)"


def test_signs_stand_below_each_other(app: Callable[[], Locator]) -> None:
    """Signs are between the number and the text of each row, whatever its length and the scroll position."""
    page = app()
    for part in (".compare-band .source-pane", ".compare-column"):
        for one in page.locator(part).all():
            one.locator(".listing-box").first.evaluate("e => (e.scrollLeft = 40)")
            places = [box(sign) for sign in one.locator(".tag-differs").all()]
            assert len({round(place["x"]) for place in places}) == 1, part
            number = box(one.locator(".listing-number[data-number]").first)
            column = box(one)["x"], number["x"] + number["width"]
            assert all(column[0] < place["x"] < place["x"] + place["width"] <= column[1] for place in places)
            ends = [row.evaluate(_END_OF_NUMBER) for row in one.locator(".listing-number[data-number]").all()]
            assert max(ends) + 2 <= places[0]["x"], "no sign touches a number"


def test_what_stands_for_each_other_is_lit_on_both_sides(app: Callable[[], Locator]) -> None:
    """Counterparts are lit although names and line numbers differ."""
    page = app()
    panes, title = page.locator(".compare-band .source-pane"), page.locator(".compare-graph .frame-title")
    page.locator(".compare-place", has_text="net.py:7").first.click()
    title.hover()  # it lights nothing
    lit = [pane.locator(".listing-line.lit").all_inner_texts() for pane in panes.all()]
    assert [text.strip() for text in lit[1]] != [] and all("sort" in text for text in lit[1])
    assert lit[0] == [], "nothing of the first is the sorting"
    page.page.keyboard.press("Escape")
    panes.first.locator(".listing-line", has_text="torch.softmax(x, 1)").click(position={"x": 60, "y": 8})
    title.hover()  # it lights nothing
    (line,) = panes.nth(1).locator(".listing-line.lit").all_inner_texts()
    assert "torch.softmax(alpha, 1)" in line
    assert page.locator(".compare-column").nth(1).locator(".lit").count() > 0


def test_levels_stand_below_and_those_that_follow_are_folded(
    app: Callable[[], Locator], found: Difference
) -> None:
    page = app()
    titles = page.locator(".compare-reasons summary").all_inner_texts()
    assert [title.split(":")[0].strip() for title in titles] == list(found.to_dict()["changes"])
    assert page.locator(".compare-reasons details:not([open])").count() == len({"code", "guards"} & set(
        found.to_dict()["changes"]
    ))  # fmt: skip


def test_without_scripts_all_of_it_is_there(standalone: Callable[..., Page], found: Difference) -> None:
    text, _, _ = document(found).rpartition("<script>")
    page = standalone(text)
    assert page.locator(APP).count() == 0
    layer = page.locator(f"{ROOT} .cl-static")
    assert layer.is_visible() and "torch.sort is new" in layer.inner_text()


def test_a_saved_page_opens(standalone: Callable[..., Page], found: Difference, tmp_path: Path) -> None:
    page = standalone(found.save(tmp_path / "d.html"))
    alive(page)
    assert page.locator(f"{ROOT} .compare-summary").is_visible()


CALLS = "import torch\n\n\ndef net(x):\n    return torch.sin(x) ** 2 + torch.cos(x) ** 2\n"
LINES = """import torch


def net(x):
    y = torch.sin(x) ** 2
    return torch.sort(y)[0] + torch.cos(x) ** 2
"""
"""One line of five calls, then two lines with a sort between two of its parts."""


@pytest.fixture(scope="module")
def split() -> Difference:
    """Return the diff of a program whose only line became two."""
    return captures.difference(CALLS, LINES)


@pytest.fixture
def opened(standalone: Callable[..., Page], split: Difference, tmp_path: Path) -> Callable[[str], Locator]:
    """Return ``opened(fragment)``, its saved page."""
    file = split.save(tmp_path / "split.html")

    def shown(fragment: str = "") -> Locator:
        page = standalone(file, fragment)
        alive(page)
        app = page.locator(f"{ROOT} .cl-app")
        app.locator(".compare-column .listing-number").first.wait_for()
        return app

    return shown


def _calls(app: Locator, which: str = "") -> list[str]:
    """Return the calls of the first source, by the names below its line."""
    names = app.locator(f".compare-band .source-pane >> nth=0 >> .call-name{which}")
    return [str(tag) for tag in names.evaluate_all("all => all.map(e => e.dataset.tag)")]


def _lines(app: Locator) -> list[str]:
    """Return the lit lines of the second source."""
    lit = app.locator(".compare-band .source-pane >> nth=1 >> .listing-line.lit")
    return [text.strip()[:6] for text in lit.all_inner_texts()]


def test_calls_on_one_side_are_paired_with_lines_on_the_other(opened: Callable[[str], Locator]) -> None:
    """By hand: sin and its power are in line 5 of the second version, everything else in line 6."""
    app = opened("")
    assert _calls(app) == ["sin", "pow_1", "add", "cos", "pow_2"]
    colours = [_calls(app, f".unit-{colour}") for colour in range(6)]
    assert sorted(filter(None, colours)) == [["add", "cos", "pow_2"], ["sin", "pow_1"]]
    bars = app.locator(".compare-band .source-pane >> nth=1 >> .listing-number.coloured")
    second = [str(style) for style in bars.evaluate_all("all => all.map(e => e.getAttribute('style'))")]
    assert f"unit-{colours.index(['sin', 'pow_1'])}" in second[0]
    assert f"unit-{colours.index(['add', 'cos', 'pow_2'])}" in second[1]
    for call, line in (("call sin", "y = to"), ("call cos", "return")):
        app.locator(f".compare-band [aria-label^='{call}']").click()
        app.page.mouse.move(1, 1)
        assert _lines(app) == [line]
        app.page.keyboard.press("Escape")
    source = app.locator(".compare-band .source-pane").nth(1)
    source.locator(".listing-line", has_text="y = torch.sin").click(position={"x": 20, "y": 8})
    app.page.mouse.move(1, 1)
    assert _calls(app, ".on") == ["sin", "pow_1"]


def test_the_address_names_what_is_pinned_and_back_undoes_it(opened: Callable[[str], Locator]) -> None:
    app = opened("")
    page = app.page
    source = app.locator(".compare-band .source-pane").nth(1)
    source.locator(".listing-line", has_text="y = torch.sin").click(position={"x": 20, "y": 8})
    page.mouse.move(1, 1)
    page.wait_for_url("**#*pin=net.py*")
    app.locator(".compare-only").click()
    page.wait_for_url("**#only=0*")
    _, _, fragment = page.url.partition("#")
    page.go_back()
    app.locator(".compare-only[aria-pressed=true]").wait_for()
    assert _calls(app, ".on") == ["sin", "pow_1"]
    page.go_back()
    app.locator(".call-name.on").first.wait_for(state="detached")
    again = opened(fragment)
    assert _calls(again, ".on") == ["sin", "pow_1"]
    assert again.locator(".compare-only[aria-pressed=false]").count() == 1
    assert not again.locator(".link-trouble").is_visible()


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_what_is_pinned_is_lit_and_out_of_its_folds_however_it_is_shown(
    opened: Callable[[str], Locator], viewport: tuple[int, int]
) -> None:
    app = opened("")
    columns, graph = app.locator(".compare-column"), app.locator(".compare-graph .graph-view")
    columns.nth(1).locator(".listing-line[data-item]", has_text="store").first.click(
        position={"x": 30, "y": 9}
    )
    app.page.mouse.move(1, 1)

    def lit(what: str) -> list[int]:
        return [column.locator(what).count() for column in columns.all()]

    def settled() -> None:
        app.page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")

    settled()
    folded = ".listing-fold.lit[aria-expanded=false], .lit > .listing-fold[aria-expanded=false]"
    rows, tabs, calls = lit(".listing-line.lit"), lit(".code-tab.lit"), _calls(app, ".on")
    assert min(rows) > 0 and any(tabs) and calls
    assert lit(folded) == [0, 0]
    scrolled = graph.evaluate("e => e.scrollTop")
    for _ in range(2):
        app.locator(".compare-only").click()
        app.page.mouse.move(1, 1)
        settled()
        assert min(lit(".listing-line.lit")) > 0
        assert lit(".code-tab.lit") == tabs
        assert _calls(app, ".on") == calls
        assert graph.evaluate("e => e.scrollTop") == scrolled
        for column in columns.all():
            window, first = box(column), box(column.locator(".listing-line.lit").first)
            assert window["y"] < first["y"] < window["y"] + window["height"]
    assert lit(".listing-line.lit") == rows


@pytest.mark.parametrize(
    ("fragment", "said"),
    [
        ("only=0&of=1", "This link was made for another comparison: not all need be as it was there."),
        ("module=7", "This link names what is not in this one: module 7."),
    ],
)
def test_an_address_of_another_page_is_said(
    opened: Callable[[str], Locator], fragment: str, said: str
) -> None:
    note = opened(fragment).locator(".link-trouble")
    assert note.inner_text().startswith(said)


def test_open_kernels_are_partners_and_others_are_new(
    opened: Callable[[str], Locator], split: Difference
) -> None:
    """By hand: the addition to the cosine is in one kernel of each; the sort and its operand are in others."""
    columns = opened("").locator(".compare-column")
    chosen = [column.locator(".code-tab[aria-selected=true]") for column in columns.all()]
    assert all("add_cos" in one.inner_text() for one in chosen)
    texts = [text for text in columns.nth(1).locator(".code-tab").all_inner_texts() if "new" in text]
    assert len(texts) == 2 and any("sort" in text for text in texts)
    assert columns.first.locator(".launch-note").count() == 0
    assert "the same on both sides" in columns.nth(1).inner_text()
    columns.nth(1).locator(".code-tab", has_text="pow_sin").click()
    alone = columns.nth(1).inner_text()
    assert "the same on both sides" not in alone and "of no Python line" in alone
