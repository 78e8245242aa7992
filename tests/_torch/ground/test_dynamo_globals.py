"""Dynamo's additions to a program's globals are removed with the capture, even if Dynamo gave up an attempt."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
import torch._dynamo.utils as utils

from compile_lens import capture

pytestmark = pytest.mark.torch


def inner(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


def breaking(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return inner(y) * 2


def left() -> tuple[list[str], int, Any]:
    gc.collect()
    names = sorted(n for n in globals() if n.startswith(("__builtins_dict__", "__compiled_fn", "__resume")))
    return names, utils.CleanupManager.count, dict(getattr(utils, "_cleanup_owners", {}))


@pytest.mark.full
def test_a_capture_of_a_function_that_breaks_leaves_no_globals() -> None:
    before = left()
    for _ in range(2):
        capture(breaking, torch.rand(4))
        assert left() == before


@pytest.mark.exhaustive
def test_globals_of_the_programs_own_code_stay() -> None:
    compiled = torch.compile(breaking, backend="eager")
    compiled(torch.rand(4))
    before = left()
    capture(breaking, torch.rand(4))
    assert left() == before
    compiled(torch.rand(4))
