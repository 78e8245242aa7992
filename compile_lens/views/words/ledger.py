"""Columns of the ledger and of a comparison, in one table: key, title, definition, and the number itself.

A column added to ``COLUMNS`` appears in the ledger of every view, or in the figures of a comparison, or both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compile_lens.measures.control_flow import launches
from compile_lens.measures.ledger import MEASURED, MODELLED, Ledger, Row
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.figures import figure, total
from compile_lens.record.kernel import Code
from compile_lens.record.messages import with_counts

from ..document import ANY, BYTES, NAME, NUMBER, Absence, Cell, Quantity, Table, quantity
from ..document import Row as TableRow
from .labels import FROM_SIZES, LANGUAGES


@dataclass(frozen=True)
class Scope:
    """One row of the ledger with the code that it counts."""

    capture: Record
    row: Row
    codes: tuple[Code, ...]


@dataclass(frozen=True)
class LedgerColumn:
    """One column.

    Attributes:
        key: its name, that of a figure of ``Row`` if it is one.
        title, definition: English text, which is also the key of the page's translations.
        cell: function that returns its number for a row, or why there is none.
        ledger: True if it is in the ledger.
        compared: True if it is in a comparison.
    """

    key: str
    title: str
    definition: str
    cell: Callable[[Scope], Cell]
    ledger: bool = True
    compared: bool = False


def _figure(key: str, unit: str = "") -> Callable[[Scope], Cell]:
    # The ledger shows all digits of bytes, which are compared with each other.
    return lambda scope: quantity(getattr(scope.row, key), unit, key.replace("_", " "), exact=True)


def _kernels(scope: Scope) -> Cell:
    if not scope.codes:
        return Absence("kernels", "no code was seen")
    return Quantity(sum(len(code.kernels) for code in scope.codes))


def _library_calls(scope: Scope) -> Cell:
    if not scope.codes:
        return Absence("library calls", "no code was seen")
    calls = total(launches(code, [k for k in code.kernels if k.language == "extern"]) for code in scope.codes)
    return quantity(figure(calls, MEASURED), exact=True)


def _bytes_in_short(scope: Scope) -> Cell:
    return quantity(scope.row.bytes_after, BYTES, "bytes")


def _kinds(scope: Scope) -> Cell:
    kernels = [kernel for code in scope.codes for kernel in code.kernels if kernel.language != "extern"]
    kinds = with_counts(f"{LANGUAGES.get(k.language, k.language)} {k.kind}" for k in kernels)
    return ", ".join(kinds) or Absence("kernel kinds")


def _column(
    key: str, title: str, definition: str, cell: Callable[[Scope], Cell] | None = None, **more: Any
) -> LedgerColumn:
    return LedgerColumn(key, title, definition, cell or _figure(key), **more)


COLUMNS: tuple[LedgerColumn, ...] = (
    _column("eager_ops", "eager ops", "operators that eager PyTorch dispatches"),
    _column("aten_ops", "ATen ops", "compute nodes handed to Inductor", compared=True),
    _column("loops", "loops", "Inductor's nodes before fusion that do work", compared=True),
    _column("groups", "groups", "scheduler nodes after fusion that do work", compared=True),
    _column("kernels", "kernels", "kernels of the generated code", _kernels, ledger=False, compared=True),
    _column("launches", "launches", "kernel launches in one call of the generated code", compared=True),
    _column(
        "library_calls", "library calls", "launches of kernels that a library has", _library_calls,
        ledger=False, compared=True,
    ),
    _column(
        "bytes_before", "bytes before", "memory traffic of eager PyTorch's operators", _figure("moved_before", BYTES),
    ),
    _column(
        "bytes_after", "bytes after", "memory traffic of the fused groups", _figure("bytes_after", BYTES),
    ),
    _column(
        "bytes", "bytes, modelled", "memory traffic of the fused groups", _bytes_in_short,
        ledger=False, compared=True,
    ),
    _column(
        "kinds", "kernel kinds", "languages and kinds of the kernels", _kinds, ledger=False, compared=True
    ),
)  # fmt: skip
"""All columns, in order."""


def columns() -> tuple[LedgerColumn, ...]:
    """Return the columns of the ledger, in order."""
    return tuple(column for column in COLUMNS if column.ledger)


def cells(capture: Record, row: Row, compilations: Sequence[Compilation]) -> tuple[Cell, ...]:
    """Return the cells of one row of the ledger of some compilations, for ``columns``."""
    scope = _scope(capture, row, compilations)
    return tuple(column.cell(scope) for column in columns())


def _scope(capture: Record, row: Row, compilations: Sequence[Compilation]) -> Scope:
    phases = (row.name,) if row.name in PHASES else PHASES
    codes = (c.code[phase] for c in compilations for phase in phases if phase in c.code)
    return Scope(capture, row, tuple(codes))


def compared(capture: Record | None, phase: str) -> dict[str, Cell]:
    """Return the figures of one phase of a capture by title, as in a comparison; ``capture`` may be None."""
    shown = [column for column in COLUMNS if column.compared]
    if capture is None or not any(phase in c.phases for c in capture.compilations):
        return {column.title: Absence(column.key, f"no {phase}") for column in shown}
    scope = _scope(capture, getattr(ledger_of(capture), phase), capture.compilations)
    return {column.title: column.cell(scope) for column in shown}


def compared_counts() -> tuple[str, ...]:
    """Return the titles of the counts in compiler order, for the row above the code of a comparison."""
    apart = ("library_calls", "bytes", "kinds")
    return tuple(c.title for c in COLUMNS if c.compared and c.key not in apart)


def basis_note(rows: Sequence[Row], cells: Sequence[Cell] = ()) -> str:
    """Return the meaning of the marks in the ledger, for the rows shown; ``""`` if there are none."""
    if not rows:
        return ""
    shown = cells or [quantity(figure) for row in rows for figure in row.figures]
    known = [cell for cell in shown if isinstance(cell, Quantity)]
    aten = any(row.eager_bytes is None is not row.bytes_before for row in rows)
    notes = ["counts are measured"]
    notes += [f"~ is modelled {FROM_SIZES}"] * any(cell.evidence == MODELLED for cell in known)
    notes += ["— is not known"] * any(isinstance(cell, Absence) for cell in shown)
    notes += ["bytes before: each ATen operator by itself"] * aten
    return "; ".join(notes)


def notes(ledger: Ledger) -> tuple[str, ...]:
    """Return the reasons why figures of a ledger are unknown, without duplicates."""
    every = (_note(row, note) for row in ledger.rows[:-1] for note in row.notes)
    return tuple(dict.fromkeys(filter(None, every)))


def _note(row: Row, note: str) -> str:
    """Return a row's note without the bytes before, if those of eager PyTorch are known; ``""`` if nothing is left."""
    columns, colon, reason = note.removeprefix(f"{row.name} ").partition(": ")
    if row.moved_before is None or "bytes before" not in columns:
        return note
    others = [column for column in columns.split(", ") if column != "bytes before"]
    return f"{row.name} {', '.join(others)}{colon}{reason}" if others else ""


def ledger_table(
    capture: Record, ledger: Ledger, compilations: Sequence[Compilation], graphs: int = 0, room: str = ANY
) -> Table:
    """Return the ledger table: a row for each phase, a total, and rows for the first ``graphs`` compilations."""
    rows = [TableRow((row.name, *cells(capture, row, compilations))) for row in ledger.rows]
    basis = basis_note(ledger.rows, [cell for row in rows for cell in row.cells[1:]])
    if len(ledger.graphs) > 1:
        parts = zip(ledger.graphs[:graphs], compilations, strict=False)
        rows += [
            TableRow((f"  of which {name}", *cells(capture, part.total, [compilation])))
            for (name, part), compilation in parts
            if part.rows
        ]
    head = ("", *(column.title for column in columns()))
    return Table(
        "",
        head,
        (NAME, *(NUMBER,) * (len(head) - 1)),
        tuple(rows),
        where="capture.ledger.total.notes",
        room=room,
        notes=(basis, *notes(ledger)),
        definitions=tuple(column.definition for column in columns()),
        ledger=True,
    )
