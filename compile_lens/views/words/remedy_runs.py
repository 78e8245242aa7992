"""Text about runs that tried the remedies of a program."""

from __future__ import annotations

from compile_lens.measures.remedies import helped
from compile_lens.record.messages import first_names
from compile_lens.record.remedies import EagerPart, ProgramRemedies, RemedyRun, RunFigures

from .quantities import NOT_KNOWN, plural
from .remedies import MAX_ITEMS, place

ALL_THAT_HELPED = "all that helped"


def code(run: RemedyRun) -> str:
    """Return the code that applies the remedies of a run to a program."""
    return "; ".join(remedy.code for remedy in run.remedies)


def outcome(run: RemedyRun, base: RunFigures | None) -> str:
    """Return the result of a run in one or two words."""
    if run.missing is not None:
        return "not run"
    if run.agrees is False:
        return "results differ"
    return "helps" if helped(run, base) else "no help"


def change(run: RemedyRun, base: RunFigures | None) -> str:
    """Return the figures that a run changes, or the reason why there are none: ``12 → 7 recompiles``."""
    if run.missing is not None:
        return run.missing.reason
    if run.figures is None or base is None:
        return "its figures are not known"
    own = run.figures
    pairs = (
        (base.graphs, own.graphs, "graphs"),
        (base.breaks, own.breaks, "graph breaks"),
        (base.recompiles, own.recompiles, "recompiles"),
        (_count(base), _count(own), "eager parts"),
    )
    parts = [
        f"{_number(before)} → {_number(after)} {name}" for before, after, name in pairs if before != after
    ]
    return ", ".join(parts) or "no figure changes"


def _count(figures: RunFigures) -> int | None:
    return None if figures.eager is None else len(figures.eager)


def _number(value: int | None) -> str:
    return NOT_KNOWN if value is None else f"{value:,}"


def figures(own: RunFigures) -> str:
    """Return the figures of a run: ``2 graphs, 0 graph breaks, 1 recompile``."""
    parts = [
        f"{NOT_KNOWN} {name}s" if value is None else plural(value, name)
        for value, name in ((own.graphs, "graph"), (own.breaks, "graph break"), (own.recompiles, "recompile"))
    ]
    return ", ".join(parts)


def eager(own: RunFigures) -> str:
    """Return what still runs eagerly."""
    if own.eager is None:
        return "what runs eagerly is not known"
    return first_names(map(_part, own.eager), MAX_ITEMS) if own.eager else "nothing"


def _part(part: EagerPart) -> str:
    at = place(part.place) if part.place is not None else ""
    where = f"{at} in {part.function}" if part.function and at else at or part.function
    return f"{where} ({part.kind})"


def agreement(run: RemedyRun) -> str:
    """Return whether the results are the same, with the notes of the run."""
    return "; ".join(filter(None, (run.comparison, *run.notes)))


def ran(run: RemedyRun, base: RunFigures | None) -> str:
    """Describe a run in a sentence."""
    return "; ".join(filter(None, (change(run, base), agreement(run))))


def fact(tried: ProgramRemedies) -> str:
    """Return the result of all runs."""
    if tried.missing is not None:
        return f"not tried: {tried.missing.reason}"
    if not tried.runs:
        return "no cause has a setting that may help: it was not run again"
    helpful = [run for run in tried.runs if helped(run, tried.base)]
    runs = f"{plural(tried.count, 'run')} of the program"
    return f"{len(helpful)} of {plural(len(tried.runs), 'setting')} helped, in {runs}"


def together(tried: ProgramRemedies) -> str:
    """Return the result of the run with all helpful remedies; ``""`` if there is none."""
    run = tried.together
    if run is None:
        return ""
    if run.figures is None:
        return ran(run, tried.base)
    left = eager(run.figures)
    rest = "nothing runs eagerly" if left == "nothing" else f"still eager: {left}"
    return f"{figures(run.figures)}, {rest}; {agreement(run)}"


def ranked(tried: ProgramRemedies) -> tuple[RemedyRun, ...]:
    """Return the runs: helpful ones first, then by remaining problems; skipped ones last."""

    def order(run: RemedyRun) -> tuple[bool, bool, int, int, int]:
        own = run.figures
        if own is None:
            return True, True, 0, 0, 0
        return False, not helped(run, tried.base), _count(own) or 0, own.breaks or 0, own.recompiles or 0

    return tuple(sorted(tried.runs, key=order))
