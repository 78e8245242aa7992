"""Numbers of a program that become symbols, even if no graph takes them, against plain torch in another process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numbered
import pytest
import torch
from full_text import full

import compile_lens
from compile_lens import versions
from compile_lens.record.messages import plain_source
from compile_lens.record.program import FrameEvaluation
from compile_lens.views.words import program as words
from compile_lens.views.words.compile_reasons import compile_reason

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of torch's structured trace, and its log of symbols."""
    folder = tmp_path_factory.mktemp("trace")
    environment = {**os.environ, "TORCH_TRACE": str(folder), "TORCH_LOGS": "dynamic"}
    ran = subprocess.run(
        [sys.executable, numbered.__file__], env=environment, capture_output=True, text=True, check=True
    )
    return folder, ran.stderr


def forms(function: Any, numbers: tuple[float, ...], **options: Any) -> int:
    """Count the cache entries of a function in plain torch."""
    torch._dynamo.reset()
    call = torch.compile(function, backend="eager", **options)
    for number in numbers:
        call(torch.ones(3), number)
    return len(torch._C._dynamo.eval_frame._debug_get_cache_entry_list(function.__code__))


def again(visits: tuple[FrameEvaluation, ...]) -> list[FrameEvaluation]:
    return [visit for visit in visits if visit.recompilation is not None]


@pytest.mark.full
@pytest.mark.parametrize("name", numbered.PROGRAMS)
def test_a_number_that_no_graph_takes_became_a_symbol(name: str, plain: tuple[Path, str]) -> None:
    function, numbers = numbered.PROGRAMS[name]
    if versions.torch_version() >= (2, 13):  # earlier versions do not log this
        assert plain[1].count("marking L['step'] as dynamic") == len(numbered.PROGRAMS)
    with compile_lens.watch() as program:
        numbered.run(name)
    (visit,) = [v for v in again(program.evaluations) if v.dynamic]
    (symbol,) = visit.dynamic
    logged = re.findall(r"create_symbol (\w+) = (\S+) for L\['step'\]", plain[1])
    assert len(logged) >= len(numbered.PROGRAMS)
    assert symbol.source == "L['step']" and symbol.observed == repr(numbers[1])
    assert symbol.symbol in {one for one, value in logged if float(value) == numbers[1]}
    found = visit.recompilation
    assert found is not None and found.dynamic == visit.dynamic
    assert words.again(found).startswith(
        f"step was {numbers[0]}, now {numbers[1]}; step became a symbol (torch's {symbol.symbol})"
    )
    tried = words.to_try(found)
    assert "the new variant takes other values; torch.compile(dynamic=True)" in tried
    assert forms(function, tuple(numbers)) == 2, "the second form takes all that come after it"
    assert forms(function, tuple(numbers), dynamic=True) == 1, "what is advised helps"


@pytest.mark.full
def test_a_log_says_which_numbers_became_symbols_and_what_they_were(plain: tuple[Path, str]) -> None:
    program = compile_lens.import_trace(plain[0])
    told = [words.again(v.recompilation) for v in again(program.evaluations) if v.recompilation is not None]
    for _, numbers in numbered.PROGRAMS.values():
        begins = f"step was {numbers[0]}, now {numbers[1]}; step became "
        assert [one for one in told if one.startswith(begins)], told
    known = {(plain_source(d.source), d.observed) for visit in program.evaluations for d in visit.dynamic}
    assert known == {("step", repr(numbers[1])) for _, numbers in numbered.PROGRAMS.values()}


def test_a_number_that_a_line_asks_for_is_a_form_for_each_answer() -> None:
    numbers = (5, 200, 300)
    assert forms(numbered.branched, numbers, dynamic=True) == 2 and forms(numbered.branched, numbers) == 2
    torch._dynamo.reset()
    call = torch.compile(numbered.branched, backend="eager")
    with compile_lens.watch() as program:
        for number in numbers:
            call(torch.ones(3), number)
    (visit,) = again(program.evaluations)
    assert visit.recompilation is not None
    line = numbered.branched.__code__.co_firstlineno + 2
    tried = words.to_try(visit.recompilation)
    assert (
        tried
        == f"numbered.py:{line} depends on the value, so that each result needs a variant: decide it outside"
    )


def test_a_capture_says_which_number_a_form_was_made_again_for() -> None:
    calls = [(torch.ones(3), number) for number in (2.0, 3.0)]
    made = compile_lens.capture(numbered.printed, calls=calls)
    (told,) = [why for why in (compile_reason(made, i) for i in range(len(made.compilations))) if why.again]
    assert told.short.startswith("call 2: step 2.0 → 3.0")
    assert f"L['step'] = {made.compilations[-1].dynamic[0].symbol} (seen: 3.0)" in " ".join(
        full(made).split()
    )


def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


def test_a_number_of_many_digits_is_told_whole() -> None:
    one, two = 2.035917043685913, 0.1234567890123456
    torch._dynamo.reset()
    call = torch.compile(scaled, backend="eager")
    with compile_lens.watch() as program:
        call(torch.ones(3), one)
        call(torch.ones(3), two)
    (visit,) = again(program.evaluations)
    found = visit.recompilation
    assert found is not None and found.change is not None
    assert (found.change.old, found.change.new) == (repr(one), repr(two)), (
        "its digits were taken for an address"
    )
    assert words.to_try(found) and "…" not in words.again(found)
