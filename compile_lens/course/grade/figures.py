"""Figures of a function for the class's table: launches, bytes moved, and the time of a call on this machine."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from ...record.figures import AtLeast
from ..checking import judged
from ..exercise import EXACTLY, UNBROKEN, Exercise, Need
from ..reference import captured, made
from ..wording import message

WARM, CALLS = 5, 51
"""Calls before the clock counts, and calls that count."""


def measured(wanted: Exercise, function: Any) -> tuple[tuple[float | None, ...], list[str]]:
    """Return launches, bytes and microseconds; or why a function has no place in the table.

    It has a place if its numbers are those of the exercise's own function, and all of it is one graph: what runs
    eagerly is in no count.
    """
    needs = (*UNBROKEN, Need("graphs", EXACTLY, 1))
    _, reasons = judged(dataclasses.replace(wanted, needs=needs), function)
    if reasons:
        return (), list(reasons)
    total = captured(function, wanted.calls).ledger.total
    launches, moved = total.launches, total.bytes_after
    if launches is None or moved is None or isinstance(launches, AtLeast) or isinstance(moved, AtLeast):
        return (), [message("bytes not known")]
    return (int(launches), int(moved), _microseconds(function, made(wanted.inputs))), []


def _microseconds(function: Any, inputs: list[Any]) -> float | None:
    """Return the time of the fastest compiled call; None where it cannot be built.

    The fastest, since whatever else a machine does makes a call only slower: of a class that is graded in parallel the
    median says who was measured beside whom.
    """
    import torch

    torch.compiler.reset()
    compiled = torch.compile(function)
    times = []
    try:
        with torch.no_grad():
            for _ in range(WARM + CALLS):
                start = time.perf_counter()
                compiled(*inputs)
                times.append(time.perf_counter() - start)
    except Exception:  # such as no C++ compiler
        return None
    return 1e6 * min(times[WARM:])
