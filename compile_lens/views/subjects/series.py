"""The Document of a series: captures that differ in one number, with the launches and moved bytes of each."""

from __future__ import annotations

from collections.abc import Mapping

from compile_lens.measures.ledger import ledger
from compile_lens.record.capture import Record

from ..document import NUMBER, TEXT, Document, Finding, Row, Table, quantity
from ..findings.places import bytes_cell

HEAD = ("eager operators", "launches", "bytes moved")


def document(name: str, captures: Mapping[str, Record]) -> Document:
    """Return the Document of captures by the value of the parameter ``name``."""
    rows = tuple(_row(value, capture) for value, capture in captures.items())
    table = Table("", (name, *HEAD), (TEXT, NUMBER, NUMBER, NUMBER), rows)
    finding = Finding("series", f"by {name}", "", sections=(table,), few=len(rows), open=True)
    function = next(iter(captures.values())).function
    return Document(
        "series", f"{function} by {name}", "compiled", f"{len(rows)} captures", findings=(finding,)
    )


def _row(value: str, capture: Record) -> Row:
    total = ledger(capture).total
    return Row((value, quantity(total.eager_ops), quantity(total.launches), bytes_cell(total.bytes_after)))
