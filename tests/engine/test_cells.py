"""Code in a notebook is named by its cell. The oracle is IPython's own traceback, and a hand count."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import samples
from needs import not_here

from compile_lens.engine import record as cells
from compile_lens.record.capture import Record
from compile_lens.record.graph import Graph

KERNEL = "/tmp/ipykernel_71/4178438228.py"
OTHER = "/tmp/ipykernel_71/99.py"

CELLS = [
    "import json, torch, compile_lens",
    "def f(x):\n    return torch.sin(x) ** 2 + torch.cos(x) ** 2\n\ndef bad(x):\n    return 1 / 0",
    "try:\n    bad(1)\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()",
    "x = torch.rand(8, requires_grad=True)\n"
    "made = compile_lens.capture(f, x)\n"
    "with compile_lens.watch() as seen:\n    torch.compile(f, backend='eager')(x)\n"
    "def told(x):\n    print('told', flush=True)\n    return x.sin()\n"
    "with compile_lens.watch() as telling:\n    torch.compile(told, backend='eager')(x)\n"
    "print('FILES', json.dumps({\n"
    "  'sources': [[s.file, s.first_line, s.name] for s in made.sources],\n"
    "  'nodes': sorted({fr.file for g in made.compilations[0].graphs.values() for n in g.nodes for fr in n.frames}),\n"
    "  'compilations': [[c.file, c.line] for c in made.compilations],\n"
    "  'watch': [seen.record.name, sorted({f.file for f in seen.frames})],\n"
    "  'telling': [sorted({f.file for f in telling.frames}), sorted(telling.lines),\n"
    "      sorted({s.file for s in telling.record.sources}), len(telling.library_skips) > 0,\n"
    "      telling.counts.break_sites],\n"
    "  'kernels': len(made.chain.kernels('cell [2]', 2)), 'text': str(made)}))",
    "far = compile_lens.capture(f, x, target='m1')\n"
    "print('FAR', json.dumps(sorted({s.file for s in far.sources})))",
]

RUN = """
import json, sys, nbclient, nbformat
cells = map(nbformat.v4.new_code_cell, json.load(open(sys.argv[1])))
book = nbformat.v4.new_notebook(cells=list(cells))
nbclient.NotebookClient(book, timeout=600, startup_timeout=300, kernel_name="python3").execute()
nbformat.write(book, sys.argv[2])
"""


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_cell_is_called_by_its_number(tmp_path: Path) -> None:
    for module in ("nbclient", "nbformat", "ipykernel"):
        try:
            __import__(module)
        except ImportError:
            not_here(f"{module} is not installed: pip install '.[dev]'")
    import nbformat

    (tmp_path / "cells.json").write_text(json.dumps(CELLS), encoding="utf-8")
    files = [str(tmp_path / "cells.json"), str(tmp_path / "run.ipynb")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *files], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    book = nbformat.read(files[1], as_version=4)
    # IPython's own name of that cell.
    told = re.sub(
        r"\x1b\[[\d;]*m", "", str([o.get("traceback") or o.get("text") for o in book.cells[2].outputs])
    )
    assert "Cell In[2], line 5" in re.sub(r"\\x1b\[[\d;]*m", "", told)
    said = "".join(o.get("text", "") for c in book.cells for o in c.outputs if o.output_type == "stream")
    found = json.loads(said.split("FILES ")[1].splitlines()[0])
    assert found["sources"] == [["cell [2]", 1, "f"]]
    assert found["nodes"] == ["cell [2]"] and found["compilations"] == [["cell [2]", 1]]
    assert found["watch"] == ["cell [4]:3", ["cell [2]"]]
    # The kernel's own functions, which print calls, do not belong to the program.
    assert found["telling"] == [["cell [4]"], ["cell [4]"], ["cell [4]"], True, 1]
    assert found["kernels"] == 2
    assert "cell [2]:" in found["text"] and "ipykernel_" not in found["text"]
    assert json.loads(said.split("FAR ")[1].splitlines()[0]) == ["cell [2]"]


def test_a_number_is_said_only_where_it_is_known() -> None:
    assert cells.cell_name("<ipython-input-3-0a1b2c>") == "cell [3]"
    assert cells.cell_name(KERNEL) == "a notebook cell"
    assert cells.shown("/home/ada/model.py") == "model.py" and not cells.is_cell("/home/ada/model.py")
    assert cells.is_cell(r"C:\Temp\ipykernel_8\12.py") and not cells.is_cell("/home/ipykernel_8/x/12.py")


def test_two_cells_never_share_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", _ipython({}))
    made = _of(KERNEL, OTHER)
    assert [s.file for s in cells.in_cells(made).sources[:2]] == ["a notebook cell", "a notebook cell (99)"]
    # A magic also compiles its text under the number of its cell.
    monkeypatch.setitem(sys.modules, "IPython", _ipython({KERNEL: 3, OTHER: 3}))
    assert [s.file for s in cells.in_cells(made).sources[:2]] == ["cell [3]", "cell [3] (99)"]


def test_a_record_of_files_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", _ipython({}))
    made = samples.sample()
    assert cells.in_cells(made) is made
    named = cells.in_cells(_of(KERNEL, OTHER))
    graph = next(s for s in named.compilations[0].stages if isinstance(s, Graph))
    assert all(frame.file in {s.file for s in named.sources} for node in graph.nodes for frame in node.frames)


def _of(*files: str) -> Record:
    """The sample with its sources in cells."""
    made = samples.sample()
    first = made.sources[0]
    renamed = cells._Names()
    renamed._names[first.file] = files[0]
    made = renamed.of(made)
    return dataclasses.replace(made, sources=tuple(dataclasses.replace(first, file=file) for file in files))


def _ipython(numbers: dict[str, int]) -> object:
    class Compile:
        def format_code_name(self, name: str) -> tuple[str, str] | None:
            return ("Cell", f"In[{numbers[name]}]") if name in numbers else None

    class Shell:
        compile = Compile()

    class IPython:
        @staticmethod
        def get_ipython() -> Shell:
            return Shell()

    return IPython
