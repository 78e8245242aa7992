"""Captures of the zoo's entries, each made once per process; the tests that use them share a group and a process."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import state
import torch
import zoo
from running import run
from state import diff, snapshot
from zoo import Entry, mismatch, seeded

from compile_lens import CaptureError
from compile_lens.results.capture import Capture

ENTRIES = zoo.entries()


@dataclass(frozen=True)
class Outcome:
    """A captured call and the same call made eagerly."""

    capture: Capture
    differences: list[str]
    state: list[str]
    inputs: list[str]
    error: CaptureError | None = None


def _eager(entry: Entry) -> tuple[Any, list[Any]]:
    call = entry.make()
    # Functions that are already compiled run as plain Python in the reference.
    with seeded(), entry.context(), torch.compiler.set_stance("force_eager"):
        result = call()
    return result, call.touched()


def observe(entry: Entry, tolerance: str, **options: Any) -> Outcome:
    """Return the outcome of one call, captured and made eagerly; ``tolerance`` is passed to ``zoo.mismatch``."""
    expected, expected_touched = ([], []) if entry.fails else _eager(entry)
    call = entry.make()
    held = state.held([call.args, call.kwargs, *call.watch, call.fn, getattr(call.fn, "__self__", None)])
    flags = [state.flags(t) for t in held]
    error, result = None, None
    with seeded(), entry.context():
        before = snapshot()
        try:
            capture, result = run(call.fn, *call.args, kwargs=call.kwargs, **{**entry.options, **options})
        except CaptureError as caught:
            error, capture = caught, caught.capture
        after = snapshot()
    changed = [
        f"{was} became {state.flags(t)}" for t, was in zip(held, flags, strict=True) if was != state.flags(t)
    ]
    differences = []
    if error is None:
        differences += mismatch(expected, result, tolerance)
        differences += mismatch(expected_touched, call.touched(), tolerance, "touched")
    return Outcome(capture, differences, diff(before, after), changed, error)


@functools.cache
def outcome(name: str) -> Outcome:
    """Return the outcome of an entry by its name."""
    entry = next(e for e in ENTRIES if e.name == name)
    return observe(entry, entry.tolerance)
