"""The costs of kernels and lines, for the lists and the source on the page."""

from __future__ import annotations

from compile_lens.measures.address import Address
from compile_lens.measures.cost import Cost, CostRow, cost
from compile_lens.record.capture import Record
from compile_lens.record.figures import AtLeast
from compile_lens.record.kernel import Code

from ..findings.cost import both_phases, launches_of_each, percent, price, share
from ..words.answers import answers
from ..words.characters import line
from ..words.quantities import figure
from ..words.sentences import COST_COLUMNS


class Costs:
    """Makes ``CostData`` of kernels, and shares of lines."""

    def __init__(self, capture: Record) -> None:
        self._kernels = cost(capture, "kernel")
        self._rows = {address: row for row in self._kernels.rows for address in row.addresses}
        self._answers = answers(capture)
        self._modules = cost(capture, "module")
        self._codes = [code for compilation in capture.compilations for code in compilation.code.values()]
        self._phases = " of both phases" if both_phases(capture) else ""
        lines = cost(capture)
        self._lines: dict[tuple[str, int], tuple[float, str, str]] = {}
        self._shares = {(row.lines[0].file, row.lines[0].line): row.share for row in lines.rows if row.name}
        for row in lines.rows if len(lines.rows) > 1 else ():
            if row.name:
                whole = f"{_what(lines.unit)}{self._phases}"
                words = f"{share(row)} of the {whole}: {price(lines, row)}"
                place = row.lines[0].file, row.lines[0].line
                self._lines[place] = (_bar(row, lines), share(row), words)

    def of(self, compilation: str, code: Code) -> list[dict[str, object] | None]:
        """Return the costs of the kernels of a module, in order; all ``None`` for a module with less than two
        kernels."""
        addresses: list[Address] = [(compilation, code.key, kernel.name) for kernel in code.kernels]
        if len(addresses) < 2:
            return [None] * len(addresses)
        first: dict[int, int] = {}
        data: list[dict[str, object] | None] = []
        for number, address in enumerate(addresses):
            row = self._rows.get(address)
            if row is None:
                data.append(None)
                continue
            answer = self._answers.get(address)
            data.append(
                {
                    "row": first.setdefault(row.order, number),
                    "order": row.order,
                    "bar": _bar(row, self._kernels),
                    "words": share(row),
                    "amount": price(self._kernels, row),
                    "limit": row.bound,
                    "times": 0 if isinstance(row.launches, AtLeast) else row.launches,
                    "launched": figure(row.launches),
                    "saved": answer.saved if answer else 0,
                    "answer": [[label, line(words)] for label, words in answer.parts] if answer else [],
                }
            )
        return data

    def lines(self, file: str, first: int, count: int) -> list[list[object]]:
        """Return the costs of lines of a source: line number, length of a bar, share in percent, and text."""
        known = ((number, self._lines.get((file, number))) for number in range(first, first + count))
        return [[number, *one] for number, one in known if one is not None]

    def of_source(self, file: str, first: int, count: int) -> str:
        """Return the total share of the lines of a source; ``""`` if unknown for all."""
        shares = (self._shares.get((file, number)) for number in range(first, first + count))
        known = [one for one in shares if one is not None]
        return percent(sum(known)) if known else ""

    def core(self) -> dict[str, object] | None:
        """Return the unit and the meanings of the columns; ``None`` if no module has several kernels."""
        if not any(len(code.kernels) > 1 for code in self._codes):
            return None
        origin = line(self._kernels.origin)
        columns = {**COST_COLUMNS, "amount": f"{COST_COLUMNS['amount']} {origin}."}
        return {"what": _what(self._kernels.unit), "columns": columns}

    def of_modules(self, paths: tuple[str, ...]) -> list[str]:
        """Return the share of repeated modules and its description; nothing if it does not cover all of them."""
        for one in self._modules.modules:
            if paths and set(paths) == set(one.paths):
                return [share(one), f"{share(one)}{self._phases}, {launches_of_each(one)} each"]
        return []


def _bar(row: CostRow, whole: Cost) -> float:
    """Return the length of a bar: 1 for the most expensive row."""
    most = whole.rows[0].share
    return round(row.share / most, 3) if row.share and most else 0.0


def _what(unit: str) -> str:
    return "time" if unit == "seconds" else "bytes"
