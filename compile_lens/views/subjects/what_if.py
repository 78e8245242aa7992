"""The Document of ``what_if``: helpful switches first, each with the difference it makes."""

from __future__ import annotations

import itertools

from compile_lens.record.graph import Frame
from compile_lens.record.what_if import FIGURES, Trial, WhatIfRecord

from ..document import Block, Document, Entries, Entry, Finding, Prose
from ..words.labels import place
from ..words.quantities import plural

NOT_TIMED = (
    "Fewer launches and bytes are no proof of less time: benchmark what helps on the device. Counts are measured, "
    "bytes modelled."
)
SOMETHING = "switches that change a figure"
NO_BETTER = "pairs no better than one of their two switches"


def document(record: WhatIfRecord) -> Document:
    """Return the Document of a what-if: switches that change a figure, other switches, and those not tried."""
    findings = []
    trials = rows(record)
    if trials:
        entries = Entries(tuple(_entry(record, trial) for trial in trials), "trial", ".trials")
        fact = plural(len(trials), "switch", "switches")
        findings.append(Finding("trials", SOMETHING, "", fact, sections=(entries,), few=20))
    for title, names in rest(record):
        findings.append(Finding("rest", title, "", sections=(Prose("", (names,)),)))
    untried = tuple(f"{name}: {why}" for name, why in not_tried(record))
    if untried:
        findings.append(Finding("not-tried", "not tried", "", sections=(Prose("", untried),)))
    state = "compiled" if record.helpful else "partial"
    return Document("what_if", heading(record), state, headline(record), findings=tuple(findings))


def _entry(record: WhatIfRecord, trial: Trial) -> Entry:
    code = Block("", trial.to_apply, "python") if trial in record.helpful else None
    return Entry(
        ", ".join(trial.settings), figures(trial), (("", trial.description),), code=code, key=trial.name
    )


def heading(record: WhatIfRecord) -> str:
    """Return a title with the name of the function, or the line of a lambda."""
    name = record.function.rpartition("<locals>.")[2]
    places = (
        (s.file, s.first_line) for s in record.base.sources if s.name.rpartition("<locals>.")[2] == name
    )
    compiled = ((c.file, c.line) for c in record.base.compilations if c.function.endswith(name) and c.file)
    at = next(itertools.chain(places, compiled), None) if name == LAMBDA else None
    return f"what would change {f'the lambda of {place(Frame(*at, name))}' if at else record.function}"


LAMBDA = "<lambda>"
"""Python's name for a lambda."""


def headline(record: WhatIfRecord) -> str:
    """Return the best trial with its figures, or that no trial helps."""
    count = plural(len(record.trials), "trial")
    stopped = " It was interrupted before all were tried." if record.interrupted else ""
    if not record.helpful:
        less = "none keeps less, has fewer recompiles, launches or bytes, a lower peak, or values nearer to eager's"
        none = "None of what was tried helps" if record.interrupted else "None of them helps"
        return f"{none}: {count}, and {less}.{stopped}"
    best = record.helpful[0]
    return f"{', '.join(best.settings)}: {figures(best)} ({count}). {NOT_TIMED}{stopped}"


def rows(record: WhatIfRecord) -> list[Trial]:
    """Return trials that change a figure, helpful ones first, without pairs that are no better than one of their
    parts."""
    helpful, idle = record.helpful, record.pairs_without_gain
    return [*helpful, *(t for t in record.trials if t.changes_figures and t not in helpful and t not in idle)]


def rest(record: WhatIfRecord) -> list[tuple[str, str]]:
    """Return switches that change no figure and pairs without gain: titles with names."""
    titles = {
        True: "switches that change the code, but no figure",
        False: "switches that change nothing here",
        None: "switches of which it is not known what they change",
    }
    quiet = [t for t in record.trials if not t.changes_figures and not t.failure]
    some = [
        (title, ", ".join(t.name for t in quiet if t.code_changed is code)) for code, title in titles.items()
    ]
    some.append((NO_BETTER, ", ".join(t.name for t in record.pairs_without_gain)))
    return [(title, names) for title, names in some if names]


def not_tried(record: WhatIfRecord) -> list[tuple[str, str]]:
    """Return the switches that were not tried or failed, with reasons."""
    return [*((t.name, t.failure) for t in record.trials if t.failure), *record.not_tried]


def figures(trial: Trial) -> str:
    """Return the changed figures: ``launches 2 → 1, bytes 800 → 400``."""
    pairs = dict(trial.figures)
    parts = [
        f"{name} {_number(pairs[name][0])} → {_number(pairs[name][1])}" for name in FIGURES if name in pairs
    ]
    return ", ".join(parts) or "no figure changes"


def _number(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"
