"""The finding about the calls of a capture: the compilations of each, their reasons, and the code it ran."""

from __future__ import annotations

from compile_lens.record.breaks import CapturedCall
from compile_lens.record.capture import Record

from ..document import NAME, NUMBER, TEXT, Finding, Row, Table, cut
from ..words import quantities
from ..words.compile_reasons import compile_reason

KEY, TITLE = "calls", "Calls"
INTRO = "The calls in their order: what was compiled in each and why, and which compiled graphs it ran."
WHERE = "capture.calls"
CALLS = 1_000


def calls(capture: Record) -> Finding | None:
    """Return the finding; ``None`` if the capture has one call."""
    if not capture.calls:
        return None
    numbers = {c.id: i for i, c in enumerate(capture.compilations)}
    every, brief = [], []
    for number, call in enumerate(capture.calls, 1):
        why = [
            f"{id}: {compile_reason(capture, numbers[id]).short.partition(': ')[2]}"
            for id in call.compiled
            if id in numbers
        ]
        why += call.skipped
        if capture.failure is not None and number == len(capture.calls):
            why.append(f"it failed: {capture.failure.type}")
        given, compiled, ran = ", ".join(call.inputs), ", ".join(call.compiled), ", ".join(call.executed)
        every.append(
            Row((str(number), given, compiled or "nothing", ran or "no compiled graph", "; ".join(why)))
        )
        brief.append(f"call {number} ({given}): {_outcome(call, why)}")
    rows, left = cut(every, CALLS)
    head = ("call", "inputs", "compiled", "ran", "because")
    table = Table("", head, (NUMBER, NAME, NAME, NAME, TEXT), rows, left=left, where=WHERE)
    again = quantities.plural(len(capture.recompiles), "recompile")
    fact = f"{quantities.plural(len(capture.calls), 'call')}, {again}"
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, (table,), badge=str(len(capture.calls)))


def _outcome(call: CapturedCall, why: list[str]) -> str:
    if not call.executed:
        return "; ".join(("no compiled graph ran", *why))
    if not call.compiled:
        return "; ".join((f"nothing was compiled, it ran {', '.join(call.executed)}", *why))
    old = [id for id in call.executed if id not in call.compiled]
    return "; ".join((*why, *([f"it also ran {', '.join(old)}"] if old else [])))
