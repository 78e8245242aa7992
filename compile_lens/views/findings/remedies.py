"""The finding about runs of a program that tried the remedies of its causes."""

from __future__ import annotations

from compile_lens.measures.remedies import helped, remedies
from compile_lens.record.program import ProgramRecord
from compile_lens.record.remedies import RemedyRun, RunFigures

from ..document import NAME, NUMBER, TEXT, Finding, Row, Table
from ..words import remedy_runs as words
from ..words.quantities import NOT_KNOWN

KEY, TITLE, WHERE = "remedies", "Remedies that ran", "program.record.remedies"
NOT_TIMED = (
    "That a run with a setting is faster: no time is compared, and later runs found torch's caches filled."
)
_HEAD = ("setting", "cause", "graphs", "breaks", "recompiles", "result", "still eager", "compared")
_KINDS = (TEXT, NAME, NUMBER, NUMBER, NUMBER, TEXT, TEXT, TEXT)


def finding(program: ProgramRecord) -> Finding | None:
    """Return the finding; ``None`` if remedies were not requested."""
    tried = program.remedies
    if tried is None:
        return None
    if not tried.runs:
        return Finding(KEY, TITLE, "", words.fact(tried), where=WHERE, missing=words.fact(tried))
    numbers = {remedy.code: " ".join(map(str, causes)) for remedy, causes in remedies(program)}
    rows = [] if tried.base is None else [Row(("as it is", "", *_figures(tried.base), ""))]
    for run in words.ranked(tried):
        rows.append(_row(words.code(run), numbers.get(words.code(run), ""), run, tried.base))
    if tried.together is not None:
        rows.append(_row(words.ALL_THAT_HELPED, "", tried.together, tried.base))
    intro = (
        "The program ran again in a process of its own, once with each setting of torch's that may help against a "
        f"cause, and once with all that helped. What is compared is its {tried.result}; no time is."
    )
    table = Table("", _HEAD, _KINDS, tuple(rows))
    return Finding(KEY, TITLE, intro, words.fact(tried), (), WHERE, (table,), open=True)


def runs_by_cause(program: ProgramRecord) -> dict[int, list[str]]:
    """Return a sentence about each run with a helpful setting, by the number of its cause, counted from 1."""
    tried = program.remedies
    sentences: dict[int, list[str]] = {}
    if tried is None or not tried.runs:
        return sentences
    numbers = {remedy.code: causes for remedy, causes in remedies(program)}
    for run in words.ranked(tried):
        if helped(run, tried.base):
            for number in numbers.get(words.code(run), ()):
                text = f"{words.code(run)}: {words.ran(run, tried.base)}"
                sentences.setdefault(number, []).append(text)
    return sentences


def _figures(own: RunFigures) -> tuple[str, str, str, str, str]:
    numbers = [
        NOT_KNOWN if value is None else f"{value:,}" for value in (own.graphs, own.breaks, own.recompiles)
    ]
    return numbers[0], numbers[1], numbers[2], "", words.eager(own)


def _row(name: str, causes: str, run: RemedyRun, base: RunFigures | None) -> Row:
    if run.figures is None:
        missing = run.missing.reason if run.missing is not None else ""
        return Row((name, causes, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, "not run", "", missing))
    graphs, breaks, recompiles, _, eager = _figures(run.figures)
    result = words.outcome(run, base)
    return Row((name, causes, graphs, breaks, recompiles, result, eager, words.agreement(run)))
