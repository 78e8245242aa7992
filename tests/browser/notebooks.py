"""Notebooks whose cells show captures: written, run, trusted, and opened in either front end."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compile_lens import Capture

from .servers import Homes, Server

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from .watch import Watch

START = 60_000
"""Milliseconds within which a front end and its kernel must be ready."""

RUNS = (20_000, 20_000, START)
"""Milliseconds before the key that runs a cell is pressed again."""

_RUN = """
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, timeout=600, startup_timeout=300, kernel_name="python3").execute()
nbformat.write(book, sys.argv[1])
"""


def cell(capture: Capture, file: Path) -> str:
    """Return the code of a cell that shows a capture through a ``.json`` file; the kernel needs no torch for it."""
    capture.save(file)
    return f"import compile_lens\ncompile_lens.load({str(file)!r})"


def executed(cells: Sequence[str], homes: Homes) -> Path:
    """Return a notebook with these cells, run."""
    import nbformat

    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code, id=f"cell-{i}") for i, code in enumerate(cells)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    file = homes.top / "executed.ipynb"
    nbformat.write(book, file)
    # In its own process: a kernel of this process would see the user's settings.
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(file)],
        env=homes.environment(),
        cwd=homes.notebooks,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return file


def placed(book: Path, homes: Homes, name: str, *, trusted: bool) -> Path:
    """Return a copy of a notebook in a server's folder. An untrusted one counts as received from elsewhere."""
    import nbformat
    from nbformat.sign import NotebookNotary

    file = homes.notebooks / f"{name}.ipynb"
    shutil.copyfile(book, file)
    notary = NotebookNotary(data_dir=str(homes.data))
    if trusted:
        notary.sign(nbformat.read(file, as_version=4))
    else:
        notary.unsign(nbformat.read(file, as_version=4))
    notary.store.close()
    return file


def shown_by(file: Path) -> list[str]:
    """Return the HTML that a notebook's file contains for each cell."""
    import nbformat

    book = nbformat.read(file, as_version=4)
    texts = [o.get("data", {}).get("text/html", "") for c in book.cells for o in c.outputs]
    return [html for html in texts if html]


class Notebook:
    """A notebook in a front end."""

    def __init__(self, page: Page, watch: Watch, server: Server, file: Path) -> None:
        self.page = page
        self.server = server
        self.file = file
        for place in server.places:
            watch.allow(place)
        for error in self.KNOWN:
            watch.expect(error)
        self.open()

    # Selectors of the two front ends.

    CELLS = OUTPUTS = DIRTY = ""
    KNOWN: tuple[str, ...] = ()

    def open(self) -> None:
        """Open or reopen the notebook, and wait for the kernel."""
        self.page.goto(self.server.page(self.file))
        self.page.wait_for_selector(self.CELLS, timeout=START)
        self._wait_for_kernel()

    def outputs(self) -> Locator:
        """Return the rendered outputs."""
        return self.page.locator(f"{self.CELLS} {self.OUTPUTS}")

    def cells(self) -> list[str]:
        """Return the text of each cell, as shown by the front end."""
        raise NotImplementedError

    def run(self, number: int) -> None:
        """Run a cell and wait for its new output."""
        cell = self.page.locator(self.CELLS).nth(number)
        outputs = cell.locator(self.OUTPUTS)
        outputs.evaluate_all("all => all.forEach((output) => output.setAttribute('data-old', ''))")
        fresh = "all => all.length > 0 && all.every((output) => !output.hasAttribute('data-old'))"
        for wait in RUNS:
            # A front end that is still initializing can lose the key, so it is pressed again.
            self._focus(number)
            self.page.keyboard.press("Control+Enter")
            if self.within(wait, lambda: bool(outputs.evaluate_all(fresh))):
                break
        else:
            focused = self.page.evaluate("() => document.activeElement.outerHTML.slice(0, 200)")
            raise AssertionError(
                f"not in time: cell {number} has a new output; focus is on {focused!r}; {cell.inner_text()[:300]!r}"
            )
        self._wait_for_kernel()

    def save(self) -> None:
        """Save the notebook, and wait until the file has been written."""
        before = self.file.stat().st_mtime_ns
        for wait in RUNS:  # the key can be lost, as when running a cell
            self.page.keyboard.press("Control+s")
            if self.within(wait, lambda: self.file.stat().st_mtime_ns != before):
                break
        else:
            raise AssertionError("not in time: the file is written")
        self.page.wait_for_function(f"() => !({self.DIRTY})", timeout=START)

    def select(self, number: int) -> None:
        """Select a cell in command mode, where letters are shortcuts."""
        self._focus(number)
        self.page.keyboard.press("Escape")

    def _focus(self, number: int) -> None:
        raise NotImplementedError

    def _wait_for_kernel(self) -> None:
        raise NotImplementedError

    def within(self, wait: int, done: Callable[[], bool]) -> bool:
        """Return True if it is done within this many milliseconds."""
        until = time.monotonic() + wait / 1000
        while not done():
            if time.monotonic() > until:
                return False
            self.page.wait_for_timeout(50)
        return True


class Lab(Notebook):
    """JupyterLab."""

    CELLS = ".jp-NotebookPanel .jp-CodeCell"
    OUTPUTS = ".jp-OutputArea-output"
    DIRTY = "document.querySelector('#jp-main-dock-panel .jp-mod-dirty')"

    def cells(self) -> list[str]:
        return self.page.locator(f"{self.CELLS} .cm-content").all_text_contents()

    def _focus(self, number: int) -> None:
        self.page.locator(f"{self.CELLS} .cm-content").nth(number).click()

    def _wait_for_kernel(self) -> None:
        idle = ".jp-NotebookPanel .jp-Notebook-ExecutionIndicator[data-status=idle]"
        self.page.wait_for_selector(idle, timeout=START)


class Classic(Notebook):
    """The classic notebook."""

    CELLS = "#notebook-container .code_cell"
    OUTPUTS = ".output_subarea"
    DIRTY = "Jupyter.notebook.dirty"
    KNOWN = ("/nbextensions/widgets/notebook/js/extension.js",)  # always requested, even if absent

    def cells(self) -> list[str]:
        texts: list[str] = self.page.evaluate("() => Jupyter.notebook.get_cells().map((c) => c.get_text())")
        return texts

    def _focus(self, number: int) -> None:
        self.page.locator(f"{self.CELLS} .CodeMirror-lines").nth(number).click()

    def _wait_for_kernel(self) -> None:
        ready = "() => { const n = window.Jupyter && Jupyter.notebook; return n && n.kernel && n.kernel.is_connected()"
        self.page.wait_for_function(f"{ready} && !n.kernel_busy; }}", timeout=START)
