"""What every view of a difference says, in the same order and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compile_lens.record.difference import ADDED, LEVELS, REMOVED, Change, DifferenceRecord
from compile_lens.record.figures import MODELLED
from compile_lens.views.words.quantities import bytes_in_short, memory_in_short
from compile_lens.views.words.quantities import plural as plural

SAME = "Nothing differs: the code is the same, whatever names and places changed."

MARKS = {ADDED: "+", REMOVED: "−"}

FOLDED = ("saved", "code", "guards")
"""Levels that follow from those above, and are folded on a page."""

FACTS = 12
"""Facts that stand below one change where there is room for few."""

LINES = 4
"""Python lines that stand beside one change."""


@dataclass(frozen=True)
class Part:
    """A level and its changes."""

    level: str
    title: str
    changes: tuple[Change, ...]


def heading(found: DifferenceRecord) -> str:
    """What is compared; what both have in common behind their names is said once."""
    if found.a == found.b:
        return f"{found.a}: what changed"
    (a, *of_a), (b, *of_b) = found.a.split(", "), found.b.split(", ")
    if of_a and of_a == of_b:
        return ", ".join((f"{a} → {b}", *of_a))
    return f"{found.a} → {found.b}"


def parts(found: DifferenceRecord) -> list[Part]:
    """The levels at which something differs, causes before effects."""
    return [
        Part(level, f"{level}: {what}", changes)
        for level, what in LEVELS.items()
        if (changes := found.at(level))
    ]


def amount(found: DifferenceRecord) -> str:
    """How much differs, in a few words."""
    if not found:
        return SAME
    return f"{plural(len(found.changes), 'change')} at {plural(len(parts(found)), 'level')}"


def summary(found: DifferenceRecord, most: int = 3) -> tuple[str, ...]:
    """The cause, what it came to, and what is apart or together for it, a line each."""
    if not found:
        return (SAME,)
    return (*causes(found, most), *came_to(found), *apart(found))


def came_to(found: DifferenceRecord) -> tuple[str, ...]:
    """The figures that follow from the causes, in one line; none where each is a cause itself."""
    told = [figure(change) for change in found.at("figures") if change not in found.causes]
    return (f"so: {', '.join(told) or NO_FIGURE}",) if told or not found.at("figures") else ()


NO_FIGURE = "no launch and no byte is another"

UNEXPLAINED = (
    "The records do not say why: all that was asked for and the graphs are the same. What differs first:"
)


def causes(found: DifferenceRecord, most: int = 3) -> tuple[str, ...]:
    """The first causes, a line each, and how many more there are; that there is none, where they are effects."""
    more = len(found.causes) - most
    shown = (figure(c) if c.name else told(c) for c in found.causes[:most])
    left = [f"and {plural(more, 'more cause')}"] if more > 0 else []
    if found.unexplained:
        return (UNEXPLAINED, *shown, *([f"and {more:,} more"] if more > 0 else []))
    return (*shown, *left)


def apart(found: DifferenceRecord) -> tuple[str, ...]:
    """What no longer matches for it, and what is apart or together."""
    lost = [c for c in found.at("rewrites") if c.kind == REMOVED and c not in found.causes]
    others = [c for c in found.at("fusion") if c not in found.causes]
    return (*map(told, lost[:1]), *("; ".join((change.text, *change.facts[:1])) for change in others[:1]))


def told(change: Change) -> str:
    """A change with its Python lines."""
    some = change.lines[:LINES]
    left = len(change.lines) - LINES
    more = f" and {plural(left, 'more line')}" if left > 0 else ""
    return f"{change.text} ← {' | '.join(some)}{more}" if some else change.text


def figure(change: Change) -> str:
    """``launches 1 → 3 (+2)``, bytes in the unit that they have on every page: ``peak 11.7 KiB → 23.4 KiB``."""
    name = change.name.replace("_", " ")
    if change.before is None or change.after is None:
        return change.text
    how = ", modelled" if change.basis == MODELLED else ""
    said = UNITS.get(change.name, "{:,}".format)
    more = change.after - change.before
    return f"{name} {said(change.before)} → {said(change.after)} ({'-' if more < 0 else '+'}{said(abs(more))}{how})"


UNITS: Mapping[str, Callable[[int], str]] = {
    "bytes": bytes_in_short,
    "peak": memory_in_short,
    "saved": memory_in_short,
}
"""How figures of bytes are said: what is moved by thousands, what is held by 1,024."""


def mark(change: Change) -> str:
    """A sign for what happened."""
    return MARKS.get(change.kind, "~")


def unknown(found: DifferenceRecord) -> str:
    """The title of what could not be compared; ``""`` if there is nothing."""
    return "not compared" if found.unknown else ""
