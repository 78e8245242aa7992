"""Findings on cost by Python line, by kernel and by module, highest first."""

from __future__ import annotations

from compile_lens.measures.cost import BYTES, FEMTOSECOND, NO_SUBMODULE, Cost, CostRow, ModuleTotal
from compile_lens.measures.cost import cost as cost_of
from compile_lens.measures.timing import seconds_text
from compile_lens.record.capture import Record
from compile_lens.record.figures import AtLeast
from compile_lens.record.messages import first_names

from ..document import BYTES as MOVED
from ..document import (
    NAME,
    NOTE,
    NUMBER,
    TEXT,
    Absence,
    Cell,
    Finding,
    Prose,
    Quantity,
    Row,
    Section,
    Table,
    cut,
)
from ..words.characters import flat
from ..words.labels import places
from ..words.quantities import NOT_KNOWN, launch_words, plural, printed
from ..words.quantities import amount as moved

KEY, TITLE = "cost", "Cost"
INTRO = (
    "The cost of one call, most expensive first. A load or store counts for the line that it came from, for several "
    "lines equally, and the time of a kernel is shared as its bytes are: shares add up to 100 %."
)
WHERE = 'capture.cost("line"), ("kernel"), ("module")'

ROWS = 1_000
BRIEF_LINES = 3
"""Maximum lines named in a short text."""

LISTED = 12
"""Maximum rows in the text of a cost."""


def cost(capture: Record) -> Finding | None:
    """Return the finding; None if there is nothing to rank: one line, and one kernel in each phase."""
    if not capture.kernels:
        return None
    lines, kernels, modules = (cost_of(capture, by) for by in ("line", "kernel", "module"))
    phases = sum(len(compilation.code) for compilation in capture.compilations)
    if len(lines.rows) == 1 and len(kernels.rows) == phases:
        return None
    total = f"{whole(lines)} in all: {lines.origin}."
    total += " Shares are of what is known." if lines.at_least else ""
    sections: list[Section] = [_table(lines, total), _table(kernels)]
    if modules.modules:
        sections.append(_repeated(modules))
    if any(row.address for row in modules.rows):
        sections.append(_table(modules))
    if lines.missing:
        sections.append(Prose("what is not known", lines.missing[:20]))
    brief = tuple(_in_line(lines, row) for row in lines.rows[:BRIEF_LINES])
    first = lines.rows[0]
    fact = f"{share(first)} in {row_name(lines, first)}" if first.share is not None else "not known"
    return Finding(KEY, TITLE, INTRO, fact, brief, WHERE, tuple(sections))


def both_phases(capture: Record) -> bool:
    """Return True if costs cover both forward and backward."""
    return {"forward", "backward"} <= {phase for one in capture.compilations for phase in one.code}


def share(row: CostRow | ModuleTotal) -> str:
    """Return the share of a row in percent: ``39 %``; a dash if unknown."""
    return NOT_KNOWN if row.share is None else percent(row.share)


def percent(share: float) -> str:
    """Return a share from 0 to 1 in percent: ``39 %``."""
    return "<1 %" if 0 < share < 0.005 else f"{share:.0%}".replace("%", " %")


def amount(cost: Cost, value: float | None, at_least: bool = False, varies: AtLeast | None = None) -> str:
    """Return an amount in the unit of a cost: ``~76.4 MB``, ``≥ ~1.2 ms``, ``~33 B + 73 B per iteration``."""
    if value is None:
        return NOT_KNOWN
    if cost.unit == BYTES:
        words = printed(Quantity(round(value), MOVED, cost.evidence)) if varies is None else moved(varies)
    else:
        seconds = seconds_text(value) if varies is None else varies.text(_femtoseconds)
        words = f"{'' if cost.evidence == 'measured' else '~'}{seconds}"
    return f"≥ {words}" if at_least else words


def _femtoseconds(number: int) -> str:
    return seconds_text(number * FEMTOSECOND)


def price(cost: Cost, row: CostRow | ModuleTotal) -> str:
    """Return the cost of a row as text."""
    return amount(cost, row.amount, row.at_least, row.varies)


def whole(cost: Cost) -> str:
    """Return the total cost as text."""
    return amount(cost, cost.total, cost.at_least, cost.varies)


def row_name(cost: Cost, row: CostRow) -> str:
    """Return the name of a row, or a description of code without a name."""
    if row.name or cost.by != "module":
        return flat(row.name) or "code whose line is not known"
    return f"code {NO_SUBMODULE}" if row.note.startswith(NO_SUBMODULE) else "code whose module is not known"


def _in_line(cost: Cost, row: CostRow) -> str:
    expression = f"  {flat(row.expression)}" if cost.by == "line" and row.expression else ""
    return f"{share(row)}, {price(cost, row)}: {row_name(cost, row)}{expression}"


def _table(cost: Cost, *words: str) -> Table:
    rows, left = cut([_row(cost, row) for row in cost.rows], ROWS)
    head, kinds = _HEADS[cost.by]
    return Table(f"by {cost.by}", head, kinds, rows, words, left, f"capture.cost({cost.by!r})")


_HEADS = {
    "line": (
        ("share", "cost", "line", "expression", "launches", "bound by", "kernels"),
        (NUMBER, NUMBER, TEXT, TEXT, NUMBER, TEXT, NOTE),
    ),
    "kernel": (
        ("share", "cost", "#", "kernel", "launches", "bound by", "lines"),
        (NUMBER, NUMBER, NUMBER, NAME, NUMBER, TEXT, NOTE),
    ),
    "module": (
        ("share", "cost", "module", "launches", "lines"),
        (NUMBER, NUMBER, NAME, NUMBER, NOTE),
    ),
}


def _row(cost: Cost, row: CostRow) -> Row:
    money: tuple[Cell, ...] = (share(row), price(cost, row))
    launches = row.launches.text() if isinstance(row.launches, AtLeast) else f"{row.launches:,}"
    bound = row.bound or Absence("bound", "not known")
    if cost.by == "line":
        expression = row.expression or row.note
        cells = (*money, row_name(cost, row), expression, launches, bound, first_names(row.kernels, 6))
    elif cost.by == "kernel":
        cells = (*money, f"#{row.order}", row.name, launches, bound, places(row.lines) or row.note)
    else:
        cells = (*money, row.name or row.note, launches, places(row.lines))
    return Row(cells, row.addresses[:1] if cost.by == "kernel" else row.addresses)


def _repeated(cost: Cost) -> Table:
    rows = tuple(
        Row(
            (
                share(one),
                price(cost, one),
                f"{len(one.paths)} × {one.type or 'module'}",
                one.pattern,
                launches_of_each(one),
            )
        )
        for one in cost.modules
    )
    kinds = (NUMBER, NUMBER, TEXT, NAME, TEXT)
    return Table("repeated modules", ("share", "cost", "what", "path", "each"), kinds, rows)


def launches_of_each(one: ModuleTotal) -> str:
    """Return the number of launches of each of several modules: ``5 launches``, ``4 to 6 launches``, ``0 or 1
    launch``."""
    if len(one.launches) == 1:
        return launch_words(one.launches[0])
    ends = [(n.least, n.most) if isinstance(n, AtLeast) else (n, n) for n in one.launches]
    least = min(low for low, _ in ends)
    most = [high for _, high in ends if high is not None]
    if len(most) < len(ends):
        return f"at least {plural(least, 'launch', 'launches')}"
    return "0 or 1 launch" if max(most) == 1 else f"{least} to {max(most)} launches"


def text(cost: Cost, rest: str = ".rows", listed: int = LISTED) -> str:
    """Return a cost as text with at most ``listed`` rows; ``rest`` is where the others are."""
    if not cost.rows:
        return "\n".join(cost.missing) or "no kernel was generated"
    lines = [f"Cost by {cost.by}: {whole(cost)} in all, {cost.origin}."]
    for one in cost.modules:
        head = f"{share(one):>5}  {price(cost, one):>10}"
        lines.append(
            f"{head}  {len(one.paths)} × {one.type or 'module'} ({one.pattern}): {launches_of_each(one)} each"
        )
    several = cost.by == "kernel" and len({phase for row in cost.rows for phase in row.phases}) > 1
    width = max(len(row_name(cost, row)) for row in cost.rows[:listed])
    for row in cost.rows[:listed]:
        head = f"{share(row):>5}  {price(cost, row):>10}  {row_name(cost, row):<{width}}"
        phases = " and ".join(row.phases)
        detail = (
            flat(row.expression)
            if cost.by == "line"
            else f"{launch_words(row.launches)}{f' in {phases}' * several}  {places(row.lines)}"
        )
        lines.append(f"{head}  {detail or row.note}".rstrip())
    if len(cost.rows) > listed:
        lines.append(f"… {len(cost.rows) - listed} more: {rest}")
    lines += [f"not known: {reason}" for reason in cost.missing]
    return "\n".join(lines)
