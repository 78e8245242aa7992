"""Reserved stack space: no loop in a compile requests memory from the system at every call."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch._inductor import config

from compile_lens import capture
from compile_lens._torch.ground.python_runtime import with_stack_room

resource = pytest.importorskip("resource")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="this Python keeps frames one by one"),
]

CALLS = 500


def leaf() -> int:
    return 1


def deep(depth: int) -> None:
    if depth:
        deep(depth - 1)
    else:
        for _ in range(CALLS):
            leaf()


def worst() -> int:
    """The largest number of page faults in a loop of calls, over many stack depths."""
    found = []
    for depth in range(400):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        deep(depth)
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return max(found)


def test_somewhere_each_call_costs_a_page_and_with_room_none_does() -> None:
    assert worst() >= CALLS
    assert with_stack_room(worst)() < CALLS / 4


def test_a_compile_has_room() -> None:
    seen: list[int] = []

    def look(graph: Any) -> None:
        seen.append(worst())

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    with config.patch(post_grad_custom_post_pass=look):
        capture(fn, torch.rand(8))
    assert seen and max(seen) < CALLS / 4


def test_what_is_called_is_the_same() -> None:
    def add(a: int, *, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert with_stack_room(add)(1, b=3) == 4 and with_stack_room(add)(1) == 3
    assert with_stack_room(add).__name__ == "add" and with_stack_room(add).__doc__ == "Adds."
    with pytest.raises(ZeroDivisionError):
        with_stack_room(lambda: 1 // 0)()
