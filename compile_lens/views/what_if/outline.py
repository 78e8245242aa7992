"""What every view of ``what_if`` says, in the same order and words."""

from __future__ import annotations

import itertools

from compile_lens.record.graph import Frame
from compile_lens.record.what_if import FIGURES, Trial, WhatIfRecord
from compile_lens.views.words.outline import place, plural

NOT_TIMED = (
    "Fewer launches and bytes are no proof of less time: benchmark what helps on the device. Counts are measured, "
    "bytes modelled."
)
SOMETHING = "switches that change a figure"
NO_BETTER = "pairs no better than one of their two switches"


def heading(found: WhatIfRecord) -> str:
    """The function by its own name, a lambda by its line."""
    name = found.function.rpartition("<locals>.")[2]
    places = ((s.file, s.first_line) for s in found.base.sources if s.name.rpartition("<locals>.")[2] == name)
    compiled = ((c.file, c.line) for c in found.base.compilations if c.function.endswith(name) and c.file)
    at = next(itertools.chain(places, compiled), None) if name == LAMBDA else None
    return f"what would change {f'the lambda of {place(Frame(*at, name))}' if at else found.function}"


LAMBDA = "<lambda>"
"""What Python calls a function without a name."""


def headline(found: WhatIfRecord) -> str:
    """The best that was found, or that none of them helps."""
    count = plural(len(found.trials), "trial")
    stopped = " It was interrupted before all were tried." if found.interrupted else ""
    if not found.helpful:
        less = "none keeps less, has fewer launches, fewer bytes or a lower peak"
        none = "None of what was tried helps" if found.interrupted else "None of them helps"
        return f"{none}: {count}, and {less}.{stopped}"
    best = found.helpful[0]
    return f"{', '.join(best.settings)}: {said(best)} ({count}). {NOT_TIMED}{stopped}"


def rows(found: WhatIfRecord) -> list[Trial]:
    """The trials that change a figure, those that help first; no pair that is no better than one of its two."""
    helpful, idle = found.helpful, found.idle_pairs
    return [*helpful, *(t for t in found.trials if t.matters and t not in helpful and t not in idle)]


def rest(found: WhatIfRecord) -> list[tuple[str, str]]:
    """What changes no figure, and pairs that add nothing: a title and the names of the switches."""
    titles = {
        True: "switches that change the code, and no figure",
        False: "switches that change nothing here",
        None: "switches of which it is not known what they change",
    }
    quiet = [t for t in found.trials if not t.matters and not t.failure]
    some = [(title, ", ".join(t.name for t in quiet if t.code is code)) for code, title in titles.items()]
    some.append((NO_BETTER, ", ".join(t.name for t in found.idle_pairs)))
    return [(title, names) for title, names in some if names]


def not_tried(found: WhatIfRecord) -> list[tuple[str, str]]:
    """What was not tried, or failed, and why."""
    return [*((t.name, t.failure) for t in found.trials if t.failure), *found.left_out]


def said(trial: Trial) -> str:
    """The figures that change: ``launches 2 → 1, bytes 800 → 400``."""
    figures = dict(trial.figures)
    parts = [
        f"{name} {_number(figures[name][0])} → {_number(figures[name][1])}"
        for name in FIGURES
        if name in figures
    ]
    return ", ".join(parts) or "no figure is another"


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"
