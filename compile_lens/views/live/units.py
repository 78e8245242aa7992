"""What has a colour of its own on the page, and which of these each item came from."""

from __future__ import annotations

from compile_lens.measures.address import python
from compile_lens.measures.chain import Chain
from compile_lens.measures.source_units import Unit, units
from compile_lens.record.capture import Record

from ..words.palette import UNITS
from .items import Items
from .words import line


def coloured(capture: Record, items: Items) -> dict[str, object]:
    """``units``, ``unitSets`` and ``unitsOf`` of the ``Index``."""
    every = units(capture)
    told: list[dict[str, object]] = []
    sets: dict[tuple[int, ...], int] = {(): 0}
    of = [0] * len(items.above)
    texts = _Texts(capture)
    short = Chain(capture).texts.short
    for number, compilation in enumerate(items.compilations):
        found = every[compilation.id]
        start = len(told)
        told += [
            _unit(number, i, unit, items, texts, short(python(unit.file, unit.line)))
            for i, unit in enumerate(found.all)
        ]
        for address, own in found.of.items():
            item = items.item(address)
            if item is not None:
                of[item] = sets.setdefault(tuple(start + i for i in own), len(sets))
    return {"units": told, "unitSets": [list(one) for one in sets], "unitsOf": of}


def _unit(
    compilation: int, number: int, unit: Unit, items: Items, texts: _Texts, place: str
) -> dict[str, object]:
    column, end = texts.span(unit)
    nodes = [items.item(address) for address in unit.nodes]
    at = items.item(python(unit.file, unit.line))
    # A call that takes all of its line goes by the line: there is nothing else in it.
    columns = "" if unit.end_column is None else f":{unit.column}-{unit.end_column}"
    return {
        "compilation": compilation,
        "tag": line(unit.tag),
        "colour": number % (2 * len(UNITS)),
        "address": line(place + columns),
        "line": -1 if at is None else at,
        "column": column,
        "end": end,
        "items": [item for item in nodes if item is not None],
    }


class _Texts:
    """The lines of the sources, for what is counted in them."""

    def __init__(self, capture: Record) -> None:
        self._sources = capture.sources

    def span(self, unit: Unit) -> tuple[int, int]:
        """Where a call stands in its line as the page shows it; -1, -1 for a line, and where that is not known."""
        text = self._line(unit)
        # A page writes out what cannot be seen: columns of such a line are others.
        if unit.column is None or not text.strip() or not (text.isascii() and text.strip().isprintable()):
            return -1, -1
        rest = len(text.rstrip())
        end = rest if unit.end_column is None else min(unit.end_column, rest)
        start = max(unit.column, len(text) - len(text.lstrip()))
        return (start, end) if start < end else (-1, -1)

    def _line(self, unit: Unit) -> str:
        for source in self._sources:
            lines = source.text.split("\n")
            if source.file == unit.file and 0 <= unit.line - source.first_line < len(lines):
                return lines[unit.line - source.first_line]
        return ""
