"""Code that ran eagerly outside any frame evaluation, against plain torch in another process: its profiler outside
compiled graphs, backend calls, and counters."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import samples_program
from full_text import full

from compile_lens.measures.program import Line
from compile_lens.record.codec import to_json
from compile_lens.results.program import Program
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch

_BEGIN = """
import json, sys, torch
from torch.utils.checkpoint import checkpoint
handed = []
def backend(gm, inputs):
    handed.append([getattr(n.target, "__name__", str(n.target)) for n in gm.graph.nodes if n.op.startswith("call")])
    return gm.forward
"""
_END = """
print(json.dumps(handed))
"""


def ran(tmp_path: Path, text: str) -> tuple[Any, Program]:
    """Return the last output of the script under plain Python, and the report on the same script."""
    path = tmp_path / "program.py"
    path.write_text(_BEGIN + textwrap.dedent(text) + _END)
    plain = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, cwd=tmp_path)
    out = tmp_path / "report.json"
    made = [sys.executable, "-m", "compile_lens", "run", "-o", str(out), str(path)]
    watched = subprocess.run(made, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert watched.stdout == plain.stdout
    return json.loads(plain.stdout.splitlines()[-1]), Program.load(out)


def lines(program: Program) -> dict[str, Line]:
    """Outcome of each line of the script, keyed by its text."""
    (file,) = (file for file in program.lines if file.endswith("program.py"))
    text = Path(file).read_text().splitlines()
    return {text[one.line - 1].strip(): one for one in program.lines[file]}


CHECKPOINT = """
def helper(x):
    return x.exp()
def body(x):
    y = helper(x).sin()
    print("in body")
    return y.cos()
def f(x):
    y = x + 1
    z = {call}
    return z.sum()
torch.compile(f, backend=backend)(torch.ones(4, requires_grad=True))
"""


@pytest.mark.exhaustive
def test_the_body_of_a_checkpoint_that_broke_is_eager(tmp_path: Path) -> None:
    graphs, program = ran(tmp_path, CHECKPOINT.format(call="checkpoint(body, y, use_reentrant=False)"))
    assert not any(op in str(graphs) for op in ("sin", "cos", "exp")), "no graph of torch's has the body"
    found = lines(program)
    for text in ("y = helper(x).sin()", "return y.cos()", "return x.exp()"):
        assert found[text].states == ("eager",), text
    assert found['print("in body")'].states == ("broke", "eager")
    first, second = program.eager_frames
    assert (first.function, second.function) == ("body", "helper")
    assert first.caller is not None and "checkpoint(body" in first.caller.text
    assert (first.count, second.count) == (1, 0), "how often what is called in turn is not known"
    assert words.state(program.record) == "partial" and program.counts.eager_frames == 2
    assert "2 functions run eagerly without a compile attempt" in " ".join(full(program).split())


@pytest.mark.exhaustive
def test_the_body_of_a_plain_call_that_broke_is_looked_at_by_itself(tmp_path: Path) -> None:
    graphs, program = ran(tmp_path, CHECKPOINT.format(call="body(y)"))
    assert all(op in str(graphs) for op in ("sin", "cos", "exp"))
    assert not program.eager_frames
    assert all("eager" not in one.states for text, one in lines(program).items() if "print" not in text)


STANCE = """
def f(x):
    return x.sin()
def g(x):
    return x.cos()
f, g = (torch.compile(one, backend=backend, dynamic=False) for one in (f, g))
f(torch.ones(3))
with torch.compiler.set_stance({stance!r}):
    {calls}
"""


@pytest.mark.full
@pytest.mark.cases(full=1)
@pytest.mark.parametrize(
    ("stance", "calls", "graphs", "told"),
    [
        (
            "force_eager",
            "f(torch.ones(3)); f(torch.ones(3)); g(torch.ones(3))",
            1,
            [("f", 2, 1), ("g", 1, 1)],
        ),
        (
            "eager_on_recompile",
            "f(torch.ones(3)); f(torch.ones(5)); g(torch.ones(3))",
            1,
            [("f", 2, 0), ("g", 1, 1)],
        ),
        ("eager_then_compile", "g(torch.ones(3)); g(torch.ones(4))", 2, [("g", 1, 1)]),
        ("fail_on_recompile", "f(torch.ones(3))", 1, []),
        ("default", "f(torch.ones(3)); g(torch.ones(3))", 2, []),
    ],
)
def test_calls_under_a_stance(
    tmp_path: Path, stance: str, calls: str, graphs: int, told: list[tuple[str, int, int]]
) -> None:
    handed, program = ran(tmp_path, STANCE.format(stance=stance, calls=calls))
    assert len(handed) == graphs
    assert [(u.function, u.count, u.certain) for u in program.eager_frames] == told
    assert words.state(program.record) == ("partial" if told else "compiled")
    text = (_BEGIN + STANCE.format(stance=stance, calls=calls)).splitlines()
    (set_,) = (i for i, line in enumerate(text, 1) if "set_stance" in line)
    for one in program.eager_frames:
        assert one.kind == "stance" and stance in one.cause.reason and one.caller is not None
        assert (one.cause.frames[0].line, one.caller.line) == (set_, set_ + 1)
    sure = {u.function for u in program.eager_frames if u.certain}
    found = lines(program)
    assert ("eager" in found["return x.sin()"].states) == ("f" in sure)


@pytest.mark.exhaustive
def test_a_stance_that_was_set_before_the_watch(tmp_path: Path) -> None:
    text = """
    import compile_lens
    def f(x):
        return x.sin()
    torch.compiler.set_stance("force_eager")
    with compile_lens.watch() as program:
        torch.compile(f, backend=backend)(torch.ones(3))
    torch.compile(f, backend=backend)(torch.ones(3))
    torch.compiler.set_stance("default")
    before = torch._dynamo.eval_frame._callback_from_stance
    handed = [len(handed), [u.count for u in program.eager_frames],
              "before the watch" in program.eager_frames[0].cause.reason,
              before.__module__ == "torch._dynamo.eval_frame" and type(before).__name__ == "function"]
    """
    path = tmp_path / "program.py"
    path.write_text(_BEGIN + textwrap.dedent(text) + _END)
    plain = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert json.loads(plain.stdout.splitlines()[-1]) == [0, [1], True, True]


DDP = """
import os, socket
import torch.distributed as dist
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
dist.init_process_group("gloo", rank=0, world_size=1)
class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
    def forward(self, x):
        return self.inner(x).relu()
ddp = torch.nn.parallel.DistributedDataParallel
chain = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
model = {model}
for _ in range(2):
    model(torch.ones(2, 3)).sum().backward()
dist.destroy_process_group()
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("model", "eager"),
    [
        ("torch.compile(ddp(chain), backend=backend)", "Sequential"),
        ("torch.compile(ddp(torch.nn.Linear(3, 3)), backend=backend)", "Linear"),
        ("torch.compile(ddp(Own()), backend=backend)", ""),
        ("ddp(torch.compile(chain, backend=backend))", ""),
    ],
)
def test_a_module_of_torch_s_in_ddp(tmp_path: Path, model: str, eager: str) -> None:
    graphs, program = ran(tmp_path, DDP.format(model=model))
    assert ("linear" in str(graphs)) == (not eager), "what is advised holds"
    assert [u.kind for u in program.eager_frames] == (["torch module"] if eager else [])
    if eager:
        (one,) = program.eager_frames
        assert eager in one.function or sys.version_info < (3, 11)
        assert "DistributedDataParallel" in full(program)


WITHIN = """
import compile_lens
def f(x):
    y = x.sin()
    with compile_lens.watch():
        y = y * 2
    return y
print(torch.compile(f, backend=backend)(torch.zeros(3)).tolist())
"""


@pytest.mark.exhaustive
def test_a_watch_in_a_compiled_function_brings_no_functions_of_ours(tmp_path: Path) -> None:
    _, program = ran(tmp_path, WITHIN)
    assert program.eager_frames == () and [frame.function for frame in program.frames] == ["f"]
    (source,) = program.record.sources
    assert source.file.endswith("program.py")


def test_an_older_record_has_none() -> None:
    data = json.loads(to_json(samples_program.program()))
    data.pop("unvisited", None)
    assert not Program.from_json(json.dumps(data)).eager_frames


ON_ONE_LINE = """
def f(x):
    y = x.sin()
    print("a")
    z = y.cos()
    w = print("b") or z.tan()
    return w.exp()
torch.compile(f, backend=backend)(torch.ones(3))
"""


@pytest.mark.exhaustive
def test_a_line_that_broke_is_compiled_only_where_a_graph_has_a_call_of_it(tmp_path: Path) -> None:
    graphs, program = ran(tmp_path, ON_ONE_LINE)
    assert graphs == [["sin"], ["cos"], ["tan", "exp"]]
    found = lines(program)
    assert found['print("a")'].states == ("broke",)
    assert found['w = print("b") or z.tan()'].states == ("broke", "compiled")
    assert {found[t].states for t in ("y = x.sin()", "z = y.cos()", "return w.exp()")} == {("compiled",)}


@pytest.mark.exhaustive
def test_a_row_of_several_breaks_has_the_graphs_of_each(tmp_path: Path) -> None:
    graphs, program = ran(tmp_path, CHECKPOINT.format(call="body(y)"))
    assert [["add"], ["exp", "sin"], ["cos"], ["sum"]] == graphs
    assert len(program.breaks) == 2 and "0 → 3; 1 → 2" in " ".join(full(program).split())


AUTOGRAD = """
torch._dynamo.config.compiled_autograd = True
def f(x):
    return (x.sin() * 2).sum()
@torch.compile(backend=backend)
def train(x):
    y = f(x)
    y.backward()
    return x.grad
train(torch.ones(3, requires_grad=True))
"""


@pytest.mark.exhaustive
def test_what_torch_wrote_is_no_file_of_the_program(tmp_path: Path) -> None:
    _, program = ran(tmp_path, AUTOGRAD)
    assert any(frame.file.startswith("<eval_with_key>") for frame in program.frames), (
        "compiled autograd was seen"
    )
    assert {Path(source.file).name for source in program.record.sources} == {"program.py"}
