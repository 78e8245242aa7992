"""Code that a program creates with exec or eval, against the lines that Python runs."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from full_text import full
from lines_run import lines_run

import compile_lens

pytestmark = pytest.mark.torch

TEXT = """
def made(x):
    y = x.sin()
    print(end="")
    return y.cos()


def loop(x):
    for _ in range(2):
        x = x + 1
        print(end="")
    return x
"""


def made(file: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(TEXT if file == "<string>" else compile(TEXT, file, "exec"), names)
    return names


def run_by_python(call: Any, code: types.CodeType, x: torch.Tensor) -> set[int]:
    """Lines of a code object that Python itself runs in a call."""
    return lines_run(call, x, lambda one: one is code)


@pytest.mark.parametrize("file", ["<string>", "<template>"])
def test_what_exec_made_has_a_row_under_its_name(file: str) -> None:
    torch._dynamo.reset()
    names = made(file)
    calls = {name: torch.compile(names[name], backend="eager") for name in ("made", "loop")}
    with compile_lens.watch() as program:
        for call in calls.values():
            call(torch.ones(3))
    ran = run_by_python(calls["loop"], names["loop"].__code__, torch.ones(3))
    states = {line.line: line.states for line in program.lines[file]}
    assert ran == {9, 10, 11, 12} and all("eager" in states[line] for line in ran)
    assert states[3] == states[5] == ("compiled",) and states[4] == ("broke",)
    text = " ".join(full(program).split())
    assert f"{file}, in no file 2 4 2 0" in text, "it had no row"
    assert not program.record.sources
    assert f"{file}:9 in loop runs eagerly" in text or f"{file}:11 in loop runs eagerly" in text


def test_what_torch_made_has_none() -> None:
    torch._dynamo.reset()
    module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    with compile_lens.watch() as program:
        torch.compile(module, backend="eager")(torch.ones(3))
    assert program.evaluations and "in no file" not in full(program)
