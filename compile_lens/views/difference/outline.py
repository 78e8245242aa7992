"""What every view of a difference says, in the same order and words."""

from __future__ import annotations

from dataclasses import dataclass

from compile_lens.record.difference import ADDED, LEVELS, REMOVED, Change, DifferenceRecord
from compile_lens.record.figures import MODELLED

SAME = "Nothing differs: the code is the same, whatever names and places changed."

MARKS = {ADDED: "+", REMOVED: "−"}

FOLDED = ("saved", "code", "guards")
"""Levels that follow from those above, and are folded on a page."""

LINES = 4
"""Python lines that stand beside one change."""


@dataclass(frozen=True)
class Part:
    """A level and its changes."""

    level: str
    title: str
    changes: tuple[Change, ...]


def heading(found: DifferenceRecord) -> str:
    """What is compared."""
    if found.a == found.b:
        return f"{found.a}: what changed"
    return f"{found.a} → {found.b}"


def parts(found: DifferenceRecord) -> list[Part]:
    """The levels at which something differs, causes before effects."""
    return [
        Part(level, f"{level}: {what}", changes)
        for level, what in LEVELS.items()
        if (changes := found.at(level))
    ]


def summary(found: DifferenceRecord, most: int = 3) -> tuple[str, ...]:
    """The cause, what it came to, and what is apart or together for it, a line each."""
    if not found:
        return (SAME,)
    lines = [told(change) for change in found.causes[:most]]
    if len(found.causes) > most:
        lines.append(f"and {len(found.causes) - most:,} causes more")
    figures = ", ".join(figure(change) for change in found.at("figures"))
    lines.append(f"so: {figures}" if figures else "so: no count and no byte is another")
    for change in found.at("fusion")[:1]:
        lines.append("; ".join((change.text, *change.facts[:1])))
    return tuple(lines)


def told(change: Change) -> str:
    """A change with its Python lines."""
    some = change.lines[:LINES]
    more = f" and {len(change.lines) - LINES} lines more" if len(change.lines) > LINES else ""
    return f"{change.text} ← {' | '.join(some)}{more}" if some else change.text


def figure(change: Change) -> str:
    """``launches 1 → 3 (+2)``."""
    name = change.name.replace("_", " ")
    if change.before is None or change.after is None:
        return change.text
    how = ", modelled" if change.basis == MODELLED else ""
    return f"{name} {change.before:,} → {change.after:,} ({change.after - change.before:+,}{how})"


def mark(change: Change) -> str:
    """A sign for what happened."""
    return MARKS.get(change.kind, "~")


def unknown(found: DifferenceRecord) -> str:
    """The title of what could not be compared; ``""`` if there is nothing."""
    return "not compared" if found.unknown else ""
