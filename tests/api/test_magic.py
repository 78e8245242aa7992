"""The cell magic, in a shell of IPython's own in another process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.slow]

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
    program.counts.places, shell.user_ns["failed"].record.ended, program.slower[0].place.line]))
'''


def test_a_cell_is_watched() -> None:
    pytest.importorskip("IPython")
    done = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    errors, source, graphs, places, ended, line = json.loads(done.stdout.rpartition("RESULT")[2])
    assert errors[:3] == ["None", "None", "None"] and errors[3] == "ZeroDivisionError('division by zero')"
    assert "this is no name of a variable" in errors[4]
    assert source == ["def f(x):", '    print(end="")', "    return x.sin()"]
    assert (graphs, places, ended, line) == (1, 1, "ZeroDivisionError: division by zero", 2)
    assert "[0.0, 0.0]" in done.stdout, "the value of the last expression is shown"
    assert "why is it not faster" in done.stdout
