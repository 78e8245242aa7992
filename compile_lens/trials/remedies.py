"""Runs of a program with each remedy that is a setting, and with all that helped. The caller supplies the runner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..measures.remedies import helped, remedies, run_figures
from ..record.missing import Missing
from ..record.program import ProgramRecord
from ..record.remedies import NEVER_IN_FORCE, SETTING, ProgramRemedies, Remedy, RemedyRun

MIN_LIMIT_SECONDS = 60.0
"""Lower bound of a run's time limit, in seconds."""

LIMIT_FACTOR = 4
"""Time limit of a run as a multiple of the time without a remedy."""


@dataclass(frozen=True)
class Attempt:
    """One run of the program.

    Attributes:
        record: what was observed; None after a failure.
        seconds: wall time.
        outcome: result to compare with that of another run.
        failure: why the run did not finish.
    """

    record: ProgramRecord | None
    seconds: float
    outcome: Any = None
    failure: str = ""


Launch = Callable[[tuple[Remedy, ...], float], Attempt]
"""Function that runs the program with remedies, with a time limit in seconds."""

Compare = Callable[[Attempt, Attempt, "Attempt | None"], "tuple[bool | None, str]"]
"""Function that compares the run without a remedy with another run; the third argument is a second run without a
remedy, or None."""


def time_limit(seconds: float | None, base: Attempt) -> float:
    """Return the time limit of a run in seconds: ``seconds`` if given, else by the duration of ``base``."""
    return max(MIN_LIMIT_SECONDS, LIMIT_FACTOR * base.seconds) if seconds is None else seconds


def tried(
    program: ProgramRecord,
    base: Attempt,
    launch: Launch,
    compare: Compare,
    result: str,
    seconds: float | None = None,
    tell: Callable[[str, int, int], None] = lambda what, number, total: None,
) -> ProgramRemedies:
    """Run the program with each remedy for its causes, and with all that helped; return the results.

    Args:
        base: the run without a remedy.
        result: description of what ``compare`` compares.
        seconds: time limit of each run.
        tell: called before each run with its remedies, its number and the total.
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
        lost = _never_in_force(one, of)
        if one.record is None or lost:
            return RemedyRun(of, missing=Missing("run", one.failure or lost))
        agrees, words = compare(base, one, None)
        if agrees is False:  # the program may vary between runs by itself
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


def _never_in_force(one: Attempt, of: tuple[Remedy, ...]) -> str:
    """Return the reasons if none of a run's remedies was ever in force; ``""`` if one was."""
    missing = one.record.missing if one.record is not None else ()
    reasons = [
        m.reason for m in missing if m.stage.startswith(SETTING) and m.reason.startswith(NEVER_IN_FORCE)
    ]
    return "; ".join(reasons) if len(reasons) == len(of) and reasons else ""
