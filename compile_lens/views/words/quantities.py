"""Numbers and unknown values as text. Only this module defines units, rounding and the marks "~", "≥" and "—".

Moved bytes have units of 1,000 (kB, MB); memory has units of 1,024 (KiB, MiB), as allocators report it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from compile_lens.measures.control_flow import launches
from compile_lens.measures.ledger import MODELLED, AtLeast, Figure
from compile_lens.record.figures import MEASURED, Count, of_graphs
from compile_lens.record.figures import figure as figure_of
from compile_lens.record.kernel import Code, Kernel

from ..document import BYTES, COUNT, MEMORY, OPERATIONS, SECONDS, Absence, Cell, Quantity, Row, quantity

NOT_KNOWN = "—"
ABOUT = "~"

EXACT = 10_000
"""Smaller numbers are shown with every digit."""


def printed(cell: Cell) -> str:
    """Return a cell as text: ``~46.1 MB``, ``≥ 5 (9 of 10 graphs)``, ``—`` if unknown."""
    if isinstance(cell, Absence):
        return NOT_KNOWN
    if isinstance(cell, Quantity):
        return _number(cell)
    return cell if isinstance(cell, str) else " ".join(filter(None, cell))


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row as text."""
    return tuple(map(printed, row.cells))


def _number(one: Quantity) -> str:
    mark = ABOUT if one.evidence == MODELLED else ""
    number = "{:,}".format if one.exact else UNITS[one.unit]
    if not isinstance(one.value, Count):
        return mark + number(one.value)
    words = mark + one.value.text(number)
    return words if one.known == one.graphs else f"≥ {words}{of_graphs(one.known, one.graphs)}"


def bytes_in_short(size: float) -> str:
    """Return moved bytes as text: ``46.1 MB``; exact below 10,000."""
    return f"{int(size):,} B" if size < EXACT else f"{_scaled(size)}B"


def memory_in_short(size: float) -> str:
    """Return bytes of memory in the units of allocators and ``nvidia-smi``: ``23.4 GiB``; exact below 10,000."""
    if size < EXACT:
        return f"{int(size):,} B"
    scaled = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        scaled /= 1024
        if scaled < 999.5:
            return f"{scaled:.3g} {unit}"
    return f"{scaled:,.0f} GiB"


def count(value: float) -> str:
    """Return a rounded number: ``16.8 M``; exact below 10,000."""
    return f"{value:,}" if value < EXACT else _scaled(value)


def _scaled(value: float) -> str:
    scaled = float(value)
    for prefix in "kMGT":
        scaled /= 1000
        if scaled < 999.5:
            return f"{scaled:.3g} {prefix}"
    return f"{scaled:,.0f} {prefix}"


def duration(value: float | None) -> str:
    """Return seconds in a suitable unit: ``12 ms``, ``1.3 s``; ``""`` for ``None``."""
    if value is None:
        return ""
    if value < 0.0095:
        return f"{value * 1000:.1f} ms"
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:.1f} s"


def error(value: float | None) -> str:
    """Return a numerical error with two significant digits: ``1.2e-07``."""
    return NOT_KNOWN if value is None else f"{value:.2g}"


def _plain(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


UNITS: Mapping[str, Callable[[float], str]] = {
    COUNT: _plain,
    BYTES: bytes_in_short,
    MEMORY: memory_in_short,
    OPERATIONS: count,
    SECONDS: duration,
}
"""The formatter for each unit."""


def figure(value: Figure | AtLeast | None) -> str:
    """Return a figure of the ledger with every digit: ``~8,000``."""
    return printed(quantity(value, exact=True))


def amount(value: Figure | AtLeast) -> str:
    """Return moved bytes as text: ``~46.1 MB``."""
    return printed(quantity(value, BYTES))


def observed(count: int, what: str, lacking: str, many: str = "") -> str:
    """Return a count with its noun; ``""`` for 0. If ``lacking`` is not empty, the count is a lower bound or
    unknown."""
    many = many or f"{what}s"
    if lacking:
        return f"at least {plural(count, what, many)}" if count else f"{many} not seen"
    return plural(count, what, many) if count else ""


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each run of consecutive numbers, sorted."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        follows = bool(runs) and number == runs[-1][1] + 1
        runs.append((runs.pop()[0] if follows else number, number))
    return runs


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: ``1 node``, ``2 nodes``."""
    return f"{int(count):,} {one if count == 1 else many or one + 's'}"


def more(left: int, what: str, where: str) -> str:
    """Return ``and 3 rows more: where`` for omitted rows; ``""`` if there are none."""
    return f"and {plural(left, what)} more: {where}" if left > 0 else ""


def counted(value: Figure | AtLeast, one: str, many: str = "") -> str:
    """Return a figure with its noun: ``1 launch``, ``1 or 3 launches``, ``launches: 3 + 4 per iteration``, ``≥ 5
    launches (1 of 2 graphs)``."""
    many = many or f"{one}s"
    if isinstance(value, Figure):
        return f"{value:,} {one if value == 1 else many}"
    partial = value.known < value.graphs
    words = f"{'≥ ' if partial else ''}{value.count.text()}"
    noun = one if value.count.most == 1 else many
    phrase = f"{many}: {words}" if value.count.most is None else f"{words} {noun}"
    return phrase + (of_graphs(value.known, value.graphs) if partial else "")


def launched(code: Code, *kernels: Kernel) -> str:
    """Return how often one call launches kernels of a module: ``2 launches``, ``1 launch per iteration``, ``0 or 1
    launch``."""
    return launch_words(figure_of(launches(code, kernels), MEASURED))


def launch_words(launched: Figure | AtLeast) -> str:
    """Return a number of launches as text: ``2 launches``, ``0 or 1 launch``, ``launches: 2 per iteration``."""
    if isinstance(launched, AtLeast) and launched.count == Count(iterations=(Count(1),)):
        return "1 launch per iteration"
    return counted(launched, "launch", "launches")
