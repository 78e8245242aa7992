"""Callables that torch compiles through its own wrapper are reported as themselves, against torch's backend calls."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import changed_programs
import pytest
import torch
from full_text import full

import compile_lens
from compile_lens.record.program import COMPILED
from compile_lens.results.program import Program

pytestmark = pytest.mark.torch

HERE = Path(__file__).name


def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x.sin() * by


def printing(x: torch.Tensor, by: float) -> torch.Tensor:
    y = x.sin()
    print(end="")
    return y * by


class Callable:
    """A callable object."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.cos()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            raise AssertionError(f"code of the program ran for {name}")
        raise AttributeError(name)


THINGS = {
    "torch.sin": torch.sin,
    "functools.partial of scaled": functools.partial(scaled, by=2.0),
    "Sequential": torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()),
    "functools.partial of torch.add": functools.partial(torch.add, torch.ones(3)),
    "torch.ops.aten.cos.default": torch.ops.aten.cos.default,
}


def watched(things: dict[str, Any]) -> tuple[Program, list[list[str]], dict[str, int]]:
    """Return the program, the graphs that torch handed to the backend, and the line of each call."""
    graphs: list[list[str]] = []

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        graphs.append([str(n.target) for n in gm.graph.nodes if n.op.startswith("call")])
        return gm.forward

    torch._dynamo.reset()
    with compile_lens.watch() as program:
        for thing in things.values():
            torch.compile(thing, backend=backend)(torch.rand(3))
            line = here() - 1
    return program, graphs, dict.fromkeys(things, line)


def here() -> int:
    return sys._getframe(1).f_lineno


def test_each_is_listed_as_what_it_is_with_a_line_of_the_program() -> None:
    program, graphs, called = watched(THINGS)
    assert len(graphs) == len(THINGS) == program.counts.graphs
    through = [f for f in program.frames if f.torch_caller]
    assert [f.function for f in through] == list(THINGS)
    for frame in through:
        assert Path(frame.file).name == HERE, "never a file of torch's as if it were the program's"
        own = scaled.__code__.co_firstlineno if "scaled" in frame.function else called[frame.function]
        assert frame.line == own
        assert [v.outcome for v in frame.evaluations] == [COMPILED]
    text = " ".join(full(program).split())
    assert "external_utils.py" not in text and " inner " not in text
    assert "compile functions of your own that call them" in text
    again = Program.from_json(program.to_json())
    assert [f.torch_caller for f in again.frames] == [f.torch_caller for f in program.frames]


def test_an_object_that_is_called_is_told_without_running_its_code() -> None:
    program, graphs, _ = watched({"Callable": Callable()})
    assert len(graphs) == 1
    assert all(Path(f.file).name == HERE for f in program.frames)


def test_a_break_behind_it_is_one_of_the_program() -> None:
    program, graphs, _ = watched({"printing": functools.partial(printing, by=2.0)})
    assert len(graphs) == 2
    for broken in program.breaks:
        assert all(Path(at.file).name == HERE for at in broken.ending.frames)
    assert "external_utils.py" not in full(program)
    names = {f.function for f in program.frames}
    assert "functools.partial of printing" in names and "printing" in names and "inner" not in names


def test_at_the_limit_each_is_itself() -> None:
    ops = changed_programs.ONE_EACH
    program, graphs, _ = watched({op.__name__: op for op in ops})
    assert len(graphs) == torch._dynamo.config.recompile_limit == 8
    (frame,) = (f for f in program.frames if any(v.outcome == "limit" for v in f.evaluations))
    assert frame.function == "torch.relu" and frame.torch_caller
    assert [f.function for f in program.frames] == [f"torch.{op.__name__}" for op in ops]
    (cause,) = (c for c in program.causes if c.kind == "recompile limit")
    assert cause.place is not None and Path(cause.place.file).name == HERE
    parts = json.loads(program.to_json())
    assert "external_utils.py" in json.dumps(parts), "through what it was compiled is in the record"


LOGGED = """
import torch
for op in (torch.sin, torch.cos):
    torch.compile(op, backend="eager")(torch.rand(3))
"""


@pytest.mark.full
def test_a_log_does_not_say_what_it_is_and_neither_is_it_told(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LOGGED)
    env = {**os.environ, "TORCH_TRACE": str(tmp_path / "log")}
    subprocess.run([sys.executable, tmp_path / "program.py"], env=env, check=True)
    program = compile_lens.import_trace(tmp_path / "log")
    (frame,) = program.frames
    assert len(frame.evaluations) == 2 and frame.torch_caller and not frame.file
    text = " ".join(full(program).split())
    assert "the log does not say which" in text and "external_utils.py" not in text
    assert "compile functions of your own that call them" in text
