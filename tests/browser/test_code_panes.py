"""The viewer's code and fusion panes show the contents of the record."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Node

from . import captures
from .settling import settle
from .viewer import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[Capture], Viewer]


def _compilation(shown: Capture) -> Compilation:
    (only,) = shown.compilations
    return only


def test_kernels_have_tabs_with_what_the_record_knows(viewer: Open) -> None:
    shown = captures.mlp()
    page = viewer(shown)
    page.open("backward.code")
    pane = page.pane("backward.code")
    code = _compilation(shown).code["backward"]
    assert pane.locator(".code-tab").evaluate_all("tabs => tabs.map(tab => tab.title)") == [
        kernel.name for kernel in code.kernels
    ]
    for number, kernel in enumerate(code.kernels, 1):
        page.kernel("backward.code", number)
        head = pane.locator(".code-panel")
        assert head.locator(".kernel-name").inner_text() == kernel.name
        text = head.inner_text()
        # Several equal kernels share one row of the list, and each shows its own share of the row's launches.
        assert re.search(rf"^{kernel.launches} (of \d+ )?launch", text, re.M)
        for name in kernel.origins[:12]:
            assert name in text
        for frame in shown.chain.lines(kernel):
            assert f"{frame.file.rpartition('/')[2]}:{frame.line}" in text
        launches = head.locator(".kernel-launch").all_inner_texts()
        assert launches == [str(line) for line in kernel.launch_lines if line]
        if kernel.source:
            page.ready("backward.code")
            numbers = pane.locator(".listing-number[data-number]").evaluate_all(
                "all => all.map(e => +e.dataset.number)"
            )
            traced = {kernel.first_line + mark.line - 1 for mark in kernel.lines if mark.origins}
            again = "the same again" in pane.locator(".code-both").inner_text()
            assert again or traced <= set(numbers), "numbers are those of the module"
            assert traced & set(numbers)
            assert min(numbers) >= kernel.first_line and max(numbers) <= kernel.last_line
        else:
            assert "library call" in pane.locator(".listing-empty").inner_text()
    # A launch leads to its line of the module.
    line = code.kernels[-1].launch_lines[0]
    pane.locator(".kernel-launch").first.click()
    assert pane.locator(".frame-tab[aria-pressed=true]").inner_text() == "module"
    assert pane.locator(".code-tab[aria-selected=true]").count() == 0
    page.ready("backward.code")
    assert page.line("backward.code", line).evaluate("e => e.getRootNode().activeElement === e")
    assert code.kernels[-1].name.split("#")[0] in page.line("backward.code", line).inner_text()


def test_boilerplate_is_folded_and_a_copy_is_whole(viewer: Open) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.open("forward.code", "joint", "python")
    pane = page.pane("forward.code")
    code = _compilation(shown).code["forward"]
    lines = code.text.split("\n")

    def numbers() -> list[int]:
        shown = pane.locator(".listing-number[data-number]").evaluate_all(
            "all => all.map(e => +e.dataset.number)"
        )
        return [int(number) for number in shown]

    shut = numbers()
    assert len(shut) < len(lines) and len(shut) == len(set(shut))
    fold = pane.locator(".listing-fold[aria-expanded=false]").first
    assert "imports" in fold.inner_text()
    hidden = int(fold.inner_text().split("⋯")[-1].split()[0])
    fold.click()
    page.ready("forward.code")
    assert len(numbers()) == len(shut) + hidden
    pane.locator(".listing-fold[aria-expanded=true]").first.click()
    page.ready("forward.code")
    assert numbers() == shut
    # Kernel lines are hidden only if they are repetitions, and launches never are.
    again = [text for text in pane.locator(".listing-fold").all_inner_texts() if "the same again" in text]
    for kernel in code.kernels:
        traced = {kernel.first_line + mark.line - 1 for mark in kernel.lines if mark.origins}
        assert len(traced - set(shut)) <= sum(int(text.split("⋯")[-1].split()[0]) for text in again)
        assert len(traced & set(shut)) >= len({mark.origins for mark in kernel.lines if mark.origins})
        assert set(kernel.launch_lines) <= set(shut)
    (kernel,) = code.kernels
    _copied(page, pane.locator(".copy-button").first, code.text)
    page.kernel("forward.code")
    _copied(page, pane.locator(".copy-button").first, kernel.source)
    _copied(page, page.pane("python").locator(".copy-button").first, shown.sources[0].text)
    page.view("joint", "text")
    _copied(page, page.pane("joint").locator(".copy-button").first, _compilation(shown).graphs["joint"].text)
    page.click(page.pane("python").locator(".listing-line[data-item]").first)
    page.unfold()
    page.find(".chain-copy").click()
    page.page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('Python')")
    copied = page.page.evaluate("() => navigator.clipboard.readText()")
    assert kernel.name in copied and "torch.sin(x) ** 2" in copied


def _copied(page: Viewer, button: Locator, text: str) -> None:
    button.click()
    page.page.wait_for_function(
        "async (text) => (await navigator.clipboard.readText()).trimEnd() === text",
        arg=text.rstrip(),
        timeout=5000,
    )
    assert button.inner_text() == "copied"


def test_a_text_is_searched(viewer: Open) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    page.open("forward.code")
    pane = page.pane("forward.code")
    text = _compilation(shown).code["forward"].text
    pane.locator(".finder-input").fill("tmp1")
    count = text.lower().count("tmp1")
    page.page.wait_for_function(
        "([app, said]) => app.shadowRoot.querySelector('.finder-count').textContent === said",
        arg=[page.app.element_handle(), f"1/{count}"],
    )
    assert pane.locator("mark.current").count() == 1
    pane.locator(".finder-input").press("Enter")
    assert pane.locator(".finder-count").inner_text() == f"2/{count}"


def test_the_fusion_view_shows_what_the_record_holds(viewer: Open) -> None:
    shown = captures.rematerialised()
    page = viewer(shown)
    page.open("backward.groups fusion")
    pane = page.pane("backward.groups", fusion=True)
    one = _compilation(shown)
    loops, groups = (one.graphs[f"backward.{stage}"] for stage in ("loops", "groups"))
    row = shown.ledger.backward
    figures = pane.locator(".fusion-figure b").all_inner_texts()
    assert row.bytes_after is not None
    alone = sum(_moved(loops[name]) for group in groups.calls for name in group.members)
    assert figures == [
        str(row.loops),
        str(row.groups),
        str(row.launches),
        f"~{alone:,}",
        f"~{row.bytes_after:,}",
    ]
    assert "modelled" in pane.locator(".fusion-summary").inner_text()
    rows = pane.locator(".fusion-row").all()
    assert len(rows) == row.groups
    for shown_row, group in zip(rows, groups.calls, strict=True):
        assert _names(page, shown_row.locator(".fusion-group")) == [group.name]
        assert _names(page, shown_row.locator(".fusion-loop")) == list(group.members)
        text = shown_row.inner_text()
        assert f"{len(group.members)} loops → 1 group" in text
        for node in (group, *(loops[name] for name in group.members)):
            assert f"reads {_bytes(node.reads)} · writes {_bytes(node.writes)}" in text
        alone = sum(_moved(loops[name]) for name in group.members)
        assert f"saves {_bytes(alone - _moved(group))}" in text
        (kernel,) = one.code["backward"].kernels
        assert kernel.name[:40] in text


def _names(page: Viewer, cards: Locator) -> list[str]:
    return [page.address(int(card.get_attribute("data-item") or ""))[2] for card in cards.all()]


def _moved(node: Node) -> int:
    assert node.reads is not None and node.writes is not None
    return node.reads + node.writes


def _bytes(count: int | None) -> str:
    assert count is not None
    return f"{count:,} B" if count < 10_000 else f"{float(f'{count / 1000:.3g}'):g} kB"


_SHOWN = """
frame => [...frame.querySelectorAll(".listing-line")].map((row) => {
  const shown = row.cloneNode(true);
  for (const other of shown.querySelectorAll(".tags, .listing-word, .listing-note")) other.remove();
  return shown.textContent;
})
"""


def test_a_search_leaves_tidied_code_as_it_is(viewer: Open) -> None:
    shown = captures.softmax()
    page = viewer(shown)
    page.open("inference.code")
    page.kernel("inference.code")
    page.ready("inference.code")
    pane = page.pane("inference.code")
    (kernel,) = _compilation(shown).code["inference"].kernels
    field = pane.locator(".finder-input")
    box = pane.locator(".listing-box")

    def found(text: str) -> list[str]:
        field.fill(text)
        settle(page.page)
        page.page.keyboard.press("Enter")
        return list(pane.evaluate(_SHOWN))

    before = list(pane.evaluate(_SHOWN))
    casts = sum("static_cast<int64_t>" in line for line in kernel.source.split("\n"))
    assert casts and not any("static_cast<int64_t>" in line for line in before), "tidied"
    assert found("exp") == before and pane.locator("mark").count() >= 1
    assert box.evaluate("e => e.scrollLeft") == 0
    # Search also finds omitted text, in a line that begins where it did.
    whole = found("static_cast<int64_t>")
    assert sum("static_cast<int64_t>" in line for line in whole) > 0
    indents = [[len(line) - len(line.lstrip()) for line in lines] for lines in (before, whole)]
    assert indents[0] == indents[1]
    field.fill("")
    settle(page.page)
    assert list(pane.evaluate(_SHOWN)) == before and box.evaluate("e => e.scrollLeft") == 0
