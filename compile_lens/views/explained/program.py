"""Which graphs a program became, where Python ran instead, and what was compiled again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compile_lens.record.capture import Record
from compile_lens.record.graph import Frame

from ..words import outcome, outline
from .kernels import ended, hints, lines, recompiled
from .model import Explained, few


def compilations(capture: Record, again: bool = False) -> Explained:
    """Every compilation, and what made several of them. ``again``: only those that are recompiles."""
    found = [
        f"{c.id}: {outline.readable(c.function)}{_place(c.file, c.line)}"
        for c in capture.compilations
        if c.recompile_reasons or not again
    ]
    if again:
        why = few(recompiled(capture), "reasons", "capture.recompiles")
        tried = (of_guard(guard) for one in capture.recompiles for guard in one.guards)
        return Explained(
            few(found, "compilations", "capture.compilations"), why, tuple(dict.fromkeys(filter(None, tried)))
        )
    why = few(ended(capture), "reasons", "capture.breaks, capture.recompiles")
    return Explained(few(found, "compilations", "capture.compilations"), why, tuple(hints(capture)))


def of_guard(guard: str) -> str:
    """What to try so that a function is not compiled again for a guard that failed; ``""`` where nothing is known."""
    if size := _SIZE.search(guard):
        return (
            f"give {size[1]} one size, mark the dimension before the first call (torch._dynamo.mark_dynamic(tensor, "
            f"{size[2]})), or compile with dynamic=True"
        )
    if _KIND.search(guard):
        return "call it with one kind of tensor, or compile one function for each"
    return ""


_SIZE = re.compile(r"tensor '([^']+)' (?:size|stride) mismatch at index (\d+)")
_KIND = re.compile(r"tensor '[^']+' (?:dtype|rank|requires_grad|dispatch key set) mismatch")


def left_to_python(capture: Record) -> Explained:
    """Where Python ran a part of the program, and why."""
    every = outcome.eager(capture)
    found = [f"{e.head}{lines(e.ending.frames[-1:])}" for e in every]
    return Explained(
        few(found, "places", "capture.breaks, capture.skipped"),
        few(_reasons(capture), "reasons", "capture.breaks, capture.skipped"),
        tuple(dict.fromkeys(hints(capture))),
    )


def _reasons(capture: Record) -> Iterator[str]:
    for one in outcome.eager(capture):
        said = outcome.reason(one.ending)
        yield ": ".join(filter(None, (said.what, said.why.partition("\n")[0], one.why)))


def _place(file: str, line: int) -> str:
    return f" ← {outline.place(Frame(file, line, ''))}" if file else ""
