"""Tests that must pass in every notebook front end; each has its own file that runs these tests there.

The full tier runs one of the two classes in JupyterLab, the other in the classic notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from .notebooks import Notebook, shown_by
from .pages import ROOT, Heap, alive, contrast, images, search_box, static

if TYPE_CHECKING:
    from playwright.sync_api import Page

Opened = Callable[..., Notebook]
SHOWN = 3
"""Captures in the notebook of the tests."""

LETTERS = "abxcvdd00iimyzzhlOjk"
"""Each is a command of a notebook if no field has the focus."""


class NotebookTests:
    """Tests whose fixture ``opened`` opens the notebook, trusted or not."""

    def test_captures_of_a_trusted_notebook_are_alive_each_by_itself(
        self, page: Page, opened: Opened
    ) -> None:
        opened(trusted=True)
        apps = alive(page, SHOWN)
        assert apps.evaluate_all("all => all.map(app => app.dataset.lmSuppressShortcuts)") == ["true"] * SHOWN
        words = "app => app.shadowRoot.textContent"
        others = [apps.nth(number).evaluate(words) for number in (1, 2)]
        search_box(apps.nth(0)).fill("sin")
        page.wait_for_timeout(500)
        assert search_box(apps.nth(0)).input_value() == "sin"
        assert [search_box(apps.nth(number)).input_value() for number in (1, 2)] == ["", ""]
        assert [apps.nth(number).evaluate(words) for number in (1, 2)] == others

    def test_an_untrusted_notebook_can_be_read(self, page: Page, opened: Opened) -> None:
        notebook = opened(trusted=False)
        page.wait_for_function(f"() => document.querySelectorAll('{ROOT}').length === {SHOWN}")
        assert page.locator(f"{ROOT}[data-alive]").count() == 0
        assert page.locator(f"{ROOT} :is(script, style)").count() == 0, "the front end takes these out"
        layer = static(page)
        layer.scroll_into_view_if_needed()
        assert layer.is_visible()
        for fold in layer.locator("details:not([open]) > summary").all():
            if fold.is_visible():
                fold.click()
        for part in (".cl-flow", "table", "img.cl-graph", "pre.cl-code"):
            assert layer.locator(part).first.is_visible(), part
        for words in (".cl-flow", "table td", "pre.cl-code"):
            assert contrast(layer.locator(words).first) >= 4.5, words
        widths = images(layer)
        written = shown_by(notebook.file)[0].count('<img class="cl-graph"')
        assert written >= 2 and len(widths) == written and all(widths), widths
        assert "torch.sin(x)" in layer.locator("pre.cl-code").first.inner_text()

    def test_running_an_untrusted_cell_brings_it_alive(self, page: Page, opened: Opened) -> None:
        notebook = opened(trusted=False)
        notebook.run(1)
        page.wait_for_selector(f"{ROOT}[data-alive]", state="attached")
        assert page.locator(f"{ROOT}[data-alive]").count() == 1


class NotebookUseTests:
    """Tests of a reader's actions in a notebook: rerun cells, type, save. ``opened`` is the same fixture."""

    @pytest.mark.slow
    def test_running_a_cell_again_leaves_nothing_behind(self, page: Page, opened: Opened) -> None:
        notebook = opened(trusted=True)
        alive(page, SHOWN)
        for _ in range(2):  # a front end initializes itself during the first runs
            self._run_and_touch(page, notebook)
        heap = Heap(page)
        kept, nodes = heap.kept(), heap.nodes()
        for _ in range(5):
            self._run_and_touch(page, notebook)
        app = alive(page, SHOWN).nth(1)
        size = app.evaluate("app => app.shadowRoot.querySelectorAll('*').length")
        # Objects that wait for a frame or a timer are released soon; leaked ones stay.
        for _ in range(20):
            more = heap.nodes() - nodes
            if heap.kept() <= kept and more < size:
                break
            page.wait_for_timeout(500)
        # A listener that remains keeps its root alive as well.
        assert heap.kept() <= kept
        assert more < size, "not even one app of five stays"

    def _run_and_touch(self, page: Page, notebook: Notebook) -> None:
        notebook.run(1)
        app = alive(page, SHOWN).nth(1)
        search_box(app).fill("x")
        search_box(app).hover()
        assert page.locator(ROOT).count() == SHOWN

    def test_what_is_typed_is_no_command_of_the_notebook(self, page: Page, opened: Opened) -> None:
        notebook = opened(trusted=True)
        app = alive(page, SHOWN).nth(1)
        notebook.select(0)
        before = notebook.cells()
        box = search_box(app)
        box.click()
        page.keyboard.type(LETTERS)
        assert box.input_value() == LETTERS
        assert notebook.cells() == before
        assert page.locator("[role=dialog]:visible, .modal:visible").count() == 0
        # Next to the field, on a control: neither the page nor the notebook reacts to a letter there.
        app.locator("button:visible").first.focus()
        page.keyboard.type("abxm")
        assert notebook.cells() == before
        notebook.select(0)
        page.keyboard.type("b")
        assert notebook.within(5000, lambda: len(notebook.cells()) == len(before) + 1), (
            "there it is a command"
        )

    def test_a_saved_notebook_is_alive_again(self, page: Page, opened: Opened) -> None:
        notebook = opened(trusted=True)
        alive(page, SHOWN)
        before = shown_by(notebook.file)
        notebook.run(2)
        notebook.save()
        assert shown_by(notebook.file) == before, "of what became of the page nothing is in the file"
        notebook.open()
        alive(page, SHOWN)
