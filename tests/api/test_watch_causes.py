"""Causes in a watch, against plain torch: the number of backend calls, and the symbols in their inputs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from full_text import full

import compile_lens
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch


class Backend:
    """Counts the graphs that torch hands over, and the symbols among their inputs."""

    def __init__(self) -> None:
        self.symbols: list[list[str]] = []

    def __call__(self, gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        values = (n.meta["example_value"] for n in gm.graph.nodes if n.op == "placeholder")
        self.symbols.append([str(v.node.expr) for v in values if isinstance(v, torch.SymInt)])
        return gm.forward


def compiled(function: Any, **options: Any) -> tuple[Any, Backend]:
    torch._dynamo.reset()
    backend = Backend()
    return torch.compile(function, backend=backend, **options), backend


def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


def sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def test_a_number_that_became_a_symbol_is_said_to_be_one() -> None:
    call, backend = compiled(scaled)
    with compile_lens.watch() as program:
        for n in range(2, 7):
            call(torch.ones(3), n)
    assert len(backend.symbols) == 2 and not backend.symbols[0], "values 4, 5 and 6 cost nothing"
    again = program.recompiles[0].recompilation
    assert again is not None and [d.symbol for d in again.dynamic] == backend.symbols[1]
    assert "n became" in words.again(again) and "for any int" in words.again(again)
    assert "dynamic=True" in words.to_try(again)
    call, backend = compiled(scaled, dynamic=True)
    for n in range(2, 7):
        call(torch.ones(3), n)
    assert len(backend.symbols) == 1, "what is advised holds"


def test_a_size_that_became_a_symbol_where_the_older_form_was_not_watched() -> None:
    call, backend = compiled(sine)
    call(torch.ones(3))
    with compile_lens.watch() as program:
        call(torch.ones(4))
        call(torch.ones(9))
    assert len(backend.symbols) == 2
    again = program.recompiles[0].recompilation
    assert again is not None and [d.symbol for d in again.dynamic] == backend.symbols[1]
    assert "mark_dynamic" in words.to_try(again)


def test_torch_s_own_form_for_a_size_of_one_is_no_line_of_the_program() -> None:
    call, backend = compiled(sine, dynamic=True)
    with compile_lens.watch() as program:
        call(torch.ones(4))
        call(torch.ones(1))
    assert len(backend.symbols) == 2
    again = program.recompiles[0].recompilation
    assert again is not None and again.failed_guards[0].new == "1" and again.failed_guards[0].line is None
    assert "mark_unbacked" in words.to_try(again) and "depends on" not in words.to_try(again)
    call, backend = compiled(sine, dynamic=True)
    for size in (4, 1):
        x = torch.ones(size)
        torch._dynamo.decorators.mark_unbacked(x, 0)
        call(x)
    assert len(backend.symbols) == 1, "what is advised holds"


def test_a_function_whose_first_call_computes_nothing_runs_in_python_for_good() -> None:
    def perhaps(x: torch.Tensor, o: Any) -> torch.Tensor:
        return x if o is None else (x + o).sin()

    call, backend = compiled(perhaps)
    x = torch.ones(3)
    with compile_lens.watch() as program, torch.profiler.profile() as profiled:
        call(x, None)
        call(x, x)
    assert not backend.symbols and any(e.name == "aten::sin" for e in profiled.events())
    assert "does not look at these functions again" in words.verdict(program.record)


@pytest.mark.parametrize("stance", ["eager_on_recompile", "force_eager"])
def test_a_stance_is_told_with_its_line(stance: str) -> None:
    call, backend = compiled(sine, dynamic=False)
    before = torch._dynamo.decorators._set_stance
    with compile_lens.watch() as program:
        call(torch.ones(3))
        with torch.compiler.set_stance(stance):
            call(torch.ones(7))
    assert len(backend.symbols) == 1, "the second call ran eagerly"
    (cause,) = (cause for cause in program.causes if cause.kind == "not evaluated")
    assert cause.place is not None and cause.place.line == sine.__code__.co_firstlineno
    text = " ".join(full(program).split())
    assert f"torch.compiler.set_stance('{stance}') was set (test_watch_causes.py:" in text
    assert torch._dynamo.decorators._set_stance is before
    with torch.compiler.set_stance(stance), compile_lens.watch() as program:
        call(torch.ones(7))
    assert "was set before the watch" in " ".join(full(program).split())


LAYOUTS = {
    "transposed": (torch.ones(4, 6), torch.ones(6, 4).t()),
    "channels last": (
        torch.ones(2, 3, 4, 5),
        torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    ),
    "slices": (torch.ones(8, 10)[:, :5], torch.ones(8, 20)[:, :5], torch.ones(8, 1).expand(8, 5)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_advice_on_strides_is_one_layout(name: str) -> None:
    given = LAYOUTS[name]
    call, backend = compiled(sine)
    with compile_lens.watch() as program:
        for x in given:
            call(x)
    assert len(backend.symbols) == len(given) == len(program.recompiles) + 1
    for visit in program.recompiles:
        again = visit.recompilation
        assert again is not None and ".stride(" in again.failed_guards[0].source
        assert "x.contiguous()" in words.to_try(again) and "mark" not in words.to_try(again)
    call, backend = compiled(sine)
    for x in given:
        call(x.contiguous())
    assert len(backend.symbols) == 1, "what is advised helps"
    call, backend = compiled(sine)
    for x in given:
        for dim in range(x.dim()):
            torch._dynamo.mark_dynamic(x, dim)
        call(x)
    assert len(backend.symbols) > 1, "what was advised does not"


async def coroutine() -> None:
    pass


def generator() -> Any:
    yield


@pytest.mark.parametrize("function", [coroutine, generator])
def test_what_runs_after_its_call_is_not_decorated(function: Callable[[], Any]) -> None:
    with pytest.raises(compile_lens.UsageError, match=f"{function.__name__}.*with compile_lens.watch"):
        compile_lens.watch(function)


def test_a_compile_that_raised_is_a_cause_with_its_reason() -> None:
    def printing(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        print("a")
        return y + 1

    call, _ = compiled(printing, fullgraph=True)
    with compile_lens.watch() as program, pytest.raises(torch._dynamo.exc.Unsupported) as raised:
        call(torch.ones(3))
    (cause,) = program.causes
    assert (
        cause.kind == "compile that raised" and cause.place is not None and cause.place.text == 'print("a")'
    )
    assert str(raised.value).partition("\n")[0] in words.because(cause)
    assert "could not be compiled: the call raised" in " ".join(full(program).split())


def test_of_several_reasons_the_one_that_took_most_time_comes_first() -> None:
    began = time.monotonic()

    def backend(gm: Any, inputs: Any) -> Any:
        if len(handed) == 3:  # longer than all earlier compiles together, however slow the machine
            time.sleep(1.5 * (time.monotonic() - began) + 0.5)
        handed.append(torch.is_grad_enabled())
        return gm.forward

    handed: list[bool] = [True]
    torch._dynamo.reset()
    fast = torch.compile(sine, backend=backend)
    with compile_lens.watch() as watched:
        fast(torch.ones(8))
        with torch.no_grad():
            fast(torch.ones(8))
        fast(torch.ones(6))  # the slow compile
    assert handed == [True, True, False, True]
    again = [c for c in watched.causes if c.kind == "recompile"]
    assert [cause.count for cause in again] == [1, 1], "two facts"
    assert again[0].seconds > 0.5 and words.because(again[0]).startswith("x.size(0) was 8, now 6")
    assert words.because(again[1]).startswith("grad_mode was True, now False")
    assert "mark_dynamic" in words.advice(again[0])


ASYNC = """
import asyncio, torch
async def co(x):
    y = x.sin()
    await asyncio.sleep(0)
    return y.cos()
compiled = torch.compile(co, backend="eager")
def program():
    try:
        asyncio.run(compiled(torch.ones(3)))
    except (AssertionError, ValueError):  # torch cannot go on in a coroutine, which is not what is asked here
        pass
"""


@pytest.mark.exhaustive
def test_a_break_in_python_s_library_is_told_with_the_line_of_the_program_that_plain_torch_logs(
    tmp_path: Path,
) -> None:
    (tmp_path / "waits.py").write_text(ASYNC, encoding="utf-8")
    env = {**os.environ, "TORCH_LOGS": "graph_breaks"}
    plain = [sys.executable, "-c", "import waits; waits.program()"]
    log = subprocess.run(plain, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300).stderr
    stack = re.findall(r'__graph_breaks\]   File "([^"]+)", line (\d+), in', log)
    assert [Path(file).name for file, _ in stack[-2:]] == ["waits.py", "tasks.py"], log[-3000:]
    asked = (
        "import waits, compile_lens\n"
        "with compile_lens.watch() as watched: waits.program()\n"
        "(one,) = (c for c in watched.causes if c.kind == 'graph break')\n"
        "print(one.caller.file, one.caller.line, one.place.file, one.place.line)"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == [*stack[-2], *stack[-1]]
