"""The ledger as a table of a Document."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.measures.ledger import Ledger
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation

from ..document import ANY, NAME, NUMBER, Row, Table
from ..words.ledger import basis_note, cells, columns, notes


def ledger_table(
    capture: Record, ledger: Ledger, compilations: Sequence[Compilation], graphs: int = 0, room: str = ANY
) -> Table:
    """A row for each phase and a total. ``graphs``: rows for so many compilations below them."""
    rows = [Row((row.name, *cells(capture, row, compilations))) for row in ledger.rows]
    basis = basis_note(ledger.rows, [cell for row in rows for cell in row.cells[1:]])
    if len(ledger.graphs) > 1:
        parts = zip(ledger.graphs[:graphs], compilations, strict=False)
        rows += [
            Row((f"  of which {name}", *cells(capture, part.total, [compilation])))
            for (name, part), compilation in parts
            if part.rows
        ]
    head = ("", *(column.title() for column in columns()))
    return Table(
        "",
        head,
        (NAME, *(NUMBER,) * (len(head) - 1)),
        tuple(rows),
        where="capture.ledger.total.notes",
        room=room,
        notes=(basis, *notes(ledger)),
        definitions=tuple(column.definition() for column in columns()),
        ledger=True,
    )
