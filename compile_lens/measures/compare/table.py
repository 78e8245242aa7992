"""Table of a comparison: a row for each Python line, and the reasons why its cells differ.

Differences that the records do not explain are reported as unexplained: nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from compile_lens.measures import operators
from compile_lens.measures.compare.reasons import differences
from compile_lens.measures.compare.target import NOWHERE, Line, TargetPhase, Work
from compile_lens.measures.diff.side import Side
from compile_lens.measures.operators import operator
from compile_lens.record.capture import Record
from compile_lens.record.comparison import (
    Cell,
    Column,
    ComparisonRecord,
    Fact,
    Row,
    TargetDifference,
    Use,
    place,
)
from compile_lens.record.compilation import PHASES
from compile_lens.record.figures import AtLeast, Figure

_C = TypeVar("_C", bound=ComparisonRecord)


def across(function: str, columns: Sequence[Column], cls: type[_C]) -> _C:
    """Compare the captures in ``columns`` and return the comparison as a ``cls``."""
    captures = [(c, c.capture) for c in columns if c.capture is not None and not c.failure]
    sides = [(c.target, Side(capture)) for c, capture in captures]
    table: list[Row] = []
    reasons = [_failed(c) for c in columns if c.failure]
    reasons += _graphs([(c.target, capture) for c, capture in captures])
    features = {c.target: c.features for c in columns}
    for phase in PHASES:
        targets = [TargetPhase(name, side, phase) for name, side in sides if phase in side.phases]
        rows = [(line, _row(phase, line, targets)) for line in _lines(targets)]
        table += [row for _, row in rows]
        reasons += differences(phase, targets, [(line, row) for line, row in rows if not row.alike], features)
    return cls(function, tuple(columns), tuple(table), tuple(reasons))


def side_by_side(cls: type[_C], *captures: Record) -> _C:
    """Return the comparison of existing captures, such as loaded records.

    A column is named by the capture's target, else by its device; equal names are numbered.
    """
    names: list[str] = []
    for capture in captures:
        name = capture.options.target or (
            capture.target.requested if capture.target else capture.environment.device
        )
        count = sum(1 for known in names if known == name or known.startswith(f"{name} ("))
        names.append(f"{name} ({count + 1})" if count else name)
    columns = [Column(name, capture) for name, capture in zip(names, captures, strict=True)]
    return across(captures[0].function if captures else "", columns, cls)


def _lines(targets: Sequence[TargetPhase]) -> list[Line]:
    """Return every line of a phase in the order of the first target that has it; work without a known line is last."""
    lines: dict[Line, None] = {}
    for target in targets:
        lines.update(dict.fromkeys(target.by_line))
        lines.update(dict.fromkeys(line for work in target.works for line in work.lines))
    return sorted(lines, key=lambda line: line == NOWHERE)


def _row(phase: str, line: Line, targets: Sequence[TargetPhase]) -> Row:
    cells = tuple(_cell(line, target) for target in targets)
    text = next((target.texts[line] for target in targets if line in target.texts), "")
    keys = [_comparison_key(line, target) for target in targets]
    return Row(phase, *line, text, cells, all(one == keys[0] for one in keys))


def _cell(line: Line, target: TargetPhase) -> Cell:
    operators = tuple(operator(target.handed[n].target) for n in target.by_line.get(line, ()))
    note = "; ".join(dict.fromkeys(target.missing.values()))
    return Cell(
        target.target, operators, tuple(_use(work, line, target) for work in target.works_of(line)), note
    )


def _use(work: Work, line: Line, target: TargetPhase) -> Use:
    kernel = work.kernel
    nodes = tuple(name for cid, name in work.nodes if line in target.lines_of((cid, name), "post_grad"))
    others = tuple(place(*other) for other in work.lines if other != line)
    return Use(
        work.compilation,
        kernel.name,
        kernel.language,
        kernel.kind,
        work.called,
        work.launches,
        nodes,
        others,
    )


def _comparison_key(
    line: Line, target: TargetPhase
) -> tuple[Counter[tuple[str, frozenset[Line], Figure | AtLeast, int]], bool]:
    """Return the facts by which the cells of a row are compared."""
    uses = Counter(
        (w.called, frozenset(w.lines), w.launches, 0 if w.called else len(w.kernel.groups))
        for w in target.works_of(line)
    )
    return uses, bool(target.missing)


def _failed(column: Column) -> TargetDifference:
    facts = [Fact(column.target, column.failure)]
    target = column.capture.target if column.capture is not None else None
    if column.capture is not None and target is not None:
        for lack in operators.unsupported_types(column.capture, target.model.device):
            where = ", ".join(dict.fromkeys(place(f.file, f.line) for f in lack.frames))
            facts.append(Fact(column.target, f"{lack.op}{f' at {where}' if where else ''}: {lack.reason}"))
    return TargetDifference("failed", "", (), f"There is no code for {column.target}.", tuple(facts))


def _graphs(captures: Sequence[tuple[str, Record]]) -> list[TargetDifference]:
    """Return the difference if the function became different graphs on different targets."""
    graphs = {
        target: capture.nothing_compiled
        or ", ".join(f"{c.id} {' and '.join(c.phases) or 'no code'}" for c in capture.compilations)
        for target, capture in captures
    }
    if len(set(graphs.values())) < 2:
        return []
    facts = tuple(Fact(target, text) for target, text in graphs.items())
    return [TargetDifference("graphs", "", (), "The function became different graphs.", facts)]
