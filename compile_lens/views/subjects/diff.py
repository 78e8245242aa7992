"""The Document of a difference between two captures: first the cause, then each level with changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compile_lens.record.difference import ADDED, LEVELS, REMOVED, Change, DifferenceRecord
from compile_lens.record.figures import MODELLED

from ..document import Block, Document, Entries, Entry, Finding, Prose
from ..words.quantities import bytes_in_short, memory_in_short, plural

SAME = "Nothing differs: the code is the same, whatever names and places changed."

SAME_IN_PART = "No difference was seen. What the records do not hold was not compared."
"""Replaces ``SAME`` if a record lacks a stage, a claim or a setting."""

NO_FIGURE = "launches and bytes are the same"

UNEXPLAINED = (
    "The records do not say why: all that was requested and the graphs are the same. What differs first:"
)

MARKS = {ADDED: "+", REMOVED: "−"}
"""Signs of kinds of changes; all other kinds have ``~``."""

FOLDED = ("saved", "code", "guards")
"""Levels that follow from the levels above them; they are folded on a page."""

FACTS = 12
"""Maximum facts below one change in a short listing."""

LINES = 4
"""Maximum Python lines beside one change."""

UNITS: Mapping[str, Callable[[int], str]] = {
    "bytes": bytes_in_short,
    "peak": memory_in_short,
    "saved": memory_in_short,
}
"""Formatters of figures in bytes: units of 1,000 for moved bytes, of 1,024 for memory."""


def document(diff: DifferenceRecord) -> Document:
    """Return the Document of a difference."""
    verdict, *rest = summary(diff)
    findings = []
    for level, changes in levels(diff):
        entries = Entries(tuple(map(_entry, changes)), "change", f"difference.at({level!r})", listed=True)
        title, fact = f"{level}: {LEVELS[level]}", plural(len(changes), "change")
        findings.append(Finding(level, title, "", fact, sections=(entries,), beside=level not in FOLDED))
    if diff.unknown:
        findings.append(
            Finding("unknown", "not compared", "", sections=(Prose("", diff.unknown),), open=True)
        )
    state = "partial" if diff or diff.unknown else "compiled"
    return Document(
        "difference", heading(diff), state, verdict, remarks=tuple(rest), findings=tuple(findings)
    )


def _entry(change: Change) -> Entry:
    head, where = f"{mark(change)} {figure(change)}", places(change)
    if change.level == "code":
        return Entry(head, where, code=Block("", "\n".join(change.facts), "diff") if change.facts else None)
    if change.level == "guards":  # torch's own texts, of several lines each
        return Entry(head, where, whole="\n".join(change.facts))
    return Entry(head, where, lines=tuple(("", fact) for fact in change.facts))


def heading(diff: DifferenceRecord) -> str:
    """Return the names of the two captures, followed by the facts that both have."""
    if diff.a == diff.b:
        return f"{diff.a}: what changed"
    (a, *of_a), (b, *of_b) = diff.a.split(", "), diff.b.split(", ")
    if of_a and of_a == of_b:
        return ", ".join((f"{a} → {b}", *of_a))
    return f"{diff.a} → {diff.b}"


def levels(diff: DifferenceRecord) -> list[tuple[str, tuple[Change, ...]]]:
    """Return the levels with changes, causes before effects, and their changes."""
    return [(level, changes) for level in LEVELS if (changes := diff.at(level))]


def amount(diff: DifferenceRecord) -> str:
    """Return the number of changes and levels in a few words."""
    if not diff:
        return SAME_IN_PART if diff.unknown else SAME
    return f"{plural(len(diff.changes), 'change')} at {plural(len(levels(diff)), 'level')}"


def summary(diff: DifferenceRecord, most: int = 3) -> tuple[str, ...]:
    """Return at most ``most`` causes, a line each, the figures that they change, and the fusion that explains these."""
    if not diff:
        return (amount(diff),)
    more = len(diff.causes) - most
    lines = [figure(c) if c.name else sentence(c) for c in diff.causes[:most]]
    if diff.unexplained:
        lines = [UNEXPLAINED, *lines, *([f"and {more:,} more"] if more > 0 else [])]
    elif more > 0:
        lines.append(f"and {plural(more, 'more cause')}")
    figures = [figure(change) for change in diff.at("figures") if change not in diff.causes]
    if figures or not diff.at("figures"):
        lines.append(f"so: {', '.join(figures) or NO_FIGURE}")
    lost = [c for c in diff.at("rewrites") if c.kind == REMOVED and c not in diff.causes]
    fusion = [c for c in diff.at("fusion") if c not in diff.causes]
    lines += map(sentence, lost[:1])
    return (*lines, *("; ".join((change.text, *change.facts[:1])) for change in fusion[:1]))


def sentence(change: Change) -> str:
    """Return a change with its Python lines."""
    return f"{change.text} {places(change)}".rstrip()


def places(change: Change) -> str:
    """Return the Python lines of a change: ``← model.py:7: y = x.sin() | model.py:8: return y``; ``""`` for none."""
    left = len(change.lines) - LINES
    more = f" and {plural(left, 'more line')}" if left > 0 else ""
    return f"← {' | '.join(change.lines[:LINES])}{more}" if change.lines else ""


def figure(change: Change) -> str:
    """Return ``launches 1 → 3 (+2)``, ``peak 11.7 KiB → 23.4 KiB``; the text of a change without two numbers."""
    known = numbers(change)
    if known is None:
        return change.text
    name, before, after, more = known
    return f"{name} {before} → {after} ({more}{', modelled' if change.basis == MODELLED else ''})"


def numbers(change: Change) -> tuple[str, str, str, str] | None:
    """Return the name of a figure, its two values and their difference as text; ``None`` if a value is unknown."""
    if change.before is None or change.after is None:
        return None
    words = UNITS.get(change.name, "{:,}".format)
    more = change.after - change.before
    sign = "-" if more < 0 else "+"
    return change.name.replace("_", " "), words(change.before), words(change.after), sign + words(abs(more))


def mark(change: Change) -> str:
    """Return the sign for the kind of a change."""
    return MARKS.get(change.kind, "~")
