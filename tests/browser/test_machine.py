"""Machine code in the viewer: beside its source, loaded on demand, and linked line by line in both directions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from samples import HOSTILE
from samples_machine import ASSEMBLY, CROSSING, MAY_DIFFER, PTX, SASS, cpu, h100, hostile, template

from compile_lens import Capture
from compile_lens.views.words import machine

from .settling import settle
from .viewer import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

Standalone = Callable[..., "Page"]


@pytest.fixture
def opened(standalone: Standalone) -> Callable[..., tuple[Viewer, Locator]]:
    """Return ``opened(capture)``, its page with the first kernel of the forward, and that pane."""

    def of(capture: Capture, *beside: str) -> tuple[Viewer, Locator]:
        viewer = Viewer(standalone(capture), capture)
        viewer.open(*beside, "forward.code")
        pane = viewer.pane("forward.code")
        viewer.kernel("forward.code")
        return viewer, pane

    return of


Opened = Callable[..., "tuple[Viewer, Locator]"]


def form(pane: Locator, title: str) -> Locator:
    """Return the listing of a format after its button was pressed."""
    pane.locator(".code-forms").get_by_role("button", name=title, exact=True).click()
    listing = pane.locator(".listing[aria-label^='" + title + "']")
    listing.locator(".listing-line").first.wait_for()
    return listing


def lit(listing: Locator) -> list[str]:
    """Return the texts of the lit lines without their trailing comments."""
    texts: list[str] = listing.locator(".listing-line.lit").evaluate_all(
        "all => all.map(e => e.textContent.trim())"
    )
    return texts


def line(listing: Locator, text: str) -> Locator:
    return listing.locator(".listing-line").filter(has_text=text).first


def unfold(listing: Locator) -> None:
    while listing.locator(".listing-fold[aria-expanded=false]").count():
        listing.locator(".listing-fold[aria-expanded=false]").first.click()


def press(found: Locator) -> None:
    """Click at the start of a line: its middle may be out of view."""
    found.click(position={"x": 4, "y": 4})


def test_forms_stand_beside_the_source_one_at_a_time(opened: Opened) -> None:

    _, pane = opened(h100())
    assert pane.locator(".code-forms button[aria-pressed]").all_inner_texts() == ["TTIR", "PTX", "SASS"]
    assert pane.locator(".listing").count() == 1
    for title, text in (("PTX", PTX), ("SASS", SASS)):
        listing = form(pane, title)
        assert pane.locator(".listing").count() == 2
        unfold(listing)
        shown = listing.locator(".listing-line").evaluate_all("all => all.map(e => e.textContent)")
        # Without the compiler's columns, and without the address markers of NVIDIA's disassembler.
        bare = re.sub(r"/\*([\da-f]{4})\*/(.*?) ?;$", r"\1\2", text, flags=re.M)
        assert [line.split() for line in shown] == [line.split() for line in bare.rstrip("\n").split("\n")]
        assert not any(re.search(r"\S[ \t]{2}|\t", line) for line in shown)
    pane.locator(".code-forms [aria-pressed=true]").click()
    assert pane.locator(".listing").count() == 1
    _, pane = opened(cpu())
    listing = form(pane, "assembly")
    unfold(listing)
    assert listing.locator(".listing-line").count() == ASSEMBLY.count("\n")


def test_a_form_opens_at_its_first_instruction(opened: Opened) -> None:
    """Directives are folded; the fold describes its contents."""
    _, pane = opened(h100())
    read = "all => all.map(e => e.textContent.trim())"
    firsts = {"TTIR": "%0 = tt.get_program_id", "PTX": "ld.param.b64", "SASS": "0000 LDC R1"}
    for title, first in firsts.items():
        rows = form(pane, title).locator(".listing-code > *").evaluate_all(read)
        assert re.match(r"⋯\d+ lines: ", rows[0]) and rows[1].startswith(first), rows[:2]
    _, pane = opened(cpu())
    rows = form(pane, "assembly").locator(".listing-code > *").evaluate_all(read)
    assert rows[:2] == ["⋯3 lines: directives, labels", "vmovups (%rdi,%rax,4), %zmm0 # load"]


def test_a_line_of_machine_code_lights_what_it_came_from(opened: Opened) -> None:

    viewer, pane = opened(h100(), "python", "forward")
    sass = form(pane, "SASS")
    line(sass, "MUFU.SIN").hover(position={"x": 4, "y": 4})
    source = pane.locator(".listing").first
    assert lit(source) == ["tmp1 = tl_math.sin(tmp0)"]
    assert lit(sass) == ["0030 MUFU.SIN R4, R2"]
    assert line(sass, "MUFU.SIN").get_attribute("title") == "line 12: tmp1 = tl_math.sin(tmp0)"
    assert line(sass, "MUFU.SIN").locator("[data-word]").get_attribute("data-word") == "← sin"
    names = (
        viewer.pane("forward")
        .locator(".node.lit[data-item]")
        .evaluate_all("all => all.map(e => +e.dataset.item)")
    )
    assert {viewer.address(item)[2] for item in names} == {"sin"}
    assert lit(viewer.pane("python"))[0].startswith("return torch.sin(x)")


def test_one_instruction_of_two_lines_lights_both(opened: Opened) -> None:

    _, pane = opened(h100())
    line(form(pane, "SASS"), "FFMA").hover(position={"x": 4, "y": 4})
    assert lit(pane.locator(".listing").first) == ["tmp4 = tmp3 * tmp3", "tmp5 = tmp2 + tmp4"]


def test_a_pinned_python_line_lights_its_instructions(opened: Opened) -> None:

    viewer, pane = opened(h100(), "python", "forward")
    press(line(viewer.pane("python"), "torch.sin(x)"))
    sass = form(pane, "SASS")
    operations = [re.findall(r"[A-Z][A-Z0-9.]+", said)[0] for said in lit(sass)]
    assert operations == ["MUFU.SIN", "FMUL", "MUFU.COS", "FFMA"]
    press(line(pane.locator(".listing").first, "tmp3 = tl_math"))
    assert "MUFU.COS" in sass.locator(".listing-line.lit-pin-1").first.inner_text()
    assert sass.locator(".listing-line.lit-pin-1").count() == 1
    viewer.page.keyboard.press("Escape")
    assert lit(sass) == []


def test_a_pin_without_machine_code_says_so(opened: Opened) -> None:

    _, pane = opened(h100())
    form(pane, "SASS")
    unfold(pane)
    press(line(pane.locator(".listing").first, "xoffset = tl"))
    assert pane.locator(".code-forms span").first.inner_text() == ""
    press(line(pane.locator(".listing").first, "x0 = xoffset"))
    assert (
        pane.locator(".code-forms span").first.inner_text() == "no line of SASS is linked to what is pinned"
    )
    form(pane, "TTIR")
    assert (
        pane.locator(".code-forms span").first.inner_text() == "no line of TTIR is linked to what is pinned"
    )


def test_a_template_is_linked_line_by_line(opened: Opened) -> None:

    _, pane = opened(template())
    sass = form(pane, "SASS")
    line(sass, "MUFU.SIN").hover(position={"x": 4, "y": 4})
    assert lit(pane.locator(".listing").first) == ["tmp1 = tl_math.sin(tmp0)"]
    assert "lit" in (pane.locator(".kernel-name").get_attribute("class") or "")


def test_the_head_says_what_stands_for_the_device(opened: Opened) -> None:

    viewer, pane = opened(h100())
    assert "for NVIDIA H100 SXM (h100), sm_90" in viewer.find(".top-facts").inner_text()
    assert "the device was absent" in viewer.find(".top-facts").inner_text()
    head = pane.locator(".code-head")
    assert "for h100: the device model, not the device" in head.inner_text()
    assert MAY_DIFFER[0] not in head.inner_text()
    head.locator("summary").click()
    assert all(words in head.inner_text() for words in MAY_DIFFER)
    panel = pane.locator(".code-panel")
    for words in ("22 registers a thread", "no spills", "here the first was taken", "no LLVM IR"):
        assert words in panel.inner_text()
    panel.locator("summary", has_text="launch configurations").click()
    assert "XBLOCK=128, num_warps=2" in panel.inner_text()
    viewer.find(
        "button.card",
    ).filter(has_text="Device model").dispatch_event("click")
    about = viewer.find(".frame[data-finding='target']")
    about.locator(".finding").wait_for()
    assert CROSSING in about.inner_text() and "the programming guide" in about.inner_text()


def test_copy_gives_the_machine_code(opened: Opened) -> None:

    viewer, pane = opened(h100())
    viewer.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert pane.locator(".code-forms .copy-button").is_hidden()
    form(pane, "SASS")
    pane.locator(".code-forms .copy-button").click()
    viewer.page.wait_for_function(
        "async (text) => (await navigator.clipboard.readText()).trimEnd() === text", arg=SASS.rstrip()
    )


_UNDER_TAGS = """
listing => [...listing.querySelectorAll(".listing-line")].flatMap((row) => {
  const text = document.createRange();
  const tags = row.querySelector(".tags");
  text.setStart(row, 0);
  text.setEndBefore(tags ?? row.querySelector(".listing-word") ?? row.lastChild);
  const last = tags?.firstElementChild.getBoundingClientRect().left ?? Infinity;
  const box = listing.querySelector(".listing-box").getBoundingClientRect();
  return text.getBoundingClientRect().right > Math.min(last, box.right) ? [row.textContent] : [];
})
"""
"""Texts of the lines that run under their tags or out of the pane, while it is not scrolled."""


@pytest.mark.parametrize("viewport", [(1280, 720), (1920, 1080)], ids=["laptop", "desk"])
def test_a_line_of_machine_code_is_seen_whole_beside_its_tags(
    opened: Opened, viewport: tuple[int, int]
) -> None:
    _, pane = opened(h100(), "python", "forward")
    for title in ("SASS", "PTX"):
        listing = form(pane, title)
        assert listing.locator(".tags").count() >= 3
        assert listing.evaluate(_UNDER_TAGS) == []
    facts = [one for one in machine.facts(h100().kernels[0]) if "register" in one or "spill" in one]
    costs = pane.locator(".code-costs")
    assert len(facts) >= 2 and all(fact in costs.inner_text() for fact in facts)
    beside, inside = costs.bounding_box(), pane.bounding_box()
    assert beside is not None and inside is not None
    assert beside["x"] + beside["width"] <= inside["x"] + inside["width"]


def test_with_other_room_code_is_read_from_its_start(opened: Opened) -> None:
    viewer, pane = opened(h100(), "python", "forward")
    form(pane, "TTIR")
    box = pane.locator(".listing-box").last
    box.evaluate("e => e.querySelector('.listing-body').style.minWidth = '3000px'")
    box.evaluate("e => e.scrollTo(90, 0)")
    settle(viewer.page)
    assert box.evaluate("e => e.scrollLeft") == 90
    pane.locator(".frame-size").click()
    settle(viewer.page)
    assert box.evaluate("e => e.scrollLeft") == 0


def test_hostile_machine_code_is_text(standalone: Standalone) -> None:

    shown = hostile(HOSTILE[0])
    viewer = Viewer(standalone(shown), shown)
    viewer.open("forward.code")
    pane = viewer.pane("forward.code")
    viewer.kernel("forward.code")
    listing = form(pane, "SASS")
    assert HOSTILE[0] in listing.inner_text() and HOSTILE[0] in pane.locator(".code-head").inner_text()


@pytest.mark.parametrize("viewport", [(390, 844)], ids=["phone"])
def test_on_a_phone_the_machine_code_stands_below(opened: Opened, viewport: tuple[int, int]) -> None:

    _, pane = opened(h100())
    below = form(pane, "SASS").bounding_box()
    source = pane.locator(".listing").first.bounding_box()
    assert below is not None and source is not None
    assert below["y"] >= source["y"] + source["height"] - 1 and below["width"] > 300
    assert below["height"] >= 150 and source["height"] >= 150
