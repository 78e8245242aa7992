"""``compile-lens run --what-if``: each setting is tried in its own run, with the same counts as plain torch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compile_lens import Program
from compile_lens.cli import main
from compile_lens.record.remedies import RemedyRun
from compile_lens.views.words import remedy_runs as words

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROGRAM = """
import torch
# settings

class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        top = x.abs().max().item()
        print("in the function")
        return x / (top + 1) * self.calls

def sizes(x):
    return (x * 2).sum()

def closure(k):
    def scaled(x):
        return (x * k).sin()
    return scaled

torch.manual_seed(0)
counted = torch.compile(Counted(), backend="eager")
for n in range(12):
    print(n, counted(torch.ones(4)).tolist())
vary = torch.compile(sizes, backend="eager")
for n in (5, 9, 13):
    print(n, vary(torch.ones(n, 2)).item())
for k in ["a" * n for n in range(12)]:
    f = torch.compile(closure(len(k) + 0.5), backend="eager", dynamic=False)
    print(f(torch.ones(3)).tolist())
"""

CONFIG = "torch._dynamo.config"
SOURCES = {
    "allow_unspec_int_on_nn_module": (
        "# settings",
        f"import torch._dynamo\n{CONFIG}.allow_unspec_int_on_nn_module = True",
    ),
    "capture_scalar_outputs": ("# settings", f"import torch._dynamo\n{CONFIG}.capture_scalar_outputs = True"),
    "reorderable_logging_functions": (
        "# settings",
        f"import torch._dynamo\n{CONFIG}.reorderable_logging_functions.add(print)",
    ),
    "recompile_limit": ("# settings", f"import torch._dynamo\n{CONFIG}.recompile_limit = 64"),
    "dynamic": ('backend="eager")', 'backend="eager", dynamic=True)'),
    "mark_dynamic": (
        "vary(torch.ones(n, 2))",
        "(lambda t: (torch._dynamo.mark_dynamic(t, 0), vary(t))[1])(torch.ones(n, 2))",
    ),
    "isolate_recompiles": ('backend="eager"', 'backend="eager", isolate_recompiles=True'),
}
"""Code of each setting, as a user writes it into the program."""

PLAIN = """
import contextlib, io, json, logging, sys
import torch, torch._dynamo, torch._logging
import torch._dynamo.utils as utils

kinds = {}

class Counter(logging.Handler):
    def emit(self, record):
        text = record.getMessage()
        kinds["breaks"] += text.startswith("Graph break")
        kinds["recompiles"] += text.startswith("Recompiling function")
        kinds["recompiles"] -= "hit config.recompile_limit" in text  # it was refused

torch._logging.set_logs(graph_breaks=True, recompiles=True)
logging.getLogger("torch._dynamo.symbolic_convert.__graph_breaks").addHandler(Counter())
logging.getLogger("torch._dynamo.guards.__recompiles").addHandler(Counter())
logging.getLogger("torch._dynamo.convert_frame").addHandler(Counter())
defaults = torch._dynamo.config.save_config()
results = []
for path in sys.argv[1:]:
    torch._dynamo.config.load_config(defaults)
    torch._dynamo.reset()
    utils.counters.clear()
    kinds.update(breaks=0, recompiles=0)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
    graphs = utils.counters["stats"]["unique_graphs"]
    results.append([graphs, kinds["breaks"], kinds["recompiles"], output.getvalue()])
json.dump(results, sys.stdout)
"""
"""Prints torch's own counts and logs for each program, and its output, without our code."""


def plain(folder: Path, sources: list[str]) -> list[list[Any]]:
    """Return graphs, breaks, recompiles and output of programs under plain Python."""
    (folder / "plain.py").write_text(PLAIN)
    paths = [folder / f"variant{n}.py" for n in range(len(sources))]
    for path, source in zip(paths, sources, strict=True):
        path.write_text(source)
    done = subprocess.run(
        [sys.executable, "plain.py", *map(str, paths)], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results: list[list[Any]] = json.loads(done.stdout)
    return results


def with_settings(*kinds: str) -> str:
    source = PROGRAM
    for kind in kinds:
        old, new = SOURCES[kind]
        source = source.replace(old, f"{new}\n{old}" if old == "# settings" else new)
    return source


def kinds(run: RemedyRun) -> tuple[str, ...]:
    return tuple(remedy.kind for remedy in run.remedies)


@pytest.mark.exhaustive
def test_the_figures_are_those_of_plain_torch(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "compile_lens", "run", "-o", "p.json", "program.py", "--what-if"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    program = Program.load(tmp_path / "p.json")
    remedies = program.record.remedies
    assert remedies is not None and remedies.base is not None and remedies.together is not None
    runs = (*remedies.runs, remedies.together)
    tried = {kinds(run) for run in remedies.runs}
    assert tried >= {(kind,) for kind in SOURCES if kind != "isolate_recompiles"}
    own, *others = plain(tmp_path, [PROGRAM, *(with_settings(*kinds(run)) for run in runs)])
    assert (remedies.base.graphs, remedies.base.breaks, remedies.base.recompiles) == tuple(own[:3])
    assert done.stdout == own[3]  # the output of the first run alone
    for run, (*counts, output) in zip(runs, others, strict=True):
        assert run.missing is None and run.figures is not None, run
        figures = (run.figures.graphs, run.figures.breaks, run.figures.recompiles)
        assert figures == tuple(counts), kinds(run)
        assert run.agrees is (output == own[3]), kinds(run)
    again = any("different" in run.comparison or run.agrees is not True for run in runs)
    assert remedies.count == 1 + len(runs) + again
    assert done.stderr.count("compile-lens: run ") == len(runs)
    text = program.text()
    assert text.count("\n") <= 25 and "Remedies that ran" in text
    first = words.fact(remedies).partition(";")[0]
    for form in (program.text("full"), program.save(tmp_path / "p.md").read_text(), str(program.brief())):
        assert first in re.sub(r"\s+", " ", form)


ENDS = """
import sys, time, torch
def f(x):
    return x + x.sum().item()
print("value", torch.compile(f, backend="eager")(torch.ones(3)).tolist())
{more}
"""


def run(folder: Path, more: str, *options: str) -> tuple[subprocess.CompletedProcess[str], RemedyRun]:
    (folder / "ends.py").write_text(ENDS.format(more=more))
    command = [sys.executable, "-m", "compile_lens", "run", "--what-if", *options, "-o", "p.json", "ends.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    remedies = Program.load(folder / "p.json").record.remedies
    assert remedies is not None
    return done, remedies.runs[0]


def test_a_setting_of_the_program_is_not_taken_for_one_that_was_tried(tmp_path: Path) -> None:
    source = "import torch._dynamo\ntorch._dynamo.config.capture_scalar_outputs = False\n"
    (tmp_path / "own.py").write_text(source + ENDS.format(more=""))
    command = [sys.executable, "-m", "compile_lens", "run", "--what-if", "-o", "p.json", "own.py"]
    subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    remedies = Program.load(tmp_path / "p.json").record.remedies
    assert remedies is not None
    (one,) = remedies.runs
    assert (
        one.figures is None and one.missing is not None and "the program sets it itself" in one.missing.reason
    )
    assert words.outcome(one, remedies.base) == "not run"


@pytest.mark.exhaustive
def test_what_differs_by_itself_is_not_the_settings(tmp_path: Path) -> None:
    done, one = run(tmp_path, "print('time', time.time_ns())\nsys.exit(3)")
    assert done.returncode == 3
    assert one.agrees is True and "1 of 2 lines" in one.comparison


def test_an_exit_code_of_a_setting_is_told(tmp_path: Path) -> None:
    done, one = run(tmp_path, "sys.exit(torch._dynamo.config.capture_scalar_outputs)")
    assert done.returncode == 0
    assert one.agrees is False and "exit code 1, not 0" in one.comparison
    assert "results differ" in Program.load(tmp_path / "p.json").text()


@pytest.mark.exhaustive
def test_a_run_past_its_limit_is_ended_and_said_to_be(tmp_path: Path) -> None:
    more = "if torch._dynamo.config.capture_scalar_outputs: time.sleep(600)"
    _, one = run(tmp_path, more, "--time-limit", "25")
    assert one.figures is None and one.missing is not None and "time limit of 25 s" in one.missing.reason


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "x.py"
    script.write_text("")
    assert main(["run", "--time-limit", "5", str(script)]) == 2
    assert main(["run", "--what-if", "--time-limit", "-1", str(script)]) == 2
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["run", str(script), "--what-if"]) == 2
    assert "one of several" in capsys.readouterr().err
