"""Runs of a program with each remedy that is a setting, and with all that helped. How it is run is the caller's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..measures.remedies import helped, remedies, run_figures
from ..record.missing import Missing
from ..record.program import ProgramRecord
from ..record.remedies import NEVER_IN_FORCE, SETTING, ProgramRemedies, Remedy, RemedyRun

SHORTEST_LIMIT = 60.0
"""Seconds that a run may take at least."""

LIMIT_FACTOR = 4
"""Most time of a run, in runs without a remedy."""


@dataclass(frozen=True)
class Attempt:
    """One run.

    Attributes:
        record: what was observed; ``None`` where ``failure`` says why there is none.
        seconds: wall time that it took.
        outcome: what is compared with that of another run.
        failure: why it did not come to its end.
    """

    record: ProgramRecord | None
    seconds: float
    outcome: Any = None
    failure: str = ""


Launch = Callable[[tuple[Remedy, ...], float], Attempt]
"""Runs the program with remedies, at most for so many seconds."""

Compare = Callable[[Attempt, Attempt, "Attempt | None"], "tuple[bool | None, str]"]
"""Compares a run with the one without a remedy; the third is another one without, where there is one."""


def time_limit(seconds: float | None, base: Attempt) -> float:
    """Seconds that a run may take: those that were asked for, or by the run without a remedy."""
    return max(SHORTEST_LIMIT, LIMIT_FACTOR * base.seconds) if seconds is None else seconds


def tried(
    program: ProgramRecord,
    base: Attempt,
    launch: Launch,
    compare: Compare,
    result: str,
    seconds: float | None = None,
    tell: Callable[[str, int, int], None] = lambda what, number, total: None,
) -> ProgramRemedies:
    """The runs with each remedy for the causes of ``program``, and with all that helped.

    Args:
        base: the run without a remedy.
        result: what ``compare`` compares, in words.
        seconds: time limit of each run.
        tell: is told each run before it begins, with its number and their number.
    """
    if base.record is None:
        return ProgramRemedies(count=1, result=result, missing=Missing("remedies", base.failure))
    to_try = [remedy for remedy, _ in remedies(program)]
    limit = time_limit(seconds, base)
    before = run_figures(base.record)
    again: list[Attempt] = []
    count = 1

    def attempt(of: tuple[Remedy, ...]) -> RemedyRun:
        nonlocal count
        count += 1
        tell(", ".join(remedy.kind for remedy in of), count, len(to_try) + 2)
        one = launch(of, limit)
        lost = _lost(one, of)
        if one.record is None or lost:
            return RemedyRun(of, missing=Missing("run", one.failure or lost))
        agrees, words = compare(base, one, None)
        if agrees is False:  # the program may differ from run to run by itself
            if not again:
                count += 1
                again.append(launch((), limit))
            agrees, words = compare(base, one, again[0])
        notes = tuple(
            f"{m.stage.removeprefix(SETTING)}: {m.reason}"
            for m in one.record.missing
            if m.stage.startswith(SETTING)
        )
        return RemedyRun(of, run_figures(one.record), agrees, words, notes=notes)

    runs = tuple(attempt((remedy,)) for remedy in to_try)
    useful = tuple(run.remedies[0] for run in runs if helped(run, before))
    together = attempt(useful) if len(useful) > 1 else None
    return ProgramRemedies(before, runs, together, count, result)


def _lost(one: Attempt, of: tuple[Remedy, ...]) -> str:
    """Return why a run tried none of its remedies, as each was never in force; ``""`` where one was."""
    missing = one.record.missing if one.record is not None else ()
    reasons = [
        m.reason for m in missing if m.stage.startswith(SETTING) and m.reason.startswith(NEVER_IN_FORCE)
    ]
    return "; ".join(reasons) if len(reasons) == len(of) and reasons else ""
