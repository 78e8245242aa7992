"""The Document of a divergence: the verdict on compiled values, the cause of a difference, and the attempts."""

from __future__ import annotations

from compile_lens.record.divergence import (
    FUSION,
    OPERATOR,
    PRECISION,
    ROUNDING,
    Attempt,
    DivergenceRecord,
    RootCause,
    largest_difference,
)
from compile_lens.record.graph import Frame
from compile_lens.record.verification import ALIAS, DISAGREES, NOTHING, ValueCheck

from ..document import (
    NAME,
    NUMBER,
    TEXT,
    Block,
    Document,
    Entries,
    Entry,
    Finding,
    Prose,
    Row,
    Table,
    table_finding,
)
from ..words.labels import environment, place
from ..words.outcome import COMPILED, FAILED, PARTIAL
from ..words.quantities import error, plural
from .kernel_values import first_finding, values_finding

AFTER = 3
"""Maximum lines of a rewrite's result; pages have the rest."""

LINES = 12
"""Maximum Python lines of the cause; the rest is only counted."""


def document(record: DivergenceRecord) -> Document:
    """Return the Document of a divergence."""
    findings = [
        first_finding(record),
        _cause(record),
        _apply(record),
        _attempts(record),
        _values(record),
        values_finding(record),
    ]
    state = FAILED if record.agrees is False else COMPILED if record.agrees else PARTIAL
    return Document(
        "divergence",
        f"compiled against eager: {record.function}",
        state,
        headline(record),
        facts=environment(record.capture),
        remarks=record.verification.remarks,
        findings=tuple(finding for finding in findings if finding is not None),
    )


def headline(record: DivergenceRecord) -> str:
    """Return the verdict on the compiled values in a sentence without a full stop."""
    verification = record.verification
    if verification.verdict == DISAGREES:
        worst = _worst(record)
        if worst is None:
            return "the compiled call does something else than eager"
        if worst.problem:
            return f"the compiled call differs from eager: {worst.name}: {worst.problem}"
        if worst.eager_abs is None or worst.compiled_abs is None:
            return f"compiled and eager differ by {error(worst.max_abs)} ({worst.name})"
        off = f"off float64 by {error(worst.compiled_abs)}, eager by {error(worst.eager_abs)}"
        if worst.compiled_abs < worst.eager_abs:
            differ = f"compiled and eager differ by {error(worst.max_abs)} ({worst.name})"
            return f"{differ}, and compiled is the nearer one: {off}"
        return f"the compiled values are wrong: {worst.name} is {off}"
    if verification.verdict == NOTHING:
        return "nothing to compare: nothing is returned and nothing is changed"
    if not verification.comparisons or record.agrees is None:
        return f"compiled and eager: {verification.verdict}"
    difference = largest_difference(verification)
    if not difference:
        return "compiled and eager values are equal"
    return (
        f"both are equally good: compiled and eager differ by {error(difference)} at most, by rounding alone"
    )


def _worst(record: DivergenceRecord) -> ValueCheck | None:
    failed = [c for c in record.verification.comparisons if not c.ok]
    numbers = [c for c in failed if not c.problem and c.kind != ALIAS]
    return max(numbers, key=lambda c: c.max_abs, default=failed[0] if failed else None)


def _cause(record: DivergenceRecord) -> Finding | None:
    cause = record.cause
    if cause is None:
        return None
    entries = []
    one = cause.transformation
    frames = lines_of(cause)
    if one is not None:
        lines = [("", what(cause))]
        lines += [("", "compiled alone, while all others run eagerly")] if one.kind == OPERATOR else []
        lines += [("becomes", line.partition(" = ")[2] or line) for line in cause.after.splitlines()[:AFTER]]
        lines += [("at", cause.where)] if cause.where else []
        lines += [("kernel", kernel.name) for kernel in cause.kernels]
        entries.append(Entry(one.name, one.kind, tuple(lines)))
    sections: list[Prose | Entries | Block] = [Prose("", (cause.sentence,))]
    if entries:
        sections.append(Entries(tuple(entries), "cause", open=True))
    if frames:
        places = tuple(Entry(place(frame), frame.expression) for frame in frames[:LINES])
        left = max(len(frames) - LINES, 0)
        sections.append(Entries(places, "line", listed=True, left=left, where=".cause.transformation"))
    if cause.before or cause.after:
        sections.append(Block("before", cause.before))
        sections.append(Block("after", cause.after or "(removed)"))
    fact = cause.kind if one is None else f"{cause.kind}: {one.name}"
    return Finding("cause", "cause", "", fact, sections=tuple(sections), where=".cause", few=LINES, open=True)


def lines_of(cause: RootCause) -> tuple[Frame, ...]:
    """Return the Python lines of the cause, each with its longest expression."""
    if cause.transformation is None:
        return ()
    widest: dict[tuple[str, int], Frame] = {}
    for frame in cause.transformation.frames:
        there = widest.setdefault((frame.file, frame.line), frame)
        if len(frame.call) > len(there.call):
            widest[frame.file, frame.line] = frame
    return tuple(widest.values())


def what(cause: RootCause) -> str:
    """Return the operators of the transformation by short names."""
    one = cause.transformation
    if one is None or not one.operators:
        return cause.kind
    names = [
        operator if one.kind == OPERATOR else operator.removeprefix("aten.").rpartition(".")[0] or operator
        for operator in one.operators
    ]
    shown = ", ".join(dict.fromkeys(names))
    return f"{shown} in one kernel" if cause.kind == FUSION else shown


def _apply(record: DivergenceRecord) -> Finding | None:
    """Return the finding on the setting that makes the values agree, as code."""
    switch = record.switch
    if switch is None or not switch.to_apply:
        return None
    nearer = ": nearer to eager, not to the exact result" if _as_good(record) else ""
    sentence = f"With {switch.name} they differ by {error(switch.difference)}{nearer}."
    entry = Entry(sentence, code=Block("", switch.to_apply, "python"))
    sections = (Entries((entry,), "switch", listed=True),)
    return Finding("switch", "setting", "", switch.name, sections=sections, where=".switch", open=True)


def _as_good(record: DivergenceRecord) -> bool:
    return record.cause is not None and record.cause.kind in (PRECISION, ROUNDING)


def _attempts(record: DivergenceRecord) -> Finding | None:
    rows = [(one.name, error(one.difference), _outcome(one)) for one in record.attempts]
    columns = {"changed": NAME, "difference": NUMBER, "outcome": TEXT}
    intro = "The same call, compiled in other ways and compared with eager."
    return table_finding(
        "attempts", "tried", intro, plural(len(rows), "compile"), ".attempts", columns, rows, few=20
    )


def _outcome(one: Attempt) -> str:
    if one.agrees:
        return "agrees"
    return "differs" if one.verdict == DISAGREES else ": ".join(filter(None, (one.verdict, one.reason)))


def _values(record: DivergenceRecord) -> Finding | None:
    checks = [c for c in record.verification.comparisons if c.kind != ALIAS]
    if not checks:
        return None
    rows = [
        Row(
            (
                check.name,
                f"{check.dtype}{list(check.shape)}",
                error(check.max_abs),
                error(check.eager_abs),
                error(check.compiled_abs),
                check.problem or check.special or ("" if check.ok else "differs"),
            )
        )
        for check in checks
    ]
    head = ("value", "type", "difference", "eager", "compiled", "")
    kinds = (NAME, NAME, NUMBER, NUMBER, NUMBER, TEXT)
    definitions = (
        "dtype and shape",
        "the largest difference between a compiled and an eager element",
        "the largest difference of eager from the same call in float64",
        "the largest difference of compiled code from the same call in float64",
        "what else differs",
    )
    table = Table("", head, kinds, tuple(rows), definitions=definitions)
    fact = plural(len(rows), "value")
    return Finding("values", "values", "", fact, sections=(table,), where=".verification", few=12)
