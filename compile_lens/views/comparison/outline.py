"""What the pages of a comparison say before it is text, HTML or Markdown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.record.capture import Record
from compile_lens.record.comparison import Column, ComparisonRecord, Difference, Use
from compile_lens.record.compilation import PHASES
from compile_lens.record.kernel import Code
from compile_lens.views.words import stamp
from compile_lens.views.words.launches import counted
from compile_lens.views.words.ledger import compared
from compile_lens.views.words.outcome import state, verdict
from compile_lens.views.words.outline import LANGUAGES, environment, names
from compile_lens.views.words.quantities import plural, printed
from compile_lens.views.words.savings import saving

NOTHING = "—"
"""Where a target has no such phase, or a figure is not known."""


@dataclass(frozen=True)
class Table:
    """Figures of one phase: a row for each, with a cell for each column of the comparison."""

    phase: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Module:
    """The generated module of one compilation and phase, one entry for each column."""

    phase: str
    compilation: str
    codes: tuple[tuple[Column, Code | None], ...]


def heading(comparison: ComparisonRecord) -> str:
    """``f for cpu, h100 and mps``."""
    return f"{comparison.function} for {_and([c.target for c in comparison.columns])}"


def column(one: Column) -> tuple[str, ...]:
    """What a target is, and what became of its code, in short facts."""
    if one.failure:
        return (f"failed: {one.failure}",)
    capture = one.capture
    if capture is None:
        return ("there is no capture",)
    facts = (
        [stamp.device(capture), stamp.of_capture(capture)]
        if capture.target is None
        else [stamp.of_capture(capture)]
    )
    return (*(f for f in dict.fromkeys(facts) if f), verdict(capture))


def may_differ(comparison: ComparisonRecord) -> tuple[str, ...]:
    """What may differ on the real devices, each sentence once with the targets that it is said of."""
    said: dict[str, list[str]] = {}
    for one in comparison.columns:
        if one.capture is not None and one.capture.target is not None:
            for words in stamp.of_target(one.capture.target):
                said.setdefault(words, []).append(one.target)
    return tuple(f"{', '.join(targets)}: {words}" for words, targets in said.items())


def made_with(comparison: ComparisonRecord) -> tuple[str, ...]:
    """Where the captures were made, where that is the same for all of them."""
    said = [environment(c) for c in comparison.captures.values()]
    return tuple(fact for fact in said[0] if all(fact in other for other in said)) if said else ()


def tables(comparison: ComparisonRecord) -> tuple[Table, ...]:
    """Kernels, launches and bytes side by side, a table for each phase that any target has."""
    captures = [c.capture if not c.failure else None for c in comparison.columns]
    found = []
    for phase in PHASES:
        if not any(capture is not None and _has(capture, phase) for capture in captures):
            continue
        columns = [figures_of(capture, phase) for capture in captures]
        titles = list(columns[0])
        found.append(Table(phase, tuple((t, tuple(c[t] for c in columns)) for t in titles)))
    return tuple(found)


def _has(capture: Record, phase: str) -> bool:
    return any(phase in c.phases for c in capture.compilations)


def figures_of(capture: Record | None, phase: str) -> dict[str, str]:
    """The figures of one phase of a capture by title, in the order of the compiler."""
    return {title: printed(cell) for title, cell in compared(capture, phase).items()}


def modules(comparison: ComparisonRecord) -> tuple[Module, ...]:
    """The generated modules, those of the same phase and compile id side by side."""
    ids = list(dict.fromkeys(c.id for capture in comparison.captures.values() for c in capture.compilations))
    found = []
    for phase in PHASES:
        for cid in ids:
            codes = tuple((one, _code(one, phase, cid)) for one in comparison.columns)
            if any(code is not None for _, code in codes):
                found.append(Module(phase, cid, codes))
    return tuple(found)


def _code(one: Column, phase: str, cid: str) -> Code | None:
    if one.capture is None or one.failure:
        return None
    found = next((c for c in one.capture.compilations if c.id == cid), None)
    return found.code.get(phase) if found is not None else None


def use(one: Use) -> str:
    """A kernel in a cell: ``triton_per_fused_0, Triton reduction``."""
    if one.language == "extern":
        said = f"{one.called}, library call"
    else:
        said = f"{one.name}, {LANGUAGES.get(one.language, one.language)} {one.kind}"
    said += f", {counted(one.launches, 'launch', 'launches')}" if one.launches != 1 else ""
    return said + (f" (also {names(one.lines, 4)})" if one.lines else "")


def operators(found: tuple[str, ...]) -> str:
    """Operators with their counts: ``aten.sin, 2 × aten.mul.Tensor``."""
    return names([name if n == 1 else f"{n} × {name}" for name, n in Counter(found).items()], 16)


def where(one: Difference) -> str:
    """The phase and the lines that a difference concerns."""
    return ", ".join(filter(None, (one.phase, names(one.places, 6))))


def agreement(comparison: ComparisonRecord) -> str:
    """Whether the lines became the same kernels, in one sentence."""
    rows = comparison.rows
    if len(comparison.captures) < 2:
        return "There is only one capture, and nothing to compare it with."
    if not rows:
        return "No kernel was generated on any target."
    differ = sum(not row.alike for row in rows)
    each = "each target that has code" if comparison.failures else "each target"
    if not differ:
        return f"Every line became the same kernels on {each}: as many, for the same lines and library calls."
    return f"{plural(differ, 'line')} of {len(rows)} became other kernels on some targets."


def headline(comparison: ComparisonRecord) -> str:
    """What was saved on each target: once where it is the same for all that have a capture; ``""`` without any."""
    said: dict[str, dict[str, list[str]]] = {}
    for one in comparison.columns:
        for what, before, after in (
            () if one.capture is None or one.failure else saving(ledger_of(one.capture))
        ):
            kind, _, more = what.partition(", ")
            words = (f"{before} → " if before else "") + after + (f" ({more})" if more else "")
            said.setdefault(kind, {}).setdefault(words, []).append(one.target)
    there = len(comparison.captures)
    parts = []
    for found in said.values():
        some = (w if len(t) == there else f"{', '.join(t)}: {w}" for w, t in found.items())
        parts.append("; ".join(some))
    modelled = any("~" in part for part in parts)
    return " · ".join(parts) + (" modelled" if modelled else "")


def mood(one: Column) -> str:
    """One of ``outcome.STATES``."""
    return "failed" if one.failure or one.capture is None else state(one.capture)


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "no target"


MODELLED_NOTE = (
    "Counts are measured in what the compiler made; bytes are modelled from sizes, not measured (~)."
)
