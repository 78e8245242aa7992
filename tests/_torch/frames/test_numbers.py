"""Counts of compiles and of graph breaks are torch's own: those of a process without compile_lens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import broken_programs
import pytest
import torch
from full_text import full

from compile_lens import capture
from compile_lens.views.words.outcome import verdict


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Torch's own report from another process."""
    path = os.path.abspath(broken_programs.__file__)
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, timeout=300)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.full
@pytest.mark.parametrize("program", broken_programs.PROGRAMS, ids=lambda p: p.__name__)
def test_ids_and_breaks_are_those_of_a_plain_process(program: Any, plain: dict[str, Any]) -> None:
    record = capture(program, torch.rand(4))
    theirs = plain[program.__name__]
    assert [c.id for c in record.compilations if c.graphs] == theirs["ids"]
    assert len(record.breaks) == theirs["breaks"]


@pytest.mark.full
def test_a_function_that_is_skipped_leaves_a_gap(plain: dict[str, Any]) -> None:
    assert plain["around_the_loop"]["ids"] == ["0/0", "2/0"]


def test_one_line_that_breaks_two_frames_is_told_as_one_place() -> None:
    said = verdict(capture(broken_programs.around_the_loop, torch.rand(4)))
    assert "2 graph breaks at 1 place, 1 function skipped" in said


@pytest.mark.full
@pytest.mark.parametrize("target", [None, "h100"])
def test_what_a_tensor_holds_is_no_size(target: str | None) -> None:
    """Dynamo has a symbol for each integer in a CPU tensor, such as the batch counter of a batch norm. A variant serves
    any value of it, which needs no mention; on a device there is no such symbol."""
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    record = capture(module, torch.rand(2, 3, 8, 8), **({"target": target} if target else {}))
    assert record.compilations[0].dynamic == ()
    assert "num_batches_tracked.item()" not in full(record)


def test_what_a_tensor_holds_is_told_where_a_guard_asks_for_it() -> None:
    def asks(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        k = n.item()
        return x * k if k > 3 else x - k

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        record = capture(asks, torch.rand(4), torch.tensor(7))
    assert [(one.source, one.hint) for one in record.compilations[0].dynamic] == [("L['n'].item()", 7)]
