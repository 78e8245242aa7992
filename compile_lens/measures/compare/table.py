"""Several captures of one function, side by side: a row for each Python line, and why its cells differ.

Pure functions of the records. What the records do not explain is said to be unexplained: nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from compile_lens.measures import missing_types
from compile_lens.measures.compare.reasons import differences
from compile_lens.measures.compare.target import NOWHERE, Line, Side, Work
from compile_lens.measures.operators import operator
from compile_lens.record.capture import Record
from compile_lens.record.comparison import Cell, Column, ComparisonRecord, Difference, Fact, Row, Use, place
from compile_lens.record.compilation import PHASES
from compile_lens.record.figures import AtLeast, Figure

_C = TypeVar("_C", bound=ComparisonRecord)


def across(function: str, columns: Sequence[Column], cls: type[_C]) -> _C:
    """The comparison of the captures in ``columns``, as a ``cls``."""
    seen = [(c, c.capture) for c in columns if c.capture is not None and not c.failure]
    rows: list[Row] = []
    found = [_failed(c) for c in columns if c.failure]
    found += _graphs([(c.target, capture) for c, capture in seen])
    features = {c.target: c.features for c in columns}
    for phase in PHASES:
        sides = [Side(c.target, capture, phase) for c, capture in seen if _has(capture, phase)]
        made = [(line, _row(phase, line, sides)) for line in _lines(sides)]
        rows += [row for _, row in made]
        found += differences(phase, sides, [(line, row) for line, row in made if not row.alike], features)
    return cls(function, tuple(columns), tuple(rows), tuple(found))


def side_by_side(cls: type[_C], *captures: Record) -> _C:
    """The comparison of captures that are there already, such as records that were loaded.

    A column is named by the capture's target, else by its device; equal names are numbered.
    """
    names: list[str] = []
    for capture in captures:
        name = capture.options.target or (
            capture.target.asked if capture.target else capture.environment.device
        )
        count = sum(1 for known in names if known == name or known.startswith(f"{name} ("))
        names.append(f"{name} ({count + 1})" if count else name)
    columns = [Column(name, capture) for name, capture in zip(names, captures, strict=True)]
    return across(captures[0].function if captures else "", columns, cls)


def _has(capture: Record, phase: str) -> bool:
    return any(phase in c.phases for c in capture.compilations)


def _lines(sides: Sequence[Side]) -> list[Line]:
    """Every line of a phase, in the order of the first side that has it; what has none comes last."""
    found: dict[Line, None] = {}
    for side in sides:
        for line in (*side.by_line, *(line for work in side.works for line in work.lines)):
            found[line] = None
    return sorted(found, key=lambda line: line == NOWHERE)


def _row(phase: str, line: Line, sides: Sequence[Side]) -> Row:
    cells = tuple(_cell(line, side) for side in sides)
    text = next((side.texts[line] for side in sides if line in side.texts), "")
    signs = [_sign(line, side) for side in sides]
    return Row(phase, *line, text, cells, all(sign == signs[0] for sign in signs))


def _cell(line: Line, side: Side) -> Cell:
    operators = tuple(operator(side.handed[n].target) for n in side.by_line.get(line, ()))
    note = "; ".join(dict.fromkeys(side.missing.values()))
    return Cell(side.target, operators, tuple(_use(work, line, side) for work in side.works_of(line)), note)


def _use(work: Work, line: Line, side: Side) -> Use:
    kernel = work.kernel
    nodes = tuple(name for cid, name in work.nodes if line in side.lines_of((cid, name), "post_grad"))
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


def _sign(line: Line, side: Side) -> tuple[Counter[tuple[str, frozenset[Line], Figure | AtLeast, int]], bool]:
    """What has to be equal for two cells to be alike."""
    uses = Counter(
        (w.called, frozenset(w.lines), w.launches, 0 if w.called else len(w.kernel.groups))
        for w in side.works_of(line)
    )
    return uses, bool(side.missing)


def _failed(column: Column) -> Difference:
    facts = [Fact(column.target, column.failure)]
    target = column.capture.target if column.capture is not None else None
    if column.capture is not None and target is not None:
        for lack in missing_types.lacking(column.capture, target.model.device):
            where = ", ".join(dict.fromkeys(place(f.file, f.line) for f in lack.frames))
            facts.append(Fact(column.target, f"{lack.op}{f' at {where}' if where else ''}: {lack.reason}"))
    return Difference("failed", "", (), f"There is no code for {column.target}.", tuple(facts))


def _graphs(seen: Sequence[tuple[str, Record]]) -> list[Difference]:
    """Targets whose functions were cut into other graphs."""
    said = {
        target: capture.nothing
        or ", ".join(f"{c.id} {' and '.join(c.phases) or 'no code'}" for c in capture.compilations)
        for target, capture in seen
    }
    if len(set(said.values())) < 2:
        return []
    facts = tuple(Fact(target, text) for target, text in said.items())
    return [Difference("graphs", "", (), "The function became other graphs.", facts)]
