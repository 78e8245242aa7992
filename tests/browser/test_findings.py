"""Findings in the viewer: each opens, its rows pin their subjects, and passes are stepped through."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture
from compile_lens.views.document import LIVE, Changes, Table
from compile_lens.views.findings import findings
from compile_lens.views.words.quantities import cells

from .viewer import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser


@functools.cache
def told() -> Capture:
    """Return a capture built by hand that has every finding."""
    from samples_findings import told as made

    return made()


def opened(viewer: Viewer, key: str) -> Locator:
    """Return the pane of a finding, opened from the strip."""
    card = viewer.find(f"button.card[data-finding='{key}']")
    if card.get_attribute("aria-pressed") == "false":
        card.dispatch_event("click")
    pane = viewer.find(f".frame[data-finding='{key}']")
    pane.locator(".finding").wait_for()
    return pane


@pytest.mark.parametrize("colour_scheme", ["light", "dark"])
def test_every_finding_opens(standalone: Callable[..., Page], colour_scheme: str) -> None:
    viewer = Viewer(standalone(told()), told())
    for finding in findings(told()):
        pane = opened(viewer, finding.key)
        assert pane.locator(".frame-title").inner_text() == finding.title
        assert pane.locator(".finding-intro").inner_text() == finding.intro
        shown = pane.inner_text()
        for section in finding.sections:
            if isinstance(section, Table) and section.room != LIVE:
                for row in section.rows:
                    for cell in cells(row):
                        assert cell in shown, cell
        pictures = pane.locator("img.finding-picture")
        for picture in pictures.all():
            picture.evaluate("image => image.decode()")  # an unreadable SVG is not a picture
        pane.locator(".frame-close").click()


def test_a_row_previews_and_pins_what_it_is_about(standalone: Callable[..., Page]) -> None:
    viewer = Viewer(standalone(told(), "open=why:fusion,0:forward.groups"), told())
    viewer.ready("forward.groups")
    pane = viewer.find(".frame[data-finding='fusion']")
    row = pane.locator("tbody[data-linked]").first
    row.hover()
    assert viewer.lit("forward.groups", by=".lit-hover.lit-self") == ["op0", "op1"]
    viewer.leave()
    row.locator(".finding-link").press("Enter")
    assert row.locator(".finding-link").get_attribute("aria-pressed") == "true"
    assert viewer.pins() == ["op0 and op1"]
    assert viewer.lit("forward.groups", by=".lit-pin-0.lit-self") == ["op0", "op1"]
    assert "too large" in viewer.facts()["why not fused"]
    row.locator(".finding-link").press("Enter")
    assert viewer.pins() == []


def test_what_is_pinned_elsewhere_lights_its_rows(standalone: Callable[..., Page]) -> None:
    viewer = Viewer(standalone(told(), "open=why:lowering,0:forward&pin=;0:forward.post_grad:=pow_2"), told())
    lit = viewer.find(".frame[data-finding='lowering'] tbody.lit-pin-0 .finding-link")
    lit.first.wait_for()
    # pow_2 is lowered into the loop op1, and from there with add into the kernel k1; cos is in op1 as well.
    assert "pow_2" in lit.all_inner_texts() and "pow_1" not in lit.all_inner_texts()


def test_changes_are_stepped_through(standalone: Callable[..., Page]) -> None:
    viewer = Viewer(standalone(told()), told())
    pane = opened(viewer, "rewrites")
    rewrites = next(f for f in findings(told()) if f.key == "rewrites")
    (steps,) = (s for s in rewrites.sections if isinstance(s, Changes))
    for number, step in enumerate(steps.changes, 1):
        assert pane.locator(".step-count").inner_text() == f"{number} of {len(steps.changes)}"
        assert pane.locator(".step-name").inner_text() == step.title
        before, after = pane.locator(".step-side").all()
        assert step.before in before.inner_text()
        assert (step.after or "nothing") in after.inner_text()
        if number < len(steps.changes):
            pane.locator(".step-on").press("Enter")
    # The button at the end moves the focus to the other one, so that the keys keep working.
    assert pane.locator(".step-on").is_disabled()
    viewer.page.keyboard.press("Enter")
    assert pane.locator(".step-count").inner_text() == "1 of 2"
    pane.locator(".step-name").click()
    assert viewer.pins() == ["sin"]


def test_ablations_stand_side_by_side_and_show_their_code(standalone: Callable[..., Page]) -> None:
    viewer = Viewer(standalone(told(), "open=why:ablations"), told())
    columns = viewer.find(".finding-column")
    columns.first.wait_for()
    tops = columns.evaluate_all("all => all.map(c => Math.round(c.getBoundingClientRect().top))")
    assert len(tops) == 3 and len(set(tops)) == 1
    columns.last.locator("summary").first.click()
    code = columns.last.locator(".listing")
    code.wait_for()
    assert "tmp1 = tmp0.sin()" in code.inner_text()


def test_reasons_stand_between_groups(standalone: Callable[..., Page]) -> None:
    viewer = Viewer(standalone(told()), told())
    viewer.open("forward.groups", "forward.groups fusion")
    label = viewer.pane("forward.groups").locator(".not-fused").first
    assert label.text_content().startswith("≠ too large")  # type: ignore[union-attr]
    assert "could save at most ~8,000 B" in (label.locator("title").text_content() or "")
    label.click()
    # On a busy machine, the pins of a click may appear some frames later.
    reasons = viewer.pane("forward.groups", fusion=True)
    reason = reasons.locator(".fusion-why[aria-pressed='true']")
    reason.wait_for()
    assert viewer.pins() == ["op0 and op1"]
    assert reason.inner_text() == "≠ op0: too large, could save ~8,000 B"
    reason.press("Enter")
    reason.wait_for(state="detached")
    assert viewer.pins() == []


def test_a_group_says_what_it_is_apart_from(standalone: Callable[..., Page]) -> None:
    viewer = Viewer(standalone(told(), "pin=;0:forward.groups:=op1"), told())
    text = viewer.facts()["not fused with"]
    assert text.startswith("op0: too large.") and "\nop2: never proposed." in text


def test_lines_say_what_other_kernels_compute_as_well(standalone: Callable[..., Page]) -> None:
    viewer = Viewer(standalone(told(), "open=0:forward.code"), told())
    viewer.kernel("forward.code")
    assert viewer.find(".kernel-head .remark").inner_text() == "computed more than once: cos (also in k1)"
    words = viewer.find("[data-word]").evaluate_all("all => all.map(e => e.dataset.word)")
    assert "← cos · again, also in k1" in words and "← sin" in words


def test_what_is_open_stays_in_the_address(standalone: Callable[..., Page]) -> None:
    page = standalone(told())
    viewer = Viewer(page, told())
    opened(viewer, "memory")
    page.wait_for_function("() => location.hash.includes('why:memory')")
    again = Viewer(standalone(told(), page.evaluate("() => location.hash.slice(1)")), told())
    again.find(".frame[data-finding='memory'] .finding").wait_for()


def test_findings_that_are_missing_say_why(standalone: Callable[..., Page]) -> None:
    from samples import sample

    viewer = Viewer(standalone(sample()), sample())
    texts = viewer.find(".card-unknown").all_inner_texts()
    assert any("Ablations" in card and "compile_lens.ablate" in card for card in texts)
    assert viewer.find("button.card[data-finding]").count() + len(texts) == len(findings(sample()))


@pytest.mark.parametrize("viewport", [(390, 800)], ids=["phone"])
def test_on_a_phone_nothing_hangs_over(standalone: Callable[..., Page], viewport: tuple[int, int]) -> None:
    viewer = Viewer(standalone(told()), told())
    for finding in findings(told()):
        pane = opened(viewer, finding.key)
        inner = pane.locator(".finding").evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert inner[0] <= inner[1] + 1, finding.key


@pytest.mark.parametrize("viewport", [(1280, 720), (390, 844)])
def test_each_budget_of_a_curve_says_what_it_costs_and_lights_what_is_computed_again(
    standalone: Callable[..., Page], viewport: tuple[int, int]
) -> None:
    """Arrow keys move from one budget to the next, and the curve is one Tab stop."""
    from samples_findings import CURVE

    capture = dataclasses.replace(told(), budget_curve=CURVE)
    page = standalone(capture)
    viewer = Viewer(page, capture)
    pane = opened(viewer, "memory")
    spots, words = pane.locator(".hotspot"), pane.locator(".hotspot-words")
    assert (words.text_content() or "").startswith("0.5: peak ~4 MiB")
    assert pane.locator(".hotspot[tabindex='0']").count() == 1
    spots.nth(1).focus()
    assert viewer.find(".source-pane .lit-hover").count() > 0
    page.keyboard.press("ArrowLeft")
    assert (words.text_content() or "").startswith("0: peak ~6 MiB")
    assert spots.nth(0).evaluate("e => e === e.getRootNode().activeElement")
    image = pane.locator(".hotspots img")
    assert image.evaluate("e => e.getBoundingClientRect().width >= e.naturalWidth"), "labels keep their size"
