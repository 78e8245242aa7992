"""The Summary of a watched program: its causes and its compile time."""

from __future__ import annotations

from compile_lens.measures.causes import Cause, causes
from compile_lens.measures.program import compile_seconds
from compile_lens.measures.timing import seconds_text
from compile_lens.record import claims
from compile_lens.record.program import PROFILER, ProgramRecord

from ..document import cut
from ..findings.remedies import NOT_TIMED, TITLE, WHERE
from ..subjects import program as document
from ..words import program as words
from ..words import remedy_runs
from ..words.characters import flat
from ..words.quantities import duration, plural
from .summary import Part, Row, Summary, not_observed, notes, sentence

CAUSES = 5
KERNELS = 3
FACT = "kind of fact", "kinds of facts"
KEEP_COMPILING = (
    "That compiling should be disabled: a cause has a line, and most have a change that removes it."
)
EAGER_NOT_TIMED = "That the eager parts take much or little of the time: that was not measured."

_NORMAL = ("", "the program ended", "the block ended", "the call returned")
"""The endings of a program without an exception."""


def summary(program: ProgramRecord) -> Summary:
    """Return the Summary of a program."""
    verdict = [sentence(words.verdict(program))]
    spent = compile_seconds(program)
    if spent and program.seconds and not program.log:
        share = min(spent / program.seconds, 1.0)
        verdict.append(
            f"{100 * share:.0f} % of {duration(program.seconds)} was compiling ({duration(spent)})."
        )
    elif spent:
        verdict.append(f"{duration(spent)} of compiling.")
    parts = [
        _causes(program),
        _remedies(program),
        _kernels(program),
        Part("Ended", program.ended) if program.ended not in _NORMAL else None,
        not_observed(program.missing, FACT, len(program.missing), "program.missing"),
        notes(program.notes, "program.record.notes"),
    ]
    return Summary(
        document.heading(program),
        tuple(dict.fromkeys(document.facts(program)[:1] + document.facts(program)[-1:])),
        tuple(verdict),
        tuple(part for part in parts if part is not None),
        (
            ("Everything", 'print(program.text("full"))'),
            *((("One graph", "program.capture(0)"),) if program.graphs else ()),
            ("Page", 'program.save("program.html")'),
        ),
        (EAGER_NOT_TIMED, KEEP_COMPILING, *((NOT_TIMED,) if program.remedies is not None else ())),
    )


def _causes(program: ProgramRecord) -> Part | None:
    least = program.lacks(*document.CAUSES_REST_ON)
    every = causes(program)
    if not every:
        return (
            Part("Causes", f"none known; not all was observed: {least}")
            if least and program.log != PROFILER
            else None
        )
    rows = [_cause(program, number, cause) for number, cause in enumerate(every, 1)]
    fact = (
        f"{'at least ' if least else ''}{plural(len(every), 'cause')}, with the compile time that each took"
    )
    return Part("Causes", fact, *cut(rows, CAUSES), "program.causes")


def _remedies(program: ProgramRecord) -> Part | None:
    """Return the runs that tried remedies, helpful ones first."""
    tried = program.remedies
    if tried is None:
        return None
    runs = remedy_runs.ranked(tried)
    rows = [
        Row(
            f"{remedy_runs.outcome(run, tried.base):<8}  {remedy_runs.code(run)}",
            lines=(("", remedy_runs.ran(run, tried.base)),),
        )
        for run in runs[:CAUSES]
    ]
    if words_of_all := remedy_runs.together(tried):
        rows.insert(0, Row(f"together  {remedy_runs.ALL_THAT_HELPED}", lines=(("", words_of_all),)))
    return Part(TITLE, remedy_runs.fact(tried), tuple(rows), len(runs[CAUSES:]), WHERE)


def _kernels(program: ProgramRecord) -> Part | None:
    """Return the kernels that took most time, if a profiler measured them."""
    profile = program.profile
    if profile is None:
        return None
    timed = [
        (kernel.name, kernel.launches, kernel.seconds) for graph in profile.graphs for kernel in graph.kernels
    ]
    timed = timed or [(one.name, one.count, one.seconds) for one in profile.kernels]
    timed.sort(key=lambda one: -one[2])
    rows = [
        Row(f"{seconds_text(seconds):>7}  {flat(name)}  {plural(count, 'launch', 'launches')}")
        for name, count, seconds in timed
    ]
    fact = words.measured(profile)
    if fact == words.verdict(program):
        fact = "what took most"
    return Part("Kernels", fact, *cut(rows, KERNELS), "program.record.profile")


def _cause(program: ProgramRecord, number: int, cause: Cause) -> Row:
    unknown = cause.recompilation is not None and program.lacks(claims.SIZES)
    advice = "" if unknown else words.advice(cause, program.environment.torch)
    tried = "hint" if words.of_torch(cause) else "try"
    lines = [("", words.head(cause)), (tried, advice), ("because", words.because(cause))]
    at = cause.place
    return Row(
        f"{number}  {duration(cause.seconds):>7}" if cause.seconds else f"{number}  {'':>7}",
        words.place(at) if at is not None else "",
        at.text.strip() if at is not None else "",
        tuple((label, " ".join(text.split())) for label, text in lines if text),
    )
