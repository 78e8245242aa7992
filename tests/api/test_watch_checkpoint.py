"""Calls of ``torch.utils.checkpoint`` outside a graph, against plain Python in another process: the functions of the
program that its interpreter runs, how often it runs each, and the operations in torch's graphs."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
import torch
from full_text import full
from torch.utils.checkpoint import checkpoint

import compile_lens
from compile_lens.measures.program import Line
from compile_lens.record.program import ProgramRecord
from compile_lens.results.program import Program
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch

PROGRAM = """
import functools, json, sys, torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts
handed = []
def backend(gm, inputs):
    handed.append([getattr(n.target, "__name__", str(n.target)) for n in gm.graph.nodes if n.op.startswith("call")])
    return gm.forward
X = torch.ones(4, requires_grad=True)

# Which functions run depends on whether a compiler looks.
def while_compiling(x):
    return x.asin()
def while_eager(x):
    return x.acos()
def first_after_the_break(x):
    return x.atan()
def body(x):
    y = while_compiling(x) if torch.compiler.is_compiling() else while_eager(x)
    print("in body")
    return first_after_the_break(y)
def asks(x):
    y = x + 1
    return checkpoint(body, y, use_reentrant=False).sum()
asked = torch.compile(asks, backend=backend)
for _ in range(3):
    asked(X)

# The body is compiled by itself as well.
def twice(x):
    y = x.sinh()
    print("in twice")
    return y.cosh()
def with_twice(x):
    return checkpoint(twice, x + 2, use_reentrant=False).sum()
torch.compile(twice, backend=backend)(X)
torch.compile(with_twice, backend=backend)(X)

# The function around it is skipped before it comes to the call.
def quiet(x):
    return x.tan()
def skipped(x):
    for _ in range(2):
        x = x * 2
        torch._dynamo.graph_break()
        x = checkpoint(quiet, x, use_reentrant=True)
    return x
torch.compile(skipped, backend=backend)(X)

# Modules of torch's, with the program's inside of them; backwards.
class Loud(torch.nn.Module):
    def forward(self, x):
        y = x.exp()
        print("in a module")
        return y.log()
chain = torch.nn.Sequential(torch.nn.Linear(4, 4), Loud())
def modules(x):
    y = checkpoint(chain, x, use_reentrant=False)
    return checkpoint_sequential([chain, chain], 2, y, use_reentrant=False).sum()
torch.compile(modules, backend=backend)(X).backward()

# A policy is asked for, beside the function.
def policy(context, op, *args, **kwargs):
    return torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE
def contexts():
    return create_selective_checkpoint_contexts(policy)
def saved(x):
    y = x.erf()
    print("in saved")
    return y
def selective(x):
    return checkpoint(saved, x, use_reentrant=False, context_fn=contexts).sum()
torch.compile(selective, backend=backend)(X)

# What a graph holds, what nobody compiles, and what the advice makes of it.
def whole(x):
    return x.sigmoid()
def in_a_graph(x):
    return checkpoint(whole, x, use_reentrant=False).sum()
torch.compile(in_a_graph, backend=backend)(X).backward()
def never_compiled(x):
    return x.relu()
checkpoint(never_compiled, X, use_reentrant=False)
def advised(x):
    y = x.erfc()
    print("in advised")
    return y.expm1()
compiled = torch.compile(advised, backend=backend)
def as_advised(x):
    return checkpoint(compiled, x, use_reentrant=False).sum()
torch.compile(as_advised, backend=backend)(X)
"""

ORACLE = """
import collections, json, runpy, sys, types
ran = collections.Counter()
def met(frame, event, argument):
    if event == "call" and frame.f_code.co_filename == sys.argv[1]:
        ran[frame.f_code] += 1
sys.setprofile(met)
made = runpy.run_path(sys.argv[1], run_name="__main__")
sys.setprofile(None)
own = {getattr(f, "_torchdynamo_orig_callable", f).__code__: name
       for name, f in made.items() if isinstance(f, types.FunctionType) and f.__module__ == "__main__"}
own[made["Loud"].forward.__code__] = "forward"
print(json.dumps([{own[code]: n for code, n in ran.items() if code in own}, made["handed"]]))
"""


@dataclasses.dataclass(frozen=True)
class Both:
    ran: dict[str, int]
    graphs: str
    program: Program
    lines: dict[str, Line]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("checkpoints")
    path, out = folder / "program.py", folder / "report.json"
    path.write_text(PROGRAM)

    def run(*words: str) -> str:
        said = subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, check=True, cwd=folder
        )
        return said.stdout

    plain = run("-c", ORACLE, str(path))
    watched = run("-m", "compile_lens", "run", "-o", str(out), str(path))
    assert plain.startswith(watched), "the program says the same"
    ran, graphs = json.loads(plain.splitlines()[-1])
    program = Program.load(out)
    (file,) = (file for file in program.lines if file.endswith("program.py"))
    text = PROGRAM.splitlines()
    return Both(ran, str(graphs), program, {text[x.line - 1].strip(): x for x in program.lines[file]})


def inside(both: Both) -> dict[str, Any]:
    assert not both.program.record.missing
    return {one.function: one for one in both.program.eager_frames}


@pytest.mark.full
def test_just_what_ran_by_its_own_code_is_eager(both: Both) -> None:
    found = inside(both)
    assert all(one.kind == "inside an eager call" and one.certain for one in found.values())
    own = set(found) - {"Sequential"}
    assert own <= set(both.ran), "plain Python ran each of them"
    others = {"backend", "policy", "contexts", "never_compiled"}  # a compile does not make them run eagerly
    rests = {v for f in both.program.frames for v in [f.function]}
    assert set(both.ran) - own - others <= rests, "all else has a visit"
    assert "while_compiling" not in found and {"while_eager", "first_after_the_break"} <= own


@pytest.mark.full
@pytest.mark.parametrize(("function", "operations"), [
    ("body", "acos atan"), ("twice", ""), ("quiet", "tan"), ("saved", "erf"),
])  # fmt: skip
def test_calls_are_counted(both: Both, function: str, operations: str) -> None:
    one = inside(both)[function]
    assert one.count == both.ran[function]
    assert not any(f"'{op}'" in both.graphs for op in operations.split())
    assert (one.caller is not None and "checkpoint(" in one.caller.text) or function == "quiet"


@pytest.mark.full
def test_a_body_that_is_compiled_by_itself_is_both(both: Both) -> None:
    assert "'sinh'" in both.graphs and "'cosh'" in both.graphs
    assert both.ran["twice"] == 1, "it ran as it is in the checkpoint"
    assert set(both.lines["y = x.sinh()"].states) == {"eager", "compiled"}
    assert both.lines["return x.acos()"].states == ("eager",)
    assert "return x.asin()" not in both.lines or "eager" not in both.lines["return x.asin()"].states


@pytest.mark.full
def test_why(both: Both) -> None:
    found = inside(both)
    assert "the graph broke inside of this call" in found["body"].cause.reason
    assert "torch.utils.checkpoint calls it" in found["quiet"].cause.reason, "its call did not break"
    assert found["Sequential"].file == "" and found["forward"].file.endswith("program.py")
    assert "advised" not in found and "'erfc'" in both.graphs and "'expm1'" in both.graphs, (
        "what is advised holds"
    )
    assert "'tag_activation_checkpoint'" in both.graphs and "whole" not in both.ran
    assert not {"whole", "never_compiled", "policy", "contexts"} & set(found)


@pytest.mark.full
def test_what_is_not_certain_is_said_to_be_as_far_as_is_known(both: Both) -> None:
    doubted = tuple(dataclasses.replace(u, certain=False, eager_lines=()) for u in both.program.eager_frames)
    record: ProgramRecord = dataclasses.replace(both.program.record, eager_frames=doubted)
    text = " ".join(full(Program(lambda: record)).split())
    assert "without a compile attempt, as far as is known" in words.verdict(record)
    assert "in body was run eagerly without a compile attempt, as far as is known" in text
    assert "as far as is known" not in " ".join(both.program.text("full").split())
    assert "return x.acos()" not in {
        PROGRAM.splitlines()[one.line - 1].strip()
        for found in Program(lambda: record).lines.values()
        for one in found
        if "eager" in one.states
    }


def in_turn(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def fails(x: torch.Tensor) -> torch.Tensor:
    print(end="")
    if in_turn(x).sum() > 0:
        raise ValueError("of the program")
    return x


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_a_profiler_is_left_as_it_was(reentrant: bool, own: bool) -> None:
    heard = []

    def profiler(frame: Any, event: str, argument: object) -> None:
        heard.append(event)

    @torch.compile(backend="eager")
    def around(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(fails, x + 1, use_reentrant=reentrant)

    before = profiler if own else None
    torch._dynamo.reset()
    sys.setprofile(before)
    try:
        with compile_lens.watch() as program, pytest.raises(ValueError, match="of the program"):
            around(torch.ones(3, requires_grad=True))
        after = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert after is before and bool(heard) == own
    found = [(one.function, one.count) for one in program.eager_frames]
    assert found == [("fails", 1)] + ([] if own else [("in_turn", 0)])
