"""Accessibility: axe-core finds nothing, forced colours keep bars and tags, nothing moves without user action."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from needs import not_here
from samples_program import program

from compile_lens import Capture
from compile_lens.views.live import page as html
from compile_lens.views.live.compare import page as compared_page
from compile_lens.views.live.compare import page as differing_page
from compile_lens.views.render.html import page as page_of
from compile_lens.views.subjects.program import document

from . import captures
from .pages import APP, WITHOUT_PAPER, alive, images, static

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]
AXE = Path(__file__).resolve().parents[1] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"

_VIOLATIONS = """
async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, html }) => [id, target.flat(9).join(" "), html]));
}
"""

PAGES: dict[str, Callable[[], Capture | str]] = {
    "sin_cos": captures.sin_cos,
    "layer": captures.layer,
    "graph_break": captures.graph_break,
    "failing": captures.failing,
    "nothing": captures.nothing,
    "on_h100": captures.on_h100,
    "ablated": captures.ablated,
    "compared": lambda: compared_page(captures.compared()),
    "differing": lambda: differing_page(captures.differing()),
}


def violations(page: Page) -> list[tuple[str, str]]:
    """Return the rule and the element of every violation that axe-core reports."""
    if not AXE.is_file():
        not_here("axe-core is not installed: run npm ci in tests/viewer")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    rows: list[list[str]] = page.evaluate(_VIOLATIONS)
    # axe joins the texts of a drawing without blanks ("sinaten.sin.default"), and then does not find them in the name
    # of a node, which is "sin, aten.sin.default, float32[1000]".
    drawn = "label-content-name-mismatch"
    return [
        (rule, f"{at}: {part[:200]}") for rule, at, part in rows if rule != drawn or "graph-stop" not in part
    ]


@pytest.fixture
def opened(standalone: Standalone) -> Callable[[str], Locator]:
    """Return ``opened(name)``, the app of a page."""

    def of(name: str) -> Locator:
        page = standalone(PAGES[name]())
        app = alive(page).first
        page.wait_for_function(
            "app => !app.shadowRoot.querySelector('.frame-wait')", arg=app.element_handle()
        )
        return app

    return of


@pytest.mark.cases(full=2)
@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(opened: Callable[[str], Locator], name: str, colour_scheme: str) -> None:
    """Without selection, with a pinned item, and with each tab of the right pane."""
    app = opened(name)
    page = app.page
    assert violations(page) == []
    parts = app.locator(".call[role=button], .listing-line[role=button]:visible")
    if parts.count():
        parts.first.click()
        app.locator(".lit").first.wait_for(state="attached")
        assert violations(page) == []
    choices = app.locator(".frame-tab:visible, .frame-view:visible")
    assert choices.count() or name in ("failing", "nothing")
    for number in range(choices.count()):
        choices.nth(number).click()
        app.locator(".frame-wait").first.wait_for(state="detached")
        assert violations(page) == [], choices.nth(number).inner_text()


def test_axe_would_find_something(standalone: Standalone) -> None:
    page = standalone(
        "<!doctype html><html><title>t</title><img src='data:,'><p style='color:#eee'>pale</p></html>"
    )
    rules = {rule for rule, _ in violations(page)}
    assert {"image-alt", "color-contrast", "html-has-lang"} <= rules


@pytest.mark.parametrize("viewport", [(390, 844)])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_without_scripts(
    standalone: Standalone, name: str, viewport: tuple[int, int]
) -> None:
    """On a phone, where tables have to scroll."""
    shown = PAGES[name]()
    whole = shown if isinstance(shown, str) else html.page(shown)
    start = whole.index('<script type="application/json"')
    page = standalone(whole[:start] + "</div></main></body></html>")
    assert page.locator(APP).count() == 0
    page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    assert violations(page) == []


@pytest.mark.parametrize("viewport", [(1280, 720), (390, 844)])
def test_axe_finds_nothing_on_the_page_of_a_program(
    standalone: Standalone, viewport: tuple[int, int]
) -> None:
    page = standalone(page_of(document(program())))
    page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    assert violations(page) == []


_OUT = """
layer => {
  const edge = layer.getBoundingClientRect().right + 1;
  return [...layer.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > edge).map((e) => e.className);
}
"""

_HIDDEN = """
layer => [...layer.querySelectorAll("pre, img, .cl-note")].filter((e) => e.getBoundingClientRect().height === 0).length
"""


_BROKEN = """
layer => [...layer.querySelectorAll("td, th")].flatMap((cell) => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  while (walker.nextNode()) {
    for (const { index, 0: word } of walker.currentNode.data.matchAll(/[a-z]\\w*|\\d[\\d,.]*/gi)) {
      const range = document.createRange();
      range.setStart(walker.currentNode, index);
      range.setEnd(walker.currentNode, index + word.length);
      const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.top)));
      if (word.length <= (/^\\d/.test(word) ? 14 : 8) && lines.size > 1) broken.push(word);
    }
  }
  return broken;
})
"""


@pytest.mark.parametrize("viewport", [(718, 1000)])
@pytest.mark.parametrize("made", [captures.sin_cos, captures.on_h100])
def test_paper_breaks_no_short_word_and_no_number_of_a_table(
    standalone: Standalone, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = standalone(made())
    alive(page)
    page.evaluate(WITHOUT_PAPER)
    page.emulate_media(media="print")
    assert static(page).locator("td, th").count() > 20
    assert static(page).evaluate(_BROKEN) == []


@pytest.mark.parametrize("viewport", [(718, 1000)])  # A4 without its margins
@pytest.mark.parametrize("made", [captures.sin_cos, captures.layer, captures.graph_break, captures.on_h100])
def test_paper_is_one_column_with_nothing_folded_or_cut(
    standalone: Standalone, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = standalone(made())
    alive(page)
    page.evaluate(WITHOUT_PAPER)
    layer = static(page)
    page.emulate_media(media="print")
    assert all(images(layer))
    assert layer.evaluate(_HIDDEN) == 0
    assert layer.evaluate(_OUT) == []
    exact = "all => all.every((e) => getComputedStyle(e).printColorAdjust === 'exact')"
    assert layer.locator("*").evaluate_all(exact)
    columns = "all => all.map((e) => getComputedStyle(e).display)"
    assert set(layer.locator(".cl-stage-both").evaluate_all(columns)) <= {"block"}
    assert page.pdf().startswith(b"%PDF-")


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
def test_forced_colours_keep_bars_and_tags(opened: Callable[[str], Locator], colour_scheme: str) -> None:
    app = opened("sin_cos")
    app.page.emulate_media(forced_colors="active")
    assert app.page.evaluate("() => matchMedia('(forced-colors: active)').matches")
    bars = app.locator(".code-pane .listing-number.coloured")
    painted = bars.evaluate_all("all => all.map((e) => getComputedStyle(e).backgroundImage)")
    assert painted and len({words for words in painted if "rgb" in words}) >= 5, "a bar for each unit"
    tags = app.locator(".code-pane .tag")
    assert {"sin", "cos"} <= set(tags.evaluate_all("all => all.map((e) => e.dataset.tag ?? e.textContent)"))
    assert tags.first.is_visible()
    faces = app.locator(".graph-svg .node[class*=' unit-'] .face").evaluate_all(
        "all => all.map((e) => getComputedStyle(e).fill)"
    )
    assert len(set(faces)) >= 5


def test_forced_colours_keep_the_bars_of_launches_and_nothing_runs_under_a_tag(
    opened: Callable[[str], Locator],
) -> None:
    app = opened("layer")
    app.page.emulate_media(forced_colors="active")
    ground = "all => all.map((e) => getComputedStyle(e).backgroundColor)"
    assert len(set(app.locator(".launch-bar .part").evaluate_all(ground))) >= 4, "a colour for each line"
    tags = app.locator(".code-pane .tags").evaluate_all(ground)
    assert tags and not any("rgba" in colour for colour in tags), "what is behind does not shine through"


_LOOK = """
all => all.map((e) => {
  const { outlineStyle, borderBottomColor } = getComputedStyle(e);
  const ground = getComputedStyle(e.closest(".shell")).backgroundColor;
  const under = e.matches(".frame-tab") && borderBottomColor !== ground;
  return [e.ariaPressed === "true", under || outlineStyle !== "none"];
})
"""
"""Returns whether each button is pressed, and whether it shows that with a mark."""


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
def test_forced_colours_show_what_is_chosen_and_the_arrows(
    opened: Callable[[str], Locator], colour_scheme: str
) -> None:
    app = opened("sin_cos")
    app.page.emulate_media(forced_colors="active")
    for kind in (".flow-phase", ".flow-noun", ".frame-tabs:not([hidden]) .frame-tab:visible"):
        looks = app.locator(kind).evaluate_all(_LOOK)
        assert {pressed for pressed, _ in looks} == {True, False}, kind
        assert all(pressed == marked for pressed, marked in looks), kind
    colour = "e => getComputedStyle(e).backgroundColor"
    assert app.locator(".flow-arrow").first.evaluate(colour) != app.locator(".flow").evaluate(colour)


_MOVING = """
app => [...app.shadowRoot.querySelectorAll("*")].filter((e) => {
  const { animationName, animationDuration, transitionDuration } = getComputedStyle(e);
  const lasts = (times) => times.split(",").some((time) => parseFloat(time) > 0);
  return lasts(transitionDuration) || (animationName !== "none" && lasts(animationDuration));
}).map((e) => e.getAttribute("class"))
"""


def test_nothing_moves_for_who_wants_no_motion(opened: Callable[[str], Locator]) -> None:
    app = opened("layer")
    app.page.emulate_media(reduced_motion="reduce")
    assert app.evaluate(_MOVING) == []
    app.locator(".listing-line[role=button]:visible").first.click()
    app.locator(".lit").first.wait_for(state="attached")
    assert app.evaluate(_MOVING) == []
    assert app.evaluate("app => app.shadowRoot.getAnimations({ subtree: true }).length") == 0
