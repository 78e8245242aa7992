"""Figures of a function for the leaderboard: launches, bytes moved, and the time of a call on this machine."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from ...record.figures import AtLeast
from ..checking import judged
from ..exercise import EXACTLY, UNBROKEN, Exercise, Need
from ..reference import captured, made
from ..wording import message

WARM_UP_CALLS, TIMED_CALLS = 5, 51
"""Numbers of untimed warm-up calls and of timed calls."""


def measured(wanted: Exercise, function: Any) -> tuple[tuple[float | None, ...], list[str]]:
    """Return launches, bytes and microseconds, or the reasons why a function has no place on the leaderboard.

    It has a place if it returns the same numbers as the exercise's own function and is captured as one graph without
    breaks, since the counts leave out eager work.
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
    """Return the time of the fastest compiled call; None if compiling or running it fails.

    Other load only makes calls slower, so the minimum is the least disturbed figure; the median would depend on what
    else the machine was doing.
    """
    import torch

    torch.compiler.reset()
    compiled = torch.compile(function)
    times = []
    try:
        with torch.no_grad():
            for _ in range(WARM_UP_CALLS + TIMED_CALLS):
                start = time.perf_counter()
                compiled(*inputs)
                times.append(time.perf_counter() - start)
    except Exception:  # such as a missing C++ compiler
        return None
    return 1e6 * min(times[WARM_UP_CALLS:])
