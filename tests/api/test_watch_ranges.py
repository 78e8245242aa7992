"""Sizes and numbers that a cache entry accepts, against the cache entries of plain torch in another process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import ranged
import torch
from full_text import full

import compile_lens
from compile_lens import import_trace
from compile_lens.record.compilation import DynamicDim
from compile_lens.record.messages import plain_source
from compile_lens.record.program import ProgramRecord
from compile_lens.views.words import program as words
from compile_lens.views.words.accepted_values import takes

pytestmark = pytest.mark.torch


def ran(*arguments: str, **environment: str) -> str:
    command = [sys.executable, ranged.__file__, *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True, timeout=300
    ).stdout


@pytest.fixture(scope="module")
def fits() -> dict[str, list[bool]]:
    """For each program, whether plain torch has a cache entry for each of the calls tried."""
    return dict(json.loads(ran("fits")))


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> ProgramRecord:
    """Torch's structured trace of the same programs."""
    folder = tmp_path_factory.mktemp("trace")
    ran(TORCH_TRACE=str(folder))
    return import_trace(folder)


def watched(name: str) -> tuple[DynamicDim, ...]:
    with compile_lens.watch() as program:
        ranged.run(name)
    return of(program, name)


def of(program: ProgramRecord, name: str) -> tuple[DynamicDim, ...]:
    """The symbols of a function's last cache entry."""
    (frame,) = [frame for frame in program.frames if frame.function == name]
    return frame.evaluations[-1].dynamic


def told(dim: DynamicDim, value: int) -> bool:
    """Return True if the text says that a cache entry accepts a value, with all other sizes as observed."""
    said = takes(dim)
    found = re.fullmatch(
        r"for any (?:size|int)"
        r"(?: (?:from (?P<low>-?\d+) to (?P<high>-?\d+)|of at least (?P<least>-?\d+)|of at most (?P<most>-?\d+))?"
        r"(?:(?: and )?other than (?P<other>\d+))?)?(?: where (?P<where>.*))?",
        said,
    )
    assert found, said
    known = {name: int(number) for name, number in found.groupdict().items() if number and name != "where"}
    least = known.get("low", known.get("least", value))
    most = known.get("high", known.get("most", value))
    ends = least <= value <= most and value != known.get("other")
    where = (found["where"] or "True").replace(plain_source(dim.source), str(value))
    return ends and bool(eval(where))


@pytest.mark.full
@pytest.mark.parametrize("name", ranged.PROGRAMS)
def test_a_form_takes_what_is_said(name: str, fits: dict[str, list[bool]]) -> None:
    agrees(watched(name), fits[name])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ranged.PROGRAMS)
def test_of_a_log_as_well(name: str, fits: dict[str, list[bool]], logged: ProgramRecord) -> None:
    agrees(of(logged, name), fits[name])


def agrees(dims: tuple[DynamicDim, ...], fits: list[bool]) -> None:
    assert {plain_source(d.source) for d in dims} >= {"x.size(0)"}
    assert True in fits and False in fits
    for (rows, step), fit in zip(ranged.TRIED, fits):
        given = {"x.size(0)": rows, "step": step}
        assert all(told(d, given[plain_source(d.source)]) for d in dims) is fit, (rows, step, dims)


def test_a_record_from_before_says_that_it_is_not_known() -> None:
    assert takes(DynamicDim("L['x'].size(0)", "s0", 4)) == "with guards that are not known"


def test_what_became_a_symbol_is_told_with_its_range(tmp_path: Path) -> None:
    with compile_lens.watch() as program:
        ranged.run("branches")
    pages = (
        program.save(tmp_path / f"program.{form}").read_text(encoding="utf-8") for form in ("md", "html")
    )
    for said in (full(program), *pages):
        plain = " ".join(re.sub(r"<[^>]+>", "", said).split())
        assert "for any size from 4 to 1024" in plain and "for any int of at most 99" in plain
    (again,) = program.recompiles
    assert again.recompilation is not None
    assert "for any size from 4 to 1024; step became" in words.again(again.recompilation)


def test_sizes_that_are_one_symbol_share_their_guards() -> None:
    def f(x: Any, y: Any) -> Any:
        return x + y if x.size(0) < 30 else x

    torch._dynamo.reset()
    call = torch.compile(f, backend="eager")
    with compile_lens.watch() as program:
        for rows in (3, 4):
            call(torch.ones(rows), torch.ones(rows))
    x, y = program.evaluations[-1].dynamic
    assert takes(x) == "for any size from 2 to 29 where y.size(0) == x.size(0)"
    assert takes(y) == "for any size where y.size(0) == x.size(0) and 2 <= x.size(0) and x.size(0) <= 29"


def late(x: torch.Tensor) -> torch.Tensor:
    n = len("abc")
    return x * n


def test_a_size_that_no_line_asked_for_names_the_first_use_of_the_tensor() -> None:
    torch._dynamo.reset()
    call = torch.compile(late, backend="eager", dynamic=False)
    with compile_lens.watch() as program:
        for rows in (3, 4):
            call(torch.ones(rows))
    entry = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(late.__code__)[-1]
    said = next(part for part in str(entry.guard_manager).splitlines() if "check_tensor(L['x']" in part)
    line = late.__code__.co_firstlineno + 2
    assert f"test_watch_ranges.py:{line} in late" in said, "torch's own word of the same guard"
    text = " ".join(full(program).split())
    assert f"none; first used at test_watch_ranges.py:{line}" in text
    (again,) = program.recompiles
    assert again.recompilation is not None and again.recompilation.failed_guards[0].line is None
    assert "depends on the size" not in words.to_try(again.recompilation)
