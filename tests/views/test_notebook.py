"""A capture is displayed exactly once in a notebook kernel, in terminal IPython and in plain Python."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import samples

from compile_lens.views import notebook

ROOT = Path(__file__).parents[2]
PATHS = f"{ROOT}{os.pathsep}{ROOT / 'tests/helpers'}"

START = """
import sys
sys.path[:0] = {paths!r}
import samples
from compile_lens.views import notebook
def show(capture=None):
    capture = capture or samples.nothing()
    notebook.display(capture)
    return capture
"""


def test_mimebundle_honours_include_and_exclude() -> None:
    capture = samples.sample()
    both = capture._repr_mimebundle_()
    assert set(both) == {"text/html", "text/plain"}
    assert both["text/html"].startswith('<div class="compile-lens"')
    assert both["text/plain"].startswith("compile_lens: f ")
    assert set(capture._repr_mimebundle_(include=["text/plain", "image/png"])) == {"text/plain"}
    assert set(capture._repr_mimebundle_(exclude={"text/html"})) == {"text/plain"}
    assert capture._repr_mimebundle_(include=["text/html"], exclude=["text/html"]) == {}
    assert capture._repr_mimebundle_(include=[]) == {}


def test_display_prints_outside_of_ipython(capsys: pytest.CaptureFixture[str]) -> None:
    notebook.display(samples.nothing())
    assert "nothing was compiled" in capsys.readouterr().out


def test_display_prints_where_the_stream_has_no_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    notebook.display(samples.hostile("漢字"))
    assert b"\\u6f22\\u5b57" in raw.getvalue()


def test_ipython_is_not_imported() -> None:
    code = "import sys, samples; from compile_lens.views import notebook; notebook.display(samples.nothing())"
    code += "; print('IPython' in sys.modules, 'torch' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.endswith("False False\n")


CELLS = (
    ("show()", 1),
    ("c = show()", 1),
    ("show()\nprint('middle')", 1),
    ("c", 1),
    ("c = show()\nc", 1),
    ("c = show()\ndisplay(c)", 2),
    ("display(c)", 1),
    ("show(); show()", 2),
    ("for _ in range(3):\n    show(c)", 3),
    ("show(c)\nsamples.failed_early()", 2),
    ("show();", 1),
    ("[show(c)] and None", 1),
    ("show(c); 1/0", 1),
    ("c", 1),
)  # fmt: skip


@pytest.mark.full
def test_each_cell_shows_each_capture_once() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    start = nbformat.v4.new_code_cell(START.format(paths=PATHS.split(os.pathsep)))
    cells = [start, *(nbformat.v4.new_code_cell(code) for code, _ in CELLS)]
    book = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(
        book, timeout=600, startup_timeout=300, kernel_name="python3", allow_errors=True
    ).execute()
    counts = [(cell.source, len(_pages(cell.outputs))) for cell in book.cells[1:]]
    assert counts == list(CELLS)


def _pages(outputs: Any) -> list[Any]:
    texts = [o for o in outputs if o.output_type in ("display_data", "execute_result")]
    for output in texts:
        assert output.data["text/html"].startswith('<div class="compile-lens"')
        assert "compile_lens" in output.data["text/plain"]
    return texts


def test_terminal_ipython_prints_each_capture_once() -> None:
    pytest.importorskip("IPython")
    lines = ["show()", "c = show()", "c", "display(c)", "show(c);"]
    code = (
        "from IPython.terminal.interactiveshell import TerminalInteractiveShell as Shell\n"
        "shell = Shell.instance()\n"
        f"shell.run_cell({START.format(paths=PATHS.split(os.pathsep))!r})\n"
        f"for line in {lines!r}:\n"
        "    print('CELL')\n"
        "    shell.run_cell(line, store_history=True)\n"
    )
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", "IPYTHONDIR": os.devnull}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, encoding="utf-8", check=True
    )
    outputs = run.stdout.split("CELL\n")[1:]
    assert [part.count("nothing was compiled") for part in outputs] == [1] * len(lines), run.stdout
