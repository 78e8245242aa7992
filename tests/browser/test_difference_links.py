"""Counterparts in a diff, determined by hand: links, signs on nodes, and stable scroll positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens.views.live import compare as live
from compile_lens.views.live.compare import page as document

from . import captures
from .pages import ROOT, alive
from .settling import settle
from .viewer import box

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

SHORT = """import torch


def net(x):
    a = x * x.sum()
    b = torch.relu(a + 1.0)
{}    c = b * a
    d = torch.exp(c) * x
    return d / b * a
"""
BEFORE, AFTER = SHORT.format(""), SHORT.format("    b = b * 2.0 + torch.sigmoid(x)\n")
"""One more line in the middle: every later product has another number."""

LONG = """import torch


def net(x):
    hidden = torch.nn.functional.layer_norm(torch.nn.functional.gelu(x @ x + 0.5), (64,), weight=None, eps={})
    return hidden
"""


@pytest.fixture
def opened(standalone: Callable[..., Page]) -> Callable[[str, str], Locator]:
    """Return ``opened(before, after)``, the page of two versions of a program."""

    def shown(before: str, after: str) -> Locator:
        page = standalone(document(captures.difference(before, after)))
        alive(page)
        app = page.locator(f"{ROOT} .cl-app")
        app.locator(".compare-column .listing-number").first.wait_for()
        settle(page)
        return app

    return shown


def _graph(app: Locator, side: str) -> Locator:
    """Return the graph of one side, shown."""
    tab = app.locator(".compare-graph .frame-tab", has_text=side)
    if tab.get_attribute("aria-pressed") != "true":
        tab.click()
    app.locator(f".compare-graph .frame-tab[aria-pressed=true]:has-text('{side}')").wait_for()
    settle(app.page)
    return app.locator(".compare-graph .graph-svg")


def _names(nodes: Locator) -> list[str]:
    return [str(name) for name in nodes.evaluate_all(
        "all => all.map(e => e.querySelector('text.name')?.textContent ?? '')")]  # fmt: skip


def _node(graph: Locator, name: str) -> Locator:
    return graph.locator(".node", has=graph.page.locator(f"text.name:text-is('{name}')")).locator(
        ".graph-stop"
    )


@pytest.mark.parametrize("viewport", [(1280, 1400)])
@pytest.mark.exhaustive
def test_nodes_are_linked_by_what_they_compute_though_each_has_another_number(
    opened: Callable[[str, str], Locator], viewport: tuple[int, int]
) -> None:
    """By hand: mul_1 of the second is ``b * 2.0``, which the first lacks; its others are numbered one higher."""
    app = opened(BEFORE, AFTER)
    note = app.locator(".compare-lone")
    for after, before in (("mul_1", None), ("mul_2", "mul_1"), ("mul_3", "mul_2"), ("mul_4", "mul_3")):
        _node(_graph(app, "after"), after).dispatch_event("click")
        app.page.mouse.move(2, 2)
        assert note.is_visible() == (before is None), after
        if before is None:
            assert note.inner_text() == f"{after}: nothing in before stands for it"
            assert app.locator(".compare-column").first.locator(".lit").count() == 0
        products = [n for n in _names(_graph(app, "before").locator(".node.lit")) if n.startswith("mul")]
        assert products == ([before] if before else []), after
        app.page.keyboard.press("Escape")
        assert not note.is_visible()


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_nodes_that_the_other_has_not_bear_a_sign_and_can_be_gone_to(
    opened: Callable[[str, str], Locator], viewport: tuple[int, int]
) -> None:
    """Clicks on the tab of the version that has them step through the nodes, although the page opens on the effect."""
    app = opened(AFTER, BEFORE)
    tabs = app.locator(".compare-graph .frame-tab")
    assert ["".join(text.split()) for text in tabs.all_inner_texts()] == ["before≠3onlyhere", "after"]
    assert "3 nodes that the other graph has not" in (tabs.first.get_attribute("title") or "")
    tabs.first.click()
    app.locator(".compare-graph .node .unequal").first.wait_for()
    settle(app.page)
    signed = app.locator(".compare-graph .node:has(> .graph-stop > .unequal)")
    assert sorted(_names(signed)) == ["add_1", "mul_1", "sigmoid"]
    stage = box(app.locator(".compare-graph .graph-stage"))
    seen = []
    for _ in range(3):
        place = box(app.locator(".compare-graph .node:has(.ring.at) > .graph-stop"))
        assert (
            stage["y"] <= place["y"] + 9 and place["y"] + place["height"] <= stage["y"] + stage["height"] + 15
        )
        seen += _names(app.locator(".compare-graph .node:has(.ring.at)"))
        tabs.first.click()
        settle(app.page)
    assert sorted(seen) == ["add_1", "mul_1", "sigmoid"]
    for node in signed.locator("> .graph-stop").all():
        assert "≠ only here, not in after" in (node.get_attribute("aria-label") or "")


def test_a_node_that_is_otherwise_says_how(opened: Callable[[str, str], Locator]) -> None:
    """A softmax over the other dimension: its maximum and its sum use another dimension, and nothing is new."""
    text = "import torch\n\n\ndef net(x):\n    return torch.softmax(x, dim={})\n"
    app = opened(text.format(-1), text.format(0))
    signed = _graph(app, "after").locator(".node:has(> .graph-stop > .unequal)")
    assert sorted(_names(signed)) == ["amax", "sum_1"]
    for node in signed.locator("> .graph-stop").all():
        assert "[-1] → [0]" in (node.get_attribute("aria-label") or "")
    assert app.locator(".compare-lacked").count() == 0


SEEN = """
(panes, wanted) => panes.map((pane, i) => {
  const walker = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const at = walker.currentNode.data.indexOf(wanted[i]);
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(walker.currentNode, at);
    range.setEnd(walker.currentNode, at + wanted[i].length);
    const text = range.getBoundingClientRect(), frame = pane.getBoundingClientRect();
    return text.left >= frame.left && text.right <= frame.right && text.top >= frame.top - 1
      && text.bottom <= Math.min(frame.bottom, innerHeight) + 1;
  }
  return null;
})
"""


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (390, 844)])
def test_what_differs_at_the_end_of_a_long_line_is_in_view(
    opened: Callable[[str, str], Locator], viewport: tuple[int, int]
) -> None:
    app = opened(LONG.format("1e-05"), LONG.format("1e-03"))
    sources = app.locator(".compare-band .source-scroll")
    assert sources.evaluate_all(SEEN, ["1e-05", "1e-03"]) == [True, True]
    row = sources.first.locator(".listing-line", has_text="hidden =")
    assert row.evaluate("e => e.textContent").startswith("    hidden = torch.nn.functional.layer_norm(torch")
    assert box(row)["height"] > 1.5 * box(sources.first.locator(".listing-line").first)["height"]


@pytest.mark.parametrize("viewport", [(820, 600)])
def test_where_a_line_differs_is_known_without_the_words_that_say_it(
    opened: Callable[[str, str], Locator], monkeypatch: pytest.MonkeyPatch, viewport: tuple[int, int]
) -> None:
    monkeypatch.setattr(live, "_sign", lambda other: f"beside it: {other}")
    longer = LONG.replace("x @ x", " + ".join(["x @ x"] * 20))
    app = opened(longer.format("1e-05"), longer.format("1e-03"))
    sources = app.locator(".compare-band .source-scroll")
    assert sources.evaluate_all(SEEN, ["1e-05", "1e-03"]) == [True, True]
    signs = app.locator(".compare-band .tag-differs").evaluate_all("all => all.map((e) => e.title)")
    assert signs and all(words.startswith("beside it: hidden") for words in signs)


STEPS = "".join(f"    x = x * {n}\n" for n in range(3, 23))
STORY = f"import torch\n\n\ndef net(x):\n    x = torch.sin(x)\n{STEPS}    return torch.{{}}(x)\n"


@pytest.mark.parametrize("viewport", [(1280, 720), (390, 844)])
def test_a_line_of_the_story_comes_into_view_in_its_source(
    opened: Callable[[str, str], Locator], viewport: tuple[int, int]
) -> None:
    app = opened(STORY.format("tanh"), STORY.format("erf"))
    sources = app.locator(".compare-band .source-scroll")
    sources.nth(1).evaluate("e => (e.scrollTop = 0)")
    app.locator(".compare-place", has_text="torch.erf").first.click()
    settle(app.page)
    assert sources.nth(1).evaluate_all(SEEN, ["erf"]) == [True]


LOOPS = """import torch


def net(x):
    a = x * x.cos()
    b = torch.relu(a + 1.0)
{}    c = b * a
    d = torch.exp(c) * x
    e = d.sum(dim=-1, keepdim=True)
    return d / e * b
"""


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_what_is_clicked_stays_where_it_is(
    opened: Callable[[str, str], Locator], viewport: tuple[int, int]
) -> None:
    app = opened(LOOPS.format(""), LOOPS.format("    b = b * 2.0 + torch.sigmoid(x)\n"))
    column = app.locator(".compare-column").first
    row = column.locator(".listing-line[data-item]").last
    window = box(column.locator(".listing-box"))
    # Only its upper half is in view, at the bottom.
    column.locator(".listing-box").evaluate(
        "(e, by) => e.scrollBy(0, by)", box(row)["y"] + 14 - window["y"] - window["height"]
    )
    settle(app.page)
    place, text = box(row), row.inner_text()
    app.page.mouse.click(place["x"] + 120, place["y"] + 8)
    settle(app.page)
    pinned = column.locator(".listing-line.lit-self")
    assert pinned.count() == 1 and pinned.inner_text() == text
    assert abs(box(pinned)["y"] - place["y"]) < 2


BYTES = """
(all) => all.map((e) => getComputedStyle(e, "::before").content.replaceAll('"', "").replace("none", "") + e.textContent)
"""


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600), (390, 844)])
def test_bytes_of_kernels_say_that_they_are_modelled(
    opened: Callable[[str, str], Locator], viewport: tuple[int, int]
) -> None:
    app = opened(BEFORE, AFTER)
    texts = app.locator(".compare-column .launch-bytes").evaluate_all(BYTES)
    assert texts and all(words.startswith("~") and words.count("~") == 1 for words in texts), texts
