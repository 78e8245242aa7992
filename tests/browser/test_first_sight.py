"""The page before any click: compact controls, the figures, the path, a kernel at its first linked line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture
from compile_lens.measures.ledger import ledger
from compile_lens.measures.steps import at_step
from compile_lens.measures.unfused_pairs import unfused_pairs
from compile_lens.views.findings import findings
from compile_lens.views.live import page as html
from compile_lens.views.words import break_advice, outcome, stamp

from . import captures
from .pages import contrast, static
from .settling import settle
from .viewer import Viewer, box

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]
Open = Callable[[Capture], Viewer]

SIZES = [(1280, 720), (820, 600)]
STORIES = [captures.sin_cos, captures.layer, captures.graph_break, captures.on_h100]


COLOURS_IN_VIEW = """
app => {
  const root = app.shadowRoot;
  const inView = (e) => {
    const r = e.getBoundingClientRect();
    const f = e.closest(".frame-body").getBoundingClientRect();
    return r.width > 0 && r.top >= f.top && r.bottom <= Math.min(f.bottom, innerHeight) + 1 && r.left < f.right;
  };
  const of = (selector, read) => [...root.querySelectorAll(selector)].filter(inView).flatMap(read);
  const painted = (e) => /rgb/.test(getComputedStyle(e).backgroundImage);
  const bar = (e) => painted(e) ? [...e.style.getPropertyValue("--bar").matchAll(/unit-(\\d)/g)].map((m) => m[1]) : [];
  const named = (e) => /unit-(\\d)/.exec(e.getAttribute("class"))[1];
  return {
    source: [...of(".source-pane .call", named), ...of(".source-pane .listing-number.coloured", bar)],
    graph: [
      ...of(".graph-svg .node[class*=' unit-'] > .graph-stop > .face", (e) => named(e.closest(".node"))),
      ...of(".graph-svg .seg", named),
    ],
    code: of(".code-pane .listing-number.coloured", bar),
  };
}
"""

UNITS = ".call[role=button], .listing-line.coloured:not(:has(.call))"
"""Each unit of work in the source."""

LIT_IN_VIEW = """
app => [...app.shadowRoot.querySelectorAll(".frame")].map((frame) => {
  const body = frame.querySelector(".frame-body").getBoundingClientRect();
  const lit = [...frame.querySelectorAll(
    ".call.on, .listing-number.lit, .node.lit > .graph-stop > .face, .code-tab.lit, .code-kernels.lit")];
  const seen = lit.filter((e) => {
    const r = e.getBoundingClientRect();
    return r.width > 0 && r.bottom <= Math.min(body.bottom, innerHeight) + 1 && r.top >= body.top - 1
      && r.left >= body.left - 1 && r.left < body.right - 8;
  });
  return [seen.length, lit.length];
})
"""


EDGES = """
(line, text) => {
  const nodes = [], walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) nodes.push(walker.currentNode);
  const at = nodes.map((node) => node.data).join("").indexOf(text);
  const edge = (offset) => {
    let before = 0;
    for (const node of nodes) {
      if (offset < before + node.data.length) {
        const range = document.createRange();
        range.setStart(node, offset - before);
        range.setEnd(node, offset - before + 1);
        return range.getBoundingClientRect();
      }
      before += node.data.length;
    }
  };
  return [edge(at).left, edge(at + text.length - 1).right];
}
"""
"""Start and end of a text in a line."""


@pytest.fixture
def viewer(standalone: Standalone) -> Open:
    """Return ``viewer(capture)``, which opens the capture's saved page and waits for its initial view."""

    def opened(shown: Capture) -> Viewer:
        page = Viewer(standalone(shown), shown)
        page.find(".frame .listing-number, .frame .node").first.wait_for()
        page.page.wait_for_function(
            "app => !app.shadowRoot.querySelector('.frame-wait')", arg=page.app.element_handle()
        )
        page.frame()
        return page

    return opened


@pytest.mark.parametrize("viewport", SIZES)
@pytest.mark.parametrize("made", [*STORIES, captures.failing, captures.hostile])
def test_controls_take_little_height(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    most = 96 if viewport[1] > 640 else 84
    assert 60 < min(box(frame)["y"] for frame in page.find(".frame").all()) <= most
    assert page.find(".top").evaluate("e => e.scrollHeight <= e.clientHeight + 1")
    out = page.page.evaluate("() => document.scrollingElement.scrollWidth - innerWidth")
    assert out <= 0


def test_controls_of_a_cell_take_less(standalone: Standalone) -> None:
    shown = captures.sin_cos()
    page = standalone(f"<!doctype html><html><body>{html.fragment(shown)}</body></html>")
    cell = Viewer(page, shown)
    cell.find(".frame .node").first.wait_for()
    top = box(cell.app)["y"]
    assert min(box(frame)["y"] for frame in cell.find(".frame").all()) - top <= 84 + 2


@pytest.mark.parametrize("viewport", SIZES)
@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
@pytest.mark.parametrize("made", STORIES)
@pytest.mark.cases(full=2)
def test_source_node_and_kernel_line_of_one_colour_are_in_view(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    seen: dict[str, list[str]] = page.app.evaluate(COLOURS_IN_VIEW)
    common = set(seen["source"]) & set(seen["graph"]) & set(seen["code"])
    assert common, seen


@pytest.mark.parametrize("viewport", SIZES)
@pytest.mark.parametrize("made", STORIES)
def test_the_whole_chain_of_a_click_is_in_view(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    units = page.pane("python").locator(UNITS).all()
    assert units
    for unit in units:
        unit.click(position={"x": 4, "y": 8})
        page.leave()
        page.frame()
        assert len(page.pins()) == 1
        lit: list[list[int]] = page.app.evaluate(LIT_IN_VIEW)
        assert len(lit) == 3, "source, graph and code"
        assert all(seen > 0 for seen, _ in lit), (unit.inner_text(), lit)
        if unit != units[-1]:
            page.page.keyboard.press("Escape")
    row, rest = box(page.find(".flow-steps")), box(page.find(".flow-more"))
    chips = page.find(".flow-noun.lit:visible").all()
    assert len(chips) >= 4
    for chip in chips:
        place = box(chip)
        assert row["x"] <= place["x"] and place["x"] + place["width"] <= min(rest["x"], viewport[0])
        assert place["y"] + place["height"] <= viewport[1]


_SEEN = """
e => {
  const one = e.getBoundingClientRect(), all = e.parentElement.getBoundingClientRect();
  return one.top < all.bottom && one.bottom > all.top;
}
"""
_WHOLE = """
e => {
  const one = e.getBoundingClientRect(), all = e.parentElement.getBoundingClientRect();
  return one.left >= all.left - 1 && one.right <= all.right + 1 && e.scrollWidth <= e.clientWidth + 1;
}
"""


@pytest.mark.parametrize("viewport", [*SIZES, (390, 844)])
@pytest.mark.parametrize("made", STORIES)
def test_what_does_not_fit_is_a_button_away(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    for chip in page.find(".flow-count:visible, .flow-what:visible").all():
        assert chip.evaluate("e => e.scrollWidth <= e.clientWidth"), "no chip is cut"
    assert page.find(".frame-tab:visible").last.evaluate(_WHOLE)
    for kernel in page.find(".kernel-title:visible").all():
        facts = [fact for fact in kernel.locator(".kernel-chip").all() if fact.evaluate(_SEEN)]
        assert facts and all(fact.evaluate(_WHOLE) for fact in facts), "a fact is seen whole, or not at all"
        name = kernel.locator(".kernel-name")
        assert name.evaluate("e => e.scrollWidth <= e.clientWidth") or len(facts) == 1
    for frame in page.find(".frame").all():
        title = frame.get_attribute("aria-label")
        tools, more = frame.locator(".frame-tools"), frame.locator(".frame-more")
        fits = tools.evaluate("e => e.scrollHeight <= e.clientHeight + 4")
        assert fits or more.is_visible(), title
        assert tools.evaluate("e => e.scrollWidth <= e.clientWidth"), title
        if more.is_visible():
            more.click()
            assert tools.evaluate("e => e.scrollHeight <= e.clientHeight"), title
            more.click()


@pytest.mark.parametrize("viewport", SIZES)
def test_a_long_name_of_a_kernel_leaves_its_first_fact_whole(viewer: Open) -> None:
    title = viewer(captures.sin_cos()).find(".kernel-title:visible").first
    title.locator(".kernel-name").evaluate(
        "e => (e.textContent = 'triton_per_fused_' + 'native_'.repeat(30))"
    )
    first = title.locator(".kernel-chip").first
    assert first.evaluate(_SEEN) and first.evaluate(_WHOLE)


@pytest.mark.parametrize("viewport", [(820, 600), (1040, 720), (1100, 720)])
def test_a_line_of_calls_is_seen_to_its_end_in_a_narrow_cell(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(captures.sin_cos())
    last = box(page.pane("python").locator(".call[role=button]").last)
    pane = box(page.pane("python"))
    assert last["x"] + last["width"] <= pane["x"] + pane["width"]


def test_the_headline_and_the_way_count_as_the_ledger_does(viewer: Open) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    total, forward = shown.ledger.total, shown.ledger.forward
    head = page.find(".top-savings").inner_text()
    assert f"{total.eager_ops} eager ops → {total.launches} launches" in " ".join(head.split())
    chips = [" ".join(text.split()) for text in page.find(".flow-noun").all_inner_texts()]
    assert chips == [
        "1 line Python",
        "5 calls Dynamo",
        f"{forward.aten_ops} ops ATen = post-grad",
        f"{forward.loops} loop Inductor",
        f"{forward.groups} group scheduler",
        "1 kernel 1 launch",
    ]
    verbs = page.find(".flow-name").all_inner_texts()
    assert verbs == ["traced", "joint 17", "inlined", "fused", "generated"]
    phases = [" ".join(text.split()) for text in page.find(".flow-phase").all_inner_texts()]
    assert phases == ["forward 5 ops → 1", "backward 12 ops → 1"]
    page.find(".flow-phase").nth(1).click()
    assert page.find(".flow-noun").nth(2).inner_text().startswith("12 ops")
    assert (page.number("backward.code"), False) in page.shown()


@pytest.mark.parametrize("made", STORIES)
def test_the_way_reads_as_it_does_without_scripts(viewer: Open, made: Callable[[], Capture]) -> None:
    shown = made()
    page = viewer(shown)
    compilation = shown.compilations[outcome.first(shown)]
    lines = static(page.page).locator(".cl-way").all_text_contents()
    for phase in compilation.code:
        page.find(f".flow-phase.phase-{phase}").click()
        words = page.find(".flow-steps > li").evaluate_all(
            """
            all => all.map((li) => {
              const said = (name) => li.querySelector(name)?.textContent ?? "";
              const note = said(".flow-note");
              return said(".flow-noun .flow-count") || said(".flow-name") + (note ? ` (${note})` : "");
            })
            """
        )
        way = " → ".join(words).replace("(up to break)", "up to a break")
        assert f"{phase}: {way}" in lines


def test_what_went_wrong_is_said_first(viewer: Open) -> None:
    shown = captures.graph_break()
    page = viewer(shown)
    assert page.find(".top-chip").all_inner_texts() == [f"{len(shown.breaks)} graph break"]
    broken = viewer(captures.failing())
    chips = broken.find(".top-chip")
    assert "failed: ValueError" in chips.first.inner_text()
    assert "top-bad" in (chips.first.get_attribute("class") or "")
    assert "no result for" in broken.find(".outcome-said").inner_text()
    # The part that was compiled before is shown beside it.
    broken.find(".frame-tab").filter(has_text="kernel").click()
    broken.pane("forward.code").locator(".code-pane").wait_for(state="visible", timeout=30_000)


@pytest.mark.parametrize("viewport", [*SIZES, (1920, 1080)])
@pytest.mark.parametrize(
    ("made", "expression", "reason", "stopped", "left"),
    [
        (
            captures.wrong_shapes,
            "y @ w",
            "a and b must have same reduction dim, but got [4, 5] X [6, 3]",
            "traced",
            ["Dynamo", "ATen", "loops", "groups", "kernels"],
        ),
        (
            captures.not_lowered,
            "torch.ops.lens_browser.raises(y)",
            "NotImplementedError: there is no loop for it",
            "inlined",
            ["loops", "groups", "kernels"],
        ),
    ],
)
def test_a_failure_is_shown_where_it_happened(
    viewer: Open,
    made: Callable[[], Capture],
    expression: str,
    reason: str,
    stopped: str,
    left: list[str],
    viewport: tuple[int, int],
) -> None:
    shown = made()
    page = viewer(shown)
    assert "top-bad" in (page.find(".top-chip").first.get_attribute("class") or "")
    arrow = page.find(".flow-stopped")
    assert arrow.locator(".flow-name").text_content() == stopped
    assert arrow.locator(".flow-note").text_content() == "stopped here"
    unseen = page.find(".flow-missing:has(.flow-what:text-is('not reached')) .flow-count").all_text_contents()
    assert unseen == left
    # The reason is below the expression, which is underlined.
    line = page.pane("python").locator(".listing-line:has(.listing-note.failed)")
    assert expression in line.inner_text() and reason in line.inner_text()
    mark = box(line.locator(".listing-fault"))
    left_edge, right_edge = line.evaluate(EDGES, expression)
    assert abs(mark["x"] - left_edge) < 2 and abs(mark["x"] + mark["width"] - right_edge) < 2
    note, pane = box(line.locator(".listing-note-text")), box(page.pane("python"))
    assert note["y"] >= mark["y"] + mark["height"] - 1
    assert note["y"] + note["height"] <= min(pane["y"] + pane["height"], viewport[1])
    # Torch's complete report is shown beside it.
    right = page.find(".frame").last
    words = right.locator(".outcome-said")
    assert shown.failure is not None
    assert words.inner_text().strip() == shown.failure.message.strip()
    assert box(right)["x"] >= pane["x"] + pane["width"]
    right.get_by_role("button", name="traceback").click()
    assert "Traceback (most recent call last)" in words.inner_text()


@pytest.mark.parametrize("viewport", [*SIZES, (390, 844)])
def test_a_failure_in_the_backward_opens_there(viewer: Open, viewport: tuple[int, int]) -> None:
    """The page opens on the compilation whose backward failed, with the switch on backward: its forward is complete."""
    page = viewer(captures.backward_not_lowered())
    assert page.find(".flow-phase[aria-pressed=true] .flow-count").text_content() == "backward"
    assert "1/0" in (page.find(".flow-which").text_content() or "")
    assert page.find(".flow-stopped .flow-name").text_content() == "inlined"
    assert page.pane("backward", 1).is_visible() or viewport[0] == 820
    assert "there is no loop for it" in page.find(".outcome-said").inner_text()
    assert "there is no loop for it" in page.pane("python").locator(".listing-note.failed").inner_text()
    about = box(page.find(".top-about"))
    assert about["x"] + about["width"] <= viewport[0], "the head ends in the window"
    # The path is not truncated; the compilation's name, which the table also shows, is shortened.
    for word in page.find(".flow-step :is(.flow-count, .flow-what):visible, .flow-note:visible").all():
        assert word.evaluate("e => e.scrollWidth <= e.clientWidth") or viewport[0] < 640, word.inner_text()
    assert page.find(".compilation-work").last.inner_text() == "12 → ≥ 2", "12 are counted, two launches seen"
    # The saving that is shown covers the graphs that were reached.
    assert re.fullmatch(r"\d of 4 graphs", page.find(".saving-some").first.inner_text().strip())
    page.find(".flow-phase").filter(has_text="forward").click()
    assert page.find(".flow-stopped").count() == 0


def test_addresses_in_what_torch_says_lead_there_and_nothing_else_does(viewer: Open) -> None:
    plain = captures.wrong_shapes()
    assert plain.failure is not None
    (address,) = re.findall(r"https://\S+html", plain.failure.message)
    lures = (
        "javascript:alert('link') data:text/html,x <a href=x onclick=alert('tag')>x</a> http://a.b/'onload=c"
    )
    failure = dataclasses.replace(plain.failure, message=f"{plain.failure.message}\n{lures}")
    page = viewer(dataclasses.replace(plain, failure=failure))
    links = page.find(".outcome-said a")
    assert [link.get_attribute("href") for link in links.all()] == [address, "http://a.b/"]
    assert {link.get_attribute("rel") for link in links.all()} == {"noopener noreferrer"}
    assert lures in page.find(".outcome-said").inner_text()


@pytest.mark.parametrize("viewport", SIZES)
def test_a_page_of_nothing_says_why(viewer: Open, viewport: tuple[int, int]) -> None:
    shown = captures.nothing()
    page = viewer(shown)
    assert page.find(".flow-missing .flow-what").all_text_contents() == ["none"] * 5
    assert page.find(".flow-stopped").count() == 0
    right = page.find(".frame").last
    assert shown.nothing_compiled in right.inner_text()
    assert right.inner_text().count("nothing was compiled") == 1, "in the head of the pane"
    assert box(page.find(".panes-row"))["height"] > viewport[1] / 2, "no half of the page is blank"


def test_a_kernel_is_open_at_its_first_linked_line(viewer: Open) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    pane = page.pane("forward.code")
    assert pane.locator(".frame-tab[aria-pressed=true]").inner_text() == "kernel"
    first = pane.locator(".listing-number.coloured").first
    (kernel,) = shown.compilations[0].code["forward"].kernels
    linked = [mark.line for mark in kernel.lines if mark.origins]
    assert first.get_attribute("data-number") == str(kernel.first_line + linked[0] - 1)
    assert box(first)["y"] < 720
    folds = pane.locator(".listing-fold").all_inner_texts()
    assert any("signature" in fold and "include" in fold for fold in folds), "a fold says what it holds"
    shown_lines = " ".join(pane.locator(".listing-line").all_inner_texts())
    assert "static_cast<int64_t>" not in shown_lines and "at::vec::" not in shown_lines
    pane.get_by_role("button", name="leave out casts").click()
    assert "at::vec::" in " ".join(pane.locator(".listing-line").all_inner_texts())


def test_a_pin_turns_the_row_into_its_chain(viewer: Open) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    height = box(page.find(".flow"))["height"]
    page.pane("python").get_by_role("button", name="call cos:").click()
    page.leave()
    page.frame()
    chips = [" ".join(text.split()) for text in page.find(".flow-noun").all_inner_texts()]
    line = shown.sources[0].first_line + 1
    assert chips[0] == f"line {line} Python"
    assert chips[1].startswith("cos") and chips[1].endswith("1 of 5 calls")
    (kernel,) = shown.compilations[0].code["forward"].kernels
    cos = ("0/0", "dynamo", "cos")
    lit = {cos, *shown.chain.ancestors(cos), *shown.chain.descendants(cos, derivatives=False)}
    lines = sorted(
        kernel.first_line + int(name.rpartition(":")[2]) - 1
        for _, key, name in lit
        if key == "forward.code" and ":" in name
    )
    assert chips[-1].startswith(f"{lines[0]}, {lines[1]}"), "lines are numbered as the module is"
    assert box(page.find(".flow"))["height"] == height, "it costs no height"
    # A click on a chip lists everything that it contains.
    page.chip("forward").click()
    wanted = page.find(".chain-wanted")
    wanted.wait_for()
    assert "cos" in wanted.inner_text() and "sin" not in wanted.inner_text()
    assert box(wanted)["width"] > 300 and box(wanted)["y"] < 720
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("Escape")
    assert page.pins() == []
    assert page.find(".flow-noun").first.inner_text().startswith("1 line")


def test_what_is_known_of_why_stands_beside_the_code(viewer: Open) -> None:
    shown = captures.layer()
    page = viewer(shown)
    pane = page.pane("forward.code")
    count = len(unfused_pairs(shown, "0/0", "forward"))
    assert 0 < count < count + len(unfused_pairs(shown, "0/0", "backward"))
    assert page.find(".flow-note").all_inner_texts() == [f"{count} pairs not"], "those of the phase"
    first = page.shown()
    places = [box(frame) for frame in page.find(".frame").all()]

    def tabs() -> list[str]:
        texts = page.find(".frame-tabs:visible").last.locator(".frame-tab").all_inner_texts()
        return [" ".join(text.split()) for text in texts]

    def choose(name: str) -> Locator:
        page.find(".frame-tabs:visible").last.locator(".frame-tab").filter(has_text=name).click()
        now = page.find(".frame").last
        now.locator(".frame-tab[aria-pressed=true]").filter(has_text=name).wait_for()
        assert [box(frame) for frame in page.find(".frame").all()] == places, "it costs no pane"
        return now

    (peak,) = (f.badge for f in findings(shown) if f.key == "memory")
    assert peak and peak in tabs()[3]
    labels = ["kernels", "module", f"why {count}", f"memory {peak}", "story"]
    assert tabs() == labels
    assert choose("why").locator(".finding").is_visible() and not pane.is_visible()
    assert tabs() == labels, "they are the same beside each of them"
    story = choose("story").locator(".story")
    story.wait_for()
    assert " ".join(shown.story().sentences[0].text.split()) in story.inner_text()
    story.locator(".story-link").first.click()
    assert len(page.pins()) == 1 and page.pane("python").locator(".lit").count() > 0
    module = choose("module")
    assert module.locator(".code-tab[aria-selected=true]").count() == 0
    assert "async_compile" in module.locator(".listing").inner_text()
    choose("kernels")
    assert pane.locator(".code-tab[aria-selected=true]").count() == 1 and page.shown() == first


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_a_page_opens_on_what_was_asked_for(viewer: Open, viewport: tuple[int, int]) -> None:
    shown = captures.ablated()
    page = viewer(shown)
    right = page.find(".frame").last
    right.locator(".finding-column").first.wait_for()
    tab = right.locator(".frame-tab[aria-pressed=true]")
    launches = [ledger(at_step(shown, step.step)).total.launches for step in shown.ablations]
    labels = ["ablations", *" → ".join(map(str, launches)).split()]
    assert tab.inner_text().split() == (labels if viewport[0] > 1000 else ["ablations"])
    assert len(page.find(".frame").all()) == 3
    right.locator(".frame-tab").first.click()
    page.pane("forward.code").locator(".code-pane").wait_for()


@pytest.mark.exhaustive
@pytest.mark.parametrize("viewport", SIZES)
def test_a_transformer_opens_no_lower_than_it_must(viewer: Open, viewport: tuple[int, int]) -> None:
    """Its kernel begins with lines of a later function, but other visible lines come from the code at the top."""
    page = viewer(captures.gpt2())
    page.frame()
    for scrolling in (".source-scroll", ".graph-view"):
        assert page.find(scrolling).evaluate("e => e.scrollTop") == 0, scrolling
    numbers = page.pane("forward.code").locator(".listing-number.coloured")
    whole = numbers.evaluate_all(
        """
        (all) => all.filter((e) => {
          const r = e.getBoundingClientRect(), f = e.closest(".listing-box").getBoundingClientRect();
          return r.top >= f.top && r.bottom <= f.bottom;
        }).map((e) => +e.dataset.number)
        """
    )
    first = numbers.evaluate_all("all => Math.min(...all.map(e => +e.dataset.number))")
    assert first in whole, "the kernel is still open where it begins"
    seen = {where: set(colours) for where, colours in page.app.evaluate(COLOURS_IN_VIEW).items()}
    assert len(seen) == 3 and set.intersection(*seen.values()), "one colour in all of them"


@pytest.mark.parametrize("viewport", [(820, 600), (390, 844)])
def test_both_branches_of_a_graph_are_in_view_where_there_is_room(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    page = viewer(captures.sin_cos())
    pane = page.pane("forward")
    view = box(pane.locator(".graph-view"))
    nodes = pane.locator(".node").all()
    assert len(nodes) == len(page.items.stages[page.number("forward") - 1].names)
    for node in nodes:
        face, name = box(node.locator(".face").first), page.address(int(node.get_attribute("data-item") or 0))
        inside = view["x"] <= face["x"] and face["x"] + face["width"] <= view["x"] + view["width"]
        assert inside, name


def test_what_happened_in_between_stands_below_a_short_kernel(viewer: Open) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    foot = page.pane("forward.code").locator(".between")
    foot.wait_for()
    lines = {s.text for s in shown.story().sentences if s.stage.startswith("forward")}
    texts = foot.locator("p").all_inner_texts()
    assert 2 <= len(texts) <= 3 and set(texts) <= lines
    long = viewer(captures.layer())
    assert not long.pane("forward.code").locator(".between").is_visible(), "there is no room for it"


@pytest.mark.parametrize("viewport", [(1920, 1080)])
def test_the_list_of_all_stages_does_not_cover_what_was_chosen_there(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    page = viewer(captures.sin_cos())
    page.find(".flow-all").click()
    card = page.card("forward.groups", fusion=True)
    card.click()
    page.pane("forward.groups", fusion=True).wait_for()
    assert not card.is_visible() and page.find(".flow-all").get_attribute("aria-expanded") == "false"


def test_compilations_are_a_table_and_breaks_stand_on_their_lines(viewer: Open) -> None:
    shown = captures.graph_break()
    page = viewer(shown)
    source = page.pane("python")
    (ending,) = [c.ending for c in shown.compilations if c.ending and c.ending.kind == "graph break"]
    broken = source.locator(".listing-line:has(.listing-note)")
    assert broken.count() == 1 and "print" in broken.inner_text()
    note = broken.locator(".listing-note")
    assert note.inner_text().startswith("graph break: ") and ending.hint.split("\n")[0] in str(
        note.locator(".listing-note-text").get_attribute("title")
    )
    rows = source.locator(".compilation")
    assert rows.first.get_attribute("aria-pressed") == "true"
    # A click shows the whole advice, another click its beginning; and the code after the break, as its row does.
    advice = note.locator(".listing-hint")
    begun, whole = advice.inner_text(), " ".join(ending.hint.split())
    assert begun.endswith("…") and whole not in advice.inner_text()
    for all_of_it in (True, False):
        note.click()
        assert (whole in advice.inner_text()) == all_of_it
        assert rows.nth(1).get_attribute("aria-pressed") == "true"
    assert advice.inner_text() == begun
    rows.first.click()
    page.frame()
    cells = [[" ".join(c.split()) for c in row.locator("span").all_inner_texts()] for row in rows.all()]
    name, line = shown.compilations[0].function, ending.frames[-1].line
    # The ledger and the tabs of compilations use the name that the table uses.
    rest = f"1/0 {name}, after line {line}"
    assert rest in page.find(".below-heading").all_text_contents()
    (tab,) = page.find(".tab:has(.tab-id)").filter(has_text="1/0").all()
    assert tab.locator(".tab-name").text_content() == f"{name}, after line {line}"
    assert "torch_dynamo_resume_in_" in str(tab.get_attribute("title"))
    work = [f"{shown.ledger.graphs[i][1].total.eager_ops} → 2" for i in range(2)]
    assert cells == [
        ["0/0", name, work[0], "called"],
        ["1/0", f"{name}, after line {line}", work[1], "continues after the break"],
    ]
    assert rows.first.get_attribute("aria-pressed") == "true"
    rows.nth(1).click()
    page.frame()
    assert rows.nth(1).get_attribute("aria-pressed") == "true"
    assert page.chip("dynamo", 1).count() == 1


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
@pytest.mark.exhaustive
def test_compilations_say_in_short_what_changed(viewer: Open, viewport: tuple[int, int]) -> None:
    shown = captures.recompiled()
    page = viewer(shown)
    rows = page.pane("python").locator(".compilation")
    assert rows.count() == len(shown.compilations) > 5
    results = {}
    for row, compilation in zip(rows.all(), shown.compilations, strict=True):
        why = row.locator(".compilation-why")
        again = why.locator(".compilation-again").count()
        assert again == bool(compilation.recompile_reasons)
        if again:
            assert why.get_attribute("title") == "\n".join(compilation.recompile_reasons)
        results[compilation.id] = " ".join(why.inner_text().split())
        total = shown.ledger.graphs[shown.compilations.index(compilation)][1].total
        idle = not total.eager_ops and not total.launches
        assert ("idle" in str(row.get_attribute("class"))) == idle
        assert ("no work" in row.inner_text()) == idle
    assert "called" in results["0/0"] and results["1/0"].startswith("called in line")
    assert {"again size of x 8 → 4", "again x float32 → float64", "again word 'one' → 'four'"} <= set(
        results.values()
    )
    # The table fills its column: the graph is below the code.
    assert box(rows.nth(2))["y"] < viewport[1]
    graph, code = (box(page.find(f".frame[data-stage='{number}']")) for number, _ in page.shown()[1:])
    assert graph["x"] == code["x"] > box(page.pane("python"))["x"] and graph["y"] > code["y"]


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_breaks_are_counted_alike_and_the_chip_leads_to_them(viewer: Open, viewport: tuple[int, int]) -> None:
    """A helper prints: one line breaks the graph of each of its callers, and its own."""
    shown = captures.recompiled()
    page = viewer(shown)
    chip, again = page.find("button.top-chip").all()
    name = page.find(".top-name")
    assert name.evaluate("e => e.scrollWidth <= e.clientWidth"), "neither is cut"
    for one in (chip, again):
        assert one.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    text = " ".join(chip.inner_text().split())
    count = len(shown.breaks)
    assert count > 1 and text == f"{count} graph breaks" + (" at 1 place" if viewport[0] > 1000 else "")
    (note,) = page.pane("python").locator(".listing-note").all()
    words = " ".join(note.inner_text().split())
    advice = break_advice.LOGGING.format("print")
    assert words.startswith(f"{count} graph breaks: ") and f"Hint: {advice} …" in words
    torchs = note.locator(".listing-note-text").get_attribute("title")
    assert shown.breaks[0].hint.partition(". ")[0] in str(torchs), "torch's own"
    here = "app => app.shadowRoot.activeElement?.innerText ?? ''"
    chip.focus()
    page.page.keyboard.press("Enter")
    page.frame()
    assert "print(word)" in page.app.evaluate(here)
    line = box(page.pane("python").locator(".listing-line:has(.listing-note)"))
    body = box(page.pane("python").locator(".frame-body"))
    assert body["y"] <= line["y"] and line["y"] + line["height"] <= body["y"] + body["height"]
    for recompile in shown.recompiles:
        again.click()
        page.frame()
        assert page.app.evaluate(here).startswith(recompile.id)
    # The text under the arrow describes this compilation and is not a number.
    page.choose(0)
    assert page.find(".flow-note").all_inner_texts()[:1] == ["up to break"]


@pytest.mark.parametrize("viewport", [(820, 600)])
def test_beside_a_table_a_graph_is_whole_in_a_cell(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(captures.graph_break())
    source, graph, code = (box(page.find(f".frame[data-stage='{number}']")) for number, _ in page.shown())
    assert graph["x"] == code["x"] > source["x"] and graph["y"] > code["y"]
    for node in page.find(".graph-svg .node").all():
        assert box(node)["y"] + box(node)["height"] <= graph["y"] + graph["height"]


@pytest.mark.parametrize("viewport", [(390, 844)])
@pytest.mark.parametrize("made", [captures.sin_cos, captures.recompiled])
def test_on_a_phone_the_row_says_that_it_goes_on(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    row = page.find(".flow-scroll")
    fade = row.evaluate(
        "e => { const s = getComputedStyle(e, '::after'); return [s.backgroundImage, s.position, s.width]; }"
    )
    assert fade[0].startswith("linear-gradient") and fade[1] == "sticky"
    assert row.evaluate("e => { e.scrollLeft = 9999; return e.scrollLeft > 0; }")
    last, end = box(page.find(".flow-noun").last), box(row)
    width = float(fade[2].removesuffix("px"))
    assert last["x"] + last["width"] <= end["x"] + end["width"] - width + 1, "at its end nothing is faded"
    find = page.find(".find-all")
    room = """
    e => {
      const s = getComputedStyle(e), paper = document.createElement("canvas").getContext("2d");
      paper.font = s.font;
      return e.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight) - paper.measureText("Find").width;
    }
    """
    assert find.evaluate(room) >= 0


@pytest.mark.parametrize("viewport", [(820, 600), (1280, 720)])
def test_a_long_reason_of_a_break_is_read_to_its_end(viewer: Open, viewport: tuple[int, int]) -> None:
    plain = captures.graph_break()
    first = plain.compilations[0]
    assert first.ending is not None
    reason = "Unsupported call of something with a name that is long " * 3
    ending = dataclasses.replace(first.ending, reason=reason)
    changed = (dataclasses.replace(first, ending=ending), *plain.compilations[1:])
    page = viewer(dataclasses.replace(plain, compilations=changed))
    note = page.pane("python").locator(".listing-note")
    assert reason.strip() in " ".join(note.inner_text().split())
    at, pane = box(note.locator(".listing-note-text")), box(page.pane("python"))
    assert at["x"] + at["width"] <= pane["x"] + pane["width"]
    line = box(page.pane("python").locator(".listing-line:has(.listing-note)"))
    assert at["y"] + at["height"] <= line["y"] + line["height"] + 1, "it covers no other line"


@pytest.mark.parametrize("viewport", SIZES)
@pytest.mark.parametrize("made", [captures.on_h100, captures.recompiled, captures.graph_break])
def test_the_device_gives_way_to_the_name(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    shown = made()
    page = viewer(shown)
    name = page.find(".top-name")
    assert name.inner_text() == shown.function.rpartition(".<locals>.")[2]
    assert name.evaluate("e => e.scrollWidth <= e.clientWidth"), "whole"
    assert shown.function in str(name.get_attribute("title"))
    assert stamp.device(shown) in str(page.find(".top-device").get_attribute("title"))
    page.find(".top-about").click()
    assert stamp.device(shown) in page.find(".about").inner_text()


@pytest.mark.parametrize("viewport", [(1000, 720), (820, 600), (390, 844)])
@pytest.mark.parametrize("made", [captures.graph_break, captures.on_h100, captures.wrong_shapes])
def test_the_device_is_seen_on_small_pages(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    """The device takes as few words as fit, also for a target beside a long name."""
    shown = made()
    long = {"function": "a_function_whose_name_is_long"} if made is captures.on_h100 else {}
    page = viewer(dataclasses.replace(shown, **long))
    name, top = box(page.find(".top-device b")), box(page.find(".top"))
    room = box(page.find(".top-room"))
    assert room["y"] <= name["y"] and name["y"] + name["height"] <= room["y"] + room["height"]
    assert top["x"] <= name["x"] and name["x"] + name["width"] <= room["x"] + room["width"] <= viewport[0]
    text = page.find(".top-device b").inner_text()
    assert "h100" in text if made is captures.on_h100 else text == "cpu"


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_a_long_name_is_read_in_its_order(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(dataclasses.replace(captures.sin_cos(), function="a_function_whose_name_is_very_long_" * 2))
    start, end = box(page.find(".name-start")), box(page.find(".name-end"))
    assert end["y"] + end["height"] >= start["y"] + start["height"] - 1, "its end stands last"
    assert box(page.find(".top-name"))["width"] <= 390


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_the_table_of_compilations_says_what_it_counts(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    page = viewer(captures.graph_break())
    words = page.find(".compilations-what")
    assert words.inner_text() == "eager ops → launches"
    work = box(page.find(".compilation-work").first)
    assert abs(box(words)["x"] + box(words)["width"] - work["x"] - work["width"]) <= 4, "above the column"


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_a_break_in_a_coloured_line_warns_too(viewer: Open, viewport: tuple[int, int]) -> None:
    text = "import torch\ndef f(x):\n    y = torch.sin(x) * 2\n    a = torch.tanh(y).sum().item()\n    return y + a\n"
    page = viewer(captures.written(text, "coloured_break"))
    line = page.find(".listing-line.coloured:has(.listing-note)")
    assert "item()" in line.inner_text()
    grounds = line.locator(".listing-note").evaluate(
        "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).getPropertyValue('--warn-soft')]"
    )
    assert grounds[0] == "rgb(255, 243, 220)", grounds


@pytest.mark.parametrize("viewport", [(1280, 720)])
def test_the_place_of_a_function_is_seen_where_there_is_room_for_it(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    """It is visible beside the device's long name, which is complete and marked as absent."""
    page = viewer(captures.on_h100())
    place, top = box(page.find(".top-place > span")), box(page.find(".top"))
    assert place["y"] + place["height"] <= top["y"] + top["height"]
    assert page.find(".top-device").evaluate("e => e.scrollWidth <= e.clientWidth")


@pytest.mark.parametrize("viewport", [(1280, 720), (1000, 720)])
def test_beside_a_long_name_it_is_said_whole_that_the_device_is_not_here(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    """The function's name is shortened in the middle first; the device's full name yields to its short one."""
    name = "attention_with_rotary_embeddings" if viewport[0] > 1000 else "scaled_attention_in_layers"
    page = viewer(dataclasses.replace(captures.on_h100(), function=name))
    device, room = box(page.find(".top-device")), box(page.find(".top-room"))
    assert room["y"] <= device["y"] and device["y"] + device["height"] <= room["y"] + room["height"]
    for words in (page.find(".top-device b"), page.find(".top-stamp")):
        assert box(words)["x"] + box(words)["width"] <= device["x"] + device["width"]
    text = page.find(".top-device").inner_text()
    assert "(h100), sm_90" in text and "device absent" in text
    assert page.find(".top-name").text_content() == name
    assert page.find(".name-end").evaluate("e => e.scrollWidth <= e.clientWidth")


@pytest.mark.parametrize("viewport", [(1280, 720), (1100, 720), (1000, 720), (820, 600)])
@pytest.mark.parametrize("made", [captures.recompiled, captures.graph_break, captures.layer])
def test_what_a_stage_counts_is_whole(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    page = viewer(made())
    for words in page.find(":is(.flow-noun, .flow-phase) > span, .top-chip, .top-device").all():
        assert words.evaluate("e => e.scrollWidth <= e.clientWidth"), words.inner_text()
    for word in page.find(".flow-name:visible, .flow-note:visible").all():
        # A word that does not fit wraps below the visible line: all of it or nothing.
        across = word.evaluate(
            "e => { const r = document.createRange(); r.selectNodeContents(e); const a = r.getBoundingClientRect(),"
            " b = e.getBoundingClientRect(); return a.top >= b.bottom || (a.left >= b.left && a.right <= b.right); }"
        )
        assert across, word.inner_text()


@pytest.mark.parametrize("viewport", [(1000, 720)])
def test_a_place_that_has_no_room_leaves_no_gap(viewer: Open, viewport: tuple[int, int]) -> None:
    page = viewer(captures.graph_break())
    name, chip = box(page.find(".top-name")), box(page.find(".top-chip"))
    assert not page.find(".top-place").is_visible()
    assert chip["x"] - name["x"] - name["width"] == pytest.approx(14, abs=1)
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.frame()
    assert page.find(".top-place").is_visible(), "it comes back"


@pytest.mark.parametrize("viewport", [(390, 844), (820, 600)])
def test_a_line_of_source_that_fits_does_not_scroll(viewer: Open, viewport: tuple[int, int]) -> None:
    """The whole line is in view, and there is nothing to scroll to."""
    page = viewer(captures.sin_cos())
    source = page.pane("python")
    last, frame = box(source.locator(".call").last), box(source.locator(".listing-box"))
    assert last["x"] + last["width"] <= frame["x"] + frame["width"]
    source.locator(".call").first.hover()
    page.page.mouse.wheel(60, 0)
    page.frame()
    assert box(source.locator(".call").last)["x"] == last["x"]


@pytest.mark.parametrize("key", ["forward", "backward.groups"])
def test_tools_of_a_narrow_graph_leave_its_buttons_alone(viewer: Open, key: str) -> None:
    """Its zoom buttons covered the buttons that enlarge and close it, and truncated its title."""
    page = viewer(captures.sin_cos())
    page.open(key)
    frame = page.find(".frame:has(.graph-pane)")
    frame.evaluate("e => Object.assign(e.style, { width: '273px', flex: 'none' })")
    page.frame()
    assert frame.locator(".frame-title").evaluate("e => e.scrollWidth <= e.clientWidth")
    at = box(frame.locator(".frame-size"))
    for button in frame.locator(".frame-head button:visible:not(.frame-size, .frame-close)").all():
        where = box(button)
        seen = where["y"] < at["y"] + at["height"]
        assert not seen or where["x"] + where["width"] <= at["x"], button.inner_text()


@pytest.mark.parametrize("viewport", [(1280, 720), (1000, 720)])
def test_a_long_device_has_the_room_of_what_the_bytes_before_are_of(
    viewer: Open, viewport: tuple[int, int]
) -> None:
    page = viewer(captures.on_h100())
    page.find(".saving-what").evaluate(
        """e => e.insertAdjacentHTML("beforeend", "<span class=saving-of>, before: eager operators</span>")"""
    )
    page.find(".top-name").evaluate("e => (e.textContent = 'GPT2')")
    page.find(".saving b").evaluate_all(
        "all => ['365', '259', '~1.31 GB', '~1.31 GB'].forEach((text, i) => (all[i].textContent = text))"
    )
    assert page.find(".top-name").evaluate("e => e.scrollWidth <= e.clientWidth")
    device = page.find(".top-device")
    assert device.evaluate("e => e.scrollWidth <= e.clientWidth") or viewport[0] < 1280
    assert device.locator("b").evaluate(
        "e => e.getBoundingClientRect().right <= e.parentElement.getBoundingClientRect().right"
    ), "the name of the device is whole"


@pytest.mark.parametrize("viewport", [*SIZES, (390, 844)])
@pytest.mark.parametrize("made", [captures.layer, captures.on_h100, captures.nothing])
def test_titles_of_panes_are_whole(
    viewer: Open, made: Callable[[], Capture], viewport: tuple[int, int]
) -> None:
    for title in viewer(made()).find(".frame-title:visible").all():
        assert title.evaluate("e => e.scrollWidth <= e.clientWidth"), title.inner_text()


def test_no_text_runs_through_the_tags_of_rows_that_are_not_lit(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    page.pane("python").get_by_role("button", name="call cos:").click()
    page.leave()
    page.frame()
    tags = page.pane("forward.code").locator(".listing-line:not(.lit) > .tags")
    assert tags.count() > 0
    for one in tags.all():
        assert "linear-gradient" in one.evaluate("e => getComputedStyle(e).backgroundImage")


def test_back_undoes_the_last_pin_or_pane(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    first = page.shown()

    def address(words: str) -> None:
        page.page.wait_for_function("words => decodeURIComponent(location.hash).includes(words)", arg=words)

    for name in ("sin", "cos"):
        page.pane("python").get_by_role("button", name=f"call {name}:").click()
        page.leave()
        address(name)
    page.page.go_back()
    page.page.wait_for_function("() => !location.hash.includes('cos')")
    page.frame()
    assert page.pins() == ["sin"]
    page.press("joint")
    address("joint")
    page.page.go_back()
    page.page.wait_for_function("() => !location.hash.includes('joint')")
    page.frame()
    assert page.shown() == first and page.pins() == ["sin"]
    page.page.go_back()
    page.page.wait_for_function("() => location.hash === ''")
    page.frame()
    assert page.pins() == [] and page.shown() == first
    page.page.go_forward()
    page.page.wait_for_function("() => location.hash.includes('sin')")
    page.frame()
    assert page.pins() == ["sin"]


def test_control_f_searches_the_pane_of_the_code(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    for key in ("python", "forward.code"):
        page.pane(key).locator(".listing [tabindex='0']").first.focus()
        page.page.keyboard.press("Control+f")
        field = page.pane(key).locator(".finder-input")
        assert field.evaluate("e => e === e.getRootNode().activeElement"), key


def test_who_comes_to_a_tool_that_is_out_of_sight_sees_all_tools(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    pane = page.pane("forward")
    assert pane.locator(".frame-more").is_visible()
    pane.locator(".graph-query").focus()
    page.page.wait_for_function(
        "app => app.shadowRoot.querySelector('.tools-open')", arg=page.app.element_handle()
    )
    assert pane.locator(".frame-tools").evaluate("e => e.scrollTop === 0 && e.scrollHeight <= e.clientHeight")
    tools, drawing = box(pane.locator(".frame-tools")), box(pane.locator(".graph-stage"))
    assert tools["y"] + tools["height"] <= drawing["y"], "nothing of the graph is covered"
    # On through the rest of the header, and out of it.
    for _ in range(3):
        page.page.keyboard.press("Tab")
        assert page.find(".tools-open").count() == 1
    page.page.keyboard.press("Tab")
    assert page.find(".tools-open").count() == 0
    assert box(pane.locator(".graph-stage"))["y"] < drawing["y"]


@pytest.mark.parametrize("viewport", [(1280, 720), (820, 600)])
def test_a_graph_that_does_not_open_at_its_top_says_why(viewer: Open) -> None:
    for make, noted in ((captures.layer, True), (captures.sin_cos, False)):
        page = viewer(make())
        page.pane("forward").locator(".node.in-unit").first.wait_for()
        settle(page.page)
        notes = page.pane("forward").locator(".graph-note:visible").all_inner_texts()
        why = "none of the 7 that cost most joins more lines"  # of a layer's forward
        assert notes == ([f"Shown first: what the open kernel computes; {why}."] if noted else [])


def test_letters_lead_somewhere(viewer: Open) -> None:
    page = viewer(captures.sin_cos())
    page.pane("forward").locator(".graph-stop").first.focus()
    keyboard = page.page.keyboard
    keyboard.press("b")
    assert (page.number("backward"), False) in page.shown()
    keyboard.press("f")
    assert (page.number("forward"), False) in page.shown()
    keyboard.press("/")
    assert page.find(".find-all").evaluate("e => e === e.getRootNode().activeElement")
    keyboard.type("sin")
    page.page.wait_for_function(
        "app => app.shadowRoot.querySelectorAll('mark').length >= 2", arg=page.app.element_handle()
    )
    keyboard.press("Escape")
    page.page.wait_for_function(
        "app => app.shadowRoot.querySelectorAll('mark').length === 0", arg=page.app.element_handle()
    )
    page.pane("forward").locator(".graph-stop").first.focus()
    keyboard.press("w")
    assert page.find(".frame[data-finding]").count() == 1


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
def test_the_words_at_the_top_stand_out(viewer: Open, colour_scheme: str) -> None:
    page = viewer(captures.graph_break())
    for selector in (".top-name", ".top-chip", ".saving-after b", ".flow-what", ".flow-name", ".flow-note"):
        for element in page.find(selector).all():
            assert contrast(element) >= 4.5, selector
