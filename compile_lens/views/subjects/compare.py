"""The Document of a comparison: figures side by side, reasons for differences, the kernels of each line, the code."""

from __future__ import annotations

from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.record.comparison import KINDS, Column, ComparisonRecord, Row, TargetDifference, Use
from compile_lens.record.compilation import PHASES
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.messages import first_names, with_counts

from .. import document as doc
from ..document import (
    NUMBER,
    PAGE,
    TEXT,
    Block,
    Cell,
    Document,
    Entries,
    Entry,
    Finding,
    Prose,
    Table,
)
from ..words import sentences, stamp
from ..words.labels import LANGUAGES, environment, traffic
from ..words.ledger import compared
from ..words.outcome import saving, state, verdict
from ..words.quantities import counted, launched, plural, printed

MAX_ROWS = 24
"""Maximum differences and lines on small views."""

MODELLED_NOTE = (
    "Counts are measured in what the compiler made; bytes are modelled from sizes, not measured (~)."
)


def document(comparison: ComparisonRecord) -> Document:
    """Return the Document of a comparison."""
    heads = ["", *(column.target for column in comparison.columns)]
    kinds = (TEXT, *[NUMBER] * len(comparison.columns))
    findings: list[Finding] = []
    for phase, figures in tables(comparison).items():
        words = {title for title, cells in figures.items() if any(isinstance(cell, str) for cell in cells)}
        rows = tuple(doc.Row((title, *cells)) for title, cells in figures.items() if title not in words)
        below = tuple(
            f"{target}: {printed(cell)}"
            for title in words
            for target, cell in zip(heads[1:], figures[title], strict=True)
            if isinstance(cell, str)
        )
        sections = (Table("", tuple(heads), kinds, rows), Prose("", below))
        findings.append(
            Finding(phase, phase, "" if findings else MODELLED_NOTE, sections=sections, beside=True)
        )
    why = (
        Prose("", (agreement(comparison),)),
        Entries(
            tuple(map(_reason, comparison.differences)), "difference", "comparison.differences", listed=True
        ),
    )
    findings.append(Finding("why", "Why they differ", "", sections=why, few=MAX_ROWS, open=True))
    if comparison.rows:
        # Differing lines come first if there are too many to list all.
        ordered = (
            comparison.rows
            if len(comparison.rows) <= MAX_ROWS
            else sorted(comparison.rows, key=lambda r: r.alike)
        )
        lines = Entries(tuple(map(_line, ordered)), "line", "comparison.rows", listed=True)
        findings.append(Finding("rows", "Kernels by line", "", sections=(lines,), few=MAX_ROWS, open=True))
    if differences := may_differ(comparison):
        prose = Prose("", differences)
        findings.append(
            Finding("may-differ", stamp.MAY_DIFFER.capitalize(), "", sections=(prose,), where=MAY_DIFFER)
        )
    findings += [_code(phase, cid, columns) for phase, cid, columns in modules(comparison)]
    inputs = dict.fromkeys(text for c in comparison.captures.values() for text in c.inputs[:20])
    return Document(
        "comparison",
        heading(comparison),
        _state(comparison),
        headline(comparison) or agreement(comparison),
        facts=made_with(comparison),
        details=tuple((c.target, "; ".join(column(c))) for c in comparison.columns),
        inputs=tuple(inputs) if comparison.captures else None,
        findings=tuple(findings),
    )


MAY_DIFFER = "capture.target.may_differ and .queries"


def _reason(one: TargetDifference) -> Entry:
    kind, where = KINDS.get(one.kind, one.kind), places(one)
    lines = tuple((fact.target, fact.text) for fact in one.facts)
    return Entry(f"{kind}{f': {where}' if where else ''}: {one.sentence}", lines=lines)


def _line(row: Row) -> Entry:
    lines = []
    for cell in row.cells:
        kernels = "; ".join(use(one) for one in cell.kernels) or cell.note or "no kernel"
        lines.append((cell.target, kernels))
    operators = {cell.target: _operators(cell.operators) for cell in row.cells if cell.operators}
    same = len(set(operators.values())) == 1 and len(operators) == len(row.cells)
    some = (
        {"from": next(iter(operators.values()))} if same else {f"{t} from": o for t, o in operators.items()}
    )
    lines += some.items()
    return Entry(
        f"{row.phase} {row.place}  {row.text}".rstrip(), "" if row.alike else "(differs)", tuple(lines)
    )


def _code(phase: str, cid: str, columns: tuple[tuple[Column, Code | None], ...]) -> Finding:
    """Return the finding with the code of one compilation and phase, one column for each target."""
    shown = []
    for target, code in columns:
        if code is None:
            words: tuple[str, ...] = (target.failure or sentences.NO_CODE,)
            shown.append(doc.Column(target.target, words, (), ()))
            continue
        words = (
            stamp.of_code(code),
            *([stamp.may_differ(code)] if code.may_differ else ()),
            *code.may_differ,
        )
        blocks = [Block(_kernel(code, kernel), kernel.source, kernel.language) for kernel in code.kernels]
        blocks.append(Block("the whole module", code.text, "python", folded=True))
        shown.append(doc.Column(target.target, words, (), tuple(blocks)))
    title = "Code of the inference graph" if phase == "inference" else f"Code of the {phase}"
    fact = f"compilation {cid}, as Inductor generated it for each target"
    return Finding("code", title, "", fact, sections=(doc.Columns("", tuple(shown)),), open=True, room=PAGE)


def _kernel(code: Code, kernel: Kernel) -> str:
    kind = f"{LANGUAGES.get(kernel.language, kernel.language)} {kernel.kind}"
    facts = ("library call" if kernel.language == "extern" else kind, launched(code, kernel), traffic(kernel))
    return f"{kernel.name} · {' · '.join(fact for fact in facts if fact)}"


def heading(comparison: ComparisonRecord) -> str:
    """Return the heading: ``f for cpu, h100 and mps``."""
    *most, last = [c.target for c in comparison.columns] or ["no target"]
    return f"{comparison.function} for {' and '.join(filter(None, (', '.join(most), last)))}"


def column(one: Column) -> tuple[str, ...]:
    """Return a target and its outcome as short facts."""
    if one.failure:
        return (f"failed: {one.failure}",)
    capture = one.capture
    if capture is None:
        return ("there is no capture",)
    facts = [stamp.device(capture)] if capture.target is None else []
    facts.append(stamp.of_capture(capture))
    return (*(f for f in dict.fromkeys(facts) if f), verdict(capture))


def may_differ(comparison: ComparisonRecord) -> tuple[str, ...]:
    """Return what may differ on the real devices, each sentence once with its targets."""
    targets: dict[str, list[str]] = {}
    for one in comparison.columns:
        if one.capture is not None and one.capture.target is not None:
            for words in stamp.of_target(one.capture.target):
                targets.setdefault(words, []).append(one.target)
    return tuple(f"{', '.join(some)}: {words}" for words, some in targets.items())


def made_with(comparison: ComparisonRecord) -> tuple[str, ...]:
    """Return the environment facts that all captures share."""
    every = [environment(c) for c in comparison.captures.values()]
    return tuple(fact for fact in every[0] if all(fact in other for other in every)) if every else ()


def tables(comparison: ComparisonRecord) -> dict[str, dict[str, tuple[Cell, ...]]]:
    """Return, for each phase of any target, the figures by title, with a cell for each column."""
    captures = [c.capture if not c.failure else None for c in comparison.columns]
    every = {}
    for phase in PHASES:
        if any(c is not None and any(phase in one.phases for one in c.compilations) for c in captures):
            columns = [compared(capture, phase) for capture in captures]
            every[phase] = {title: tuple(c[title] for c in columns) for title in columns[0]}
    return every


def modules(
    comparison: ComparisonRecord,
) -> tuple[tuple[str, str, tuple[tuple[Column, Code | None], ...]], ...]:
    """Return the generated modules by phase and compile id, with one for each column."""
    ids = dict.fromkeys(c.id for capture in comparison.captures.values() for c in capture.compilations)
    every = []
    for phase in PHASES:
        for cid in ids:
            codes = tuple((one, _module(one, phase, cid)) for one in comparison.columns)
            if any(code is not None for _, code in codes):
                every.append((phase, cid, codes))
    return tuple(every)


def _module(one: Column, phase: str, cid: str) -> Code | None:
    if one.capture is None or one.failure:
        return None
    return next((c.code.get(phase) for c in one.capture.compilations if c.id == cid), None)


def use(one: Use) -> str:
    """Return a kernel for a cell: ``triton_per_fused_0, Triton reduction``."""
    kind = f"{LANGUAGES.get(one.language, one.language)} {one.kind}"
    words = f"{one.called}, library call" if one.language == "extern" else f"{one.name}, {kind}"
    words += f", {counted(one.launches, 'launch', 'launches')}" if one.launches != 1 else ""
    return words + (f" (also {first_names(one.lines, 4)})" if one.lines else "")


def _operators(some: tuple[str, ...]) -> str:
    """Return operators with their counts: ``aten.sin, 2 × aten.mul.Tensor``."""
    return first_names(with_counts(some), 16)


def places(one: TargetDifference) -> str:
    """Return the phase and the lines of a difference."""
    return ", ".join(filter(None, (one.phase, first_names(one.places, 6))))


def agreement(comparison: ComparisonRecord) -> str:
    """Return a sentence on how many lines became the same kernels."""
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
    """Return the saving on each target, once if it is the same for all captures; ``""`` without captures."""
    by_kind: dict[str, dict[str, list[str]]] = {}
    for one in comparison.columns:
        capture = None if one.failure else one.capture
        for what, before, after, _ in () if capture is None else saving(ledger_of(capture)):
            kind, _, more = what.partition(", ")
            words = (f"{before} → " if before else "") + after + (f" ({more})" if more else "")
            by_kind.setdefault(kind, {}).setdefault(words, []).append(one.target)
    there = len(comparison.captures)
    parts = [
        "; ".join(
            words if len(some) == there else f"{', '.join(some)}: {words}" for words, some in by_words.items()
        )
        for by_words in by_kind.values()
    ]
    modelled = any("~" in part for part in parts)
    return " · ".join(parts) + (" modelled" if modelled else "")


def _state(comparison: ComparisonRecord) -> str:
    """Return the worst state of the columns, one of ``outcome.STATES``."""
    states = {"failed" if c.failure or c.capture is None else state(c.capture) for c in comparison.columns}
    return next(s for s in ("failed", "nothing", "partial", "compiled") if s in states or s == "compiled")
