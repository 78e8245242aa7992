"""The cell magic, in an IPython shell of another process, and through a shell's events."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from compile_lens.api.magic import load_ipython_extension

pytestmark = pytest.mark.torch

SESSION = '''
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
said = []
def run(cell):
    done = shell.run_cell(cell, store_history=True)
    said.append(repr(done.error_in_exec or done.error_before_exec))
run("%load_ext compile_lens")
run("import torch")
run("""%%compile_lens program
def f(x):
    print(end="")
    return x.sin()
torch.compile(f, backend="eager")(torch.zeros(2)).tolist()""")
run("""%%compile_lens failed
1 / 0""")
run("%%compile_lens no name\\nf")
program = shell.user_ns["program"]
print("RESULT" + json.dumps([said, list(program.record.sources[0].text.splitlines()), program.counts.graphs,
    program.counts.break_sites, shell.user_ns["failed"].record.ended, program.causes[0].place.line]))
'''


def test_a_watch_ends_with_the_cell_and_not_with_one_that_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    events = pytest.importorskip("IPython.core.events")
    magics: dict[str, Callable[[str], None]] = {}
    shell = types.SimpleNamespace(
        displayhook=types.SimpleNamespace(exec_result=types.SimpleNamespace(error_in_exec=None)),
        user_ns={},
        input_transformers_cleanup=[],
        register_magic_function=lambda function, kind, name: magics.update({name: function}),
    )
    shell.events = events.EventManager(shell, events.available_events)
    load_ipython_extension(shell)
    magics["compile_lens"]("program")
    for event in ("pre_execute", "post_execute"):
        shell.events.trigger(event)
        assert not shell.user_ns and not capsys.readouterr().out, event
    shell.events.trigger("post_execute")
    assert shell.user_ns["program"].record.ended == "the block ended"
    assert "compile_lens: a cell" in capsys.readouterr().out
    assert not any(
        callbacks for name, callbacks in shell.events.callbacks.items() if name.endswith("_execute")
    )


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_cell_is_watched() -> None:
    pytest.importorskip("IPython")
    done = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    errors, source, graphs, places, ended, line = json.loads(done.stdout.rpartition("RESULT")[2])
    assert errors[:3] == ["None", "None", "None"] and errors[3] == "ZeroDivisionError('division by zero')"
    assert "this is not the name of a variable" in errors[4]
    assert source == ["def f(x):", '    print(end="")', "    return x.sin()"]
    assert (graphs, places, ended, line) == (1, 1, "ZeroDivisionError: division by zero", 3), (
        "as the cell counts its lines"
    )
    assert "[0.0, 0.0]" in done.stdout, "the value of the last expression is shown"
    assert "Causes: 1 cause" in done.stdout


CELLS = {
    "an expression": "x = 1\nx + 1",
    "no Out": "x + 1;",
    "no Out after a comment": "x + 1;  # said\n\n",
    "await": "import asyncio\nawait asyncio.sleep(0)\nprint('slept')\nx + 2",
    "async for": "async def g():\n    yield 3\nasync for n in g():\n    print(n)",
    "an error": "print('before')\n1 / 0",
    "an error that is awaited": "async def fails():\n    raise KeyError('k')\nawait fails()",
    "no Python": "x = = 1",
    "an exit": "import sys\nsys.exit(3)",
    "a future": "from __future__ import annotations\ndef f(a: gone): return a\nf.__annotations__",
    "magics": "%precision 3\n!echo shell\nwords = %who_ls int\nwords",
    "another magic": "%%capture told\nprint('kept')",
    "what that kept": "told.stdout",
    "a cell in it": "get_ipython().run_cell('print(5); x'); print(6)\nx",
    "spaces": "\n\n    y = 7\n    y",
    "assigned": "z = 8",
    "history": "In[-1] is not None, Out[1]",
    "its own frame": "import inspect\nlen(inspect.stack()), __name__, sorted(n for n in locals() if n in 'xyz')",
    "the last one": "_",
}


def outputs(cells: list[str]) -> list[list[Any]]:
    """Outputs of a Jupyter kernel for cells, without our pages."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    patient = {"timeout": 600, "startup_timeout": 300, "iopub_timeout": 60}  # for a slow machine
    nbclient.NotebookClient(book, kernel_name="python3", allow_errors=True, **patient).execute()
    told = []
    for cell in book.cells:
        found: list[Any] = []
        for each in cell.outputs:
            if each.output_type == "error":
                found.append((each.ename, re.sub(r"\(\d+\.py, ", "(", each.evalue)))
            elif "compile_lens:" not in each.get("data", {}).get("text/plain", ""):
                found.append((each.get("text"), each.get("data"), each.get("execution_count")))
            else:
                found.append("page")
        told.append(found)
    return told


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_cell_is_as_without_it() -> None:
    names = ["load", *CELLS]
    plain = outputs(["%load_ext compile_lens", *CELLS.values()])
    watched = outputs(["%load_ext compile_lens", *(f"%%compile_lens\n{cell}" for cell in CELLS.values())])
    broken = plain[names.index("no Python")]
    broken[0] = (broken[0][0], broken[0][1].replace("line 1", "line 2"))  # the magic takes up the first line
    for name, told, said in zip(names, plain, watched, strict=True):
        assert [each for each in said if each != "page"] == told, name
        pages = 0 if name in ("load", "no Python") else 1
        assert said.count("page") == pages and said[len(said) - pages :] == ["page"] * pages, name
    assert plain[names.index("await")][-1][1] == {"text/plain": "3"}


@pytest.mark.slow
def test_a_line_of_a_cell_and_a_call() -> None:
    cells = [
        "%load_ext compile_lens\n%reload_ext compile_lens\nimport torch\nf = torch.compile(torch.sin, backend='eager')",
        "import asyncio\n%compile_lens one\nf(torch.ones(3))\nawait asyncio.sleep(0)\nf(torch.ones(3, 3));",
        "get_ipython().run_cell_magic('compile_lens', 'two', 'y = f(torch.ones(3, 3, 3))')",
        "f(torch.ones(3, 3, 3, 3));",
        "one.counts.graphs, two.counts.graphs, one.record.ended",
    ]
    told = outputs(cells)
    assert told[:4] == [[], ["page"], ["page"], []]
    assert told[4][0][1] == {"text/plain": "(2, 1, 'the block ended')"}
