"""A Document: the content of a page as data. Subjects build it from a record, renderers print it.

Numbers and absences are data here. Units, rounding, "≥", "~", "—" and "not seen" are added in one place,
``words/quantities.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeVar, Union

from compile_lens.measures.chain import Address
from compile_lens.record.capture import Failure, Record
from compile_lens.record.compilation import Compilation, Stage
from compile_lens.record.figures import MEASURED, AtLeast, Count, Figure
from compile_lens.record.graph import Frame, Source

_T = TypeVar("_T")

BYTES, MEMORY, SECONDS, OPERATIONS, COUNT = "bytes", "memory", "seconds", "operations", ""
"""Units: bytes moved (kB, MB), bytes of memory (KiB, MiB), seconds, arithmetic operations, a plain count."""

EXACT, AT_LEAST = "exact", "at least"


@dataclass(frozen=True)
class Quantity:
    """A number with its unit and evidence, ``MEASURED`` or ``MODELLED``.

    Attributes:
        value: one number, or a ``Count`` that depends on loops and branches.
        bound: ``AT_LEAST`` if only ``known`` of ``graphs`` graphs could be counted.
        exact: True to print every digit, without a unit prefix.
    """

    value: int | float | Count
    unit: str = COUNT
    evidence: str = MEASURED
    bound: str = EXACT
    known: int = 1
    graphs: int = 1
    exact: bool = False


@dataclass(frozen=True)
class Absence:
    """A missing number or thing. ``reason`` is why it was not observed; ``""`` if it was observed to be none."""

    what: str
    reason: str = ""


Cell = Union[str, Address, Quantity, Absence]  # noqa: UP007
"""A cell of a table: a text or name, an address of the chain, a number, or a missing number."""


def quantity(
    value: int | Figure | AtLeast | None, unit: str = COUNT, what: str = "", *, exact: bool = False
) -> Quantity | Absence:
    """Return a figure of a measure as a cell: a ``Quantity``, or for None an ``Absence`` of ``what``."""
    if value is None:
        return Absence(what, "not known")
    if isinstance(value, AtLeast):
        bound = EXACT if value.known == value.graphs else AT_LEAST
        return Quantity(value.count, unit, value.basis, bound, value.known, value.graphs, exact)
    return Quantity(int(value), unit, getattr(value, "basis", MEASURED), exact=exact)


ANY, TERMINAL, PAGE, LIVE = "any", "terminal", "page", "live"
"""Views that show a section: all, only a terminal, pages, or only the live page."""

TEXT, NAME, NUMBER, NOTE = "text", "name", "number", "note"
"""Kinds of columns: text that wraps, names in monospace, right-aligned figures, and notes that may be below their
row."""


@dataclass(frozen=True)
class Row:
    """One row: a cell for each column, and addresses to link to."""

    cells: tuple[Cell, ...]
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table with a header. ``kinds`` has a kind for each column.

    ``words`` are sentences between title and rows, ``notes`` those below. ``left`` is the number of omitted rows and
    ``where`` the name that has them. ``definitions`` explain each column but the first. A ``ledger`` has a row for each
    phase and a total; it is transposed if it does not fit.
    """

    title: str
    head: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[Row, ...]
    words: tuple[str, ...] = ()
    left: int = 0
    where: str = ""
    room: str = ANY
    notes: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    ledger: bool = False


@dataclass(frozen=True)
class Prose:
    """Paragraphs. An ``inline`` title is on the line of the first one."""

    title: str
    paragraphs: tuple[str, ...]
    inline: bool = False


@dataclass(frozen=True)
class Block:
    """A text with its own lines, such as code. A ``folded`` one is only on full pages, folded."""

    title: str
    text: str
    language: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Spot:
    """A part of a picture with a sentence: its horizontal range as shares of the width, and the text. That of the
    ``chosen`` one is shown initially."""

    start: float
    end: float
    words: str
    addresses: tuple[Address, ...] = ()
    chosen: bool = False


@dataclass(frozen=True)
class Picture:
    """An SVG document with alternative text, and its parts from left to right, which can be selected on a live page."""

    title: str
    svg: str
    alt: str
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class Change:
    """One change: the text before and after, and a description in ``words``."""

    title: str
    words: tuple[str, ...]
    before: str
    after: str
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Changes:
    """Successive changes, to be viewed one at a time."""

    title: str
    changes: tuple[Change, ...]
    left: int = 0
    where: str = ""


@dataclass(frozen=True)
class Column:
    """One column of a comparison: labelled figures, then code."""

    title: str
    words: tuple[str, ...]
    figures: tuple[tuple[str, Cell], ...]
    blocks: tuple[Block, ...]
    left: int = 0


@dataclass(frozen=True)
class Columns:
    """Columns side by side, for comparison."""

    title: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Entry:
    """One item, described in labelled lines.

    Attributes:
        key: its name, by which a page may insert HTML below it.
        detail: a few words after the head.
        lines: pairs of label (``""`` for none) and text.
        frames: a Python stack, innermost last.
        whole: a long message that a page may fold.
        code: code to copy.
    """

    head: str
    detail: str = ""
    lines: tuple[tuple[str, str], ...] = ()
    frames: tuple[Frame, ...] = ()
    whole: str = ""
    code: Block | None = None
    key: str = ""


@dataclass(frozen=True)
class Entries:
    """A sequence of entries. ``style`` is their class on a page, ``open`` if they are initially unfolded. ``listed``
    ones are short lines of a list, without headings and folds. ``left`` is the number of omitted entries."""

    entries: tuple[Entry, ...]
    style: str = "entry"
    where: str = ""
    room: str = ANY
    open: bool = False
    left: int = 0
    listed: bool = False


@dataclass(frozen=True)
class Listing:
    """A user function with its text. ``marks`` maps line numbers of the file to a word and a state."""

    source: Source
    modules: tuple[str, ...] = ()
    marks: Mapping[int, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Listings:
    """User functions. ``legend`` explains the states of the marks. Only full pages show them."""

    listings: tuple[Listing, ...]
    legend: tuple[tuple[str, str], ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Step:
    """One stage in the strip. ``facts`` are counts of its contents; ``missing`` is why it was not observed, ``none``
    why it does not exist."""

    key: str
    title: str
    facts: tuple[str, ...] = ()
    seconds: float | None = None
    missing: str = ""
    stage: Stage | None = None
    none: str = ""


@dataclass(frozen=True)
class Lane:
    """A sequence of stages: the shared ones (``phase`` is ``""``), or those of one phase."""

    phase: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Flow:
    """The stages of one compilation: each phase in one line, then every stage, then its symbolic sizes."""

    lines: tuple[tuple[str, tuple[str, ...]], ...]
    lanes: tuple[Lane, ...]
    dynamic: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiled:
    """The graphs, code and guards of one compilation. ``listed``: another table has the facts of each kernel."""

    capture: Record
    compilation: Compilation
    listed: bool = False
    alone: bool = True
    first: bool = True
    above: tuple[Flow | Table, ...] = ()


@dataclass(frozen=True)
class Group:
    """Findings under one title, each abbreviated on small views."""

    findings: tuple[Finding, ...]
    unknown: tuple[tuple[str, tuple[str, ...]], ...] = ()


Section = Union[  # noqa: UP007
    Table, Prose, Block, Picture, Changes, Columns, Entries, Listings, Flow, Compiled, Group
]


@dataclass(frozen=True)
class Finding:
    """One result about a record, with the sections that show it.

    Attributes:
        key: its name for addresses and files.
        title, intro: its name, and one sentence about it.
        fact: the result in a few words (``"3 pairs not fused"``).
        badge: only its figure, for a tab (``"~12 kB"``); ``""`` for none.
        brief: the result in a few lines, for small views.
        where: the Python name that has all of it (``"capture.decisions"``).
        sections: content of a full page.
        missing: why there is nothing to show; ``""`` if there is something.
        few: rows or entries shown on small views.
        open: True if a page shows it unfolded under a heading; ``beside``: next to others of its kind.
        aside: a few words next to the title on a page.
        room: the views that show it.
    """

    key: str
    title: str
    intro: str
    fact: str = ""
    brief: tuple[str, ...] = ()
    where: str = ""
    sections: tuple[Section, ...] = ()
    missing: str = ""
    badge: str = ""
    few: int = 12
    open: bool = False
    beside: bool = False
    aside: str = ""
    room: str = ANY


class Saving(NamedTuple):
    """One figure before and after: what it counts, and both numbers in words (``before`` may be ``""``). ``large`` is
    True if at least a fifth is saved, and colours the figure."""

    what: str
    before: str
    after: str
    large: bool = False


@dataclass(frozen=True)
class Document:
    """The content of every view of a subject.

    Attributes:
        kind: the subject (``"program"``), which determines the style of its page.
        heading: its name.
        state: one of ``words.outcome.STATES``; ``verdict`` is the result in a sentence without a full stop.
        created: time of the capture.
        facts: short facts on where and how; ``details`` are labelled lines below them.
        changes: the result in figures.
        inputs: the arguments of the call; None for a subject without inputs.
        failure: the error that ended it; ``remarks`` are sentences below the verdict, ``below`` is one that introduces
            the rest.
        findings: the sections, in order.
        also: facts outside the findings.
        notes: further remarks; ``notes_where`` is the name that has all of them, ``notes_title`` replaces the usual
            heading.
    """

    kind: str
    heading: str
    state: str
    verdict: str
    created: str = ""
    facts: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()
    changes: tuple[Saving, ...] = ()
    inputs: tuple[str, ...] | None = None
    failure: Failure | None = None
    remarks: tuple[str, ...] = ()
    below: str = ""
    findings: tuple[Finding, ...] = ()
    also: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    notes_where: str = ""
    notes_title: str = ""


def table_finding(
    key: str,
    title: str,
    intro: str,
    fact: str,
    where: str,
    columns: Mapping[str, str],
    rows: Iterable[tuple[Cell, ...]],
    above: tuple[Section, ...] = (),
    few: int = 12,
    beside: bool = False,
) -> Finding | None:
    """Return a finding with one table; None without rows. ``columns`` maps titles to kinds; ``above`` are sections
    above the table."""
    shown = tuple(map(Row, rows))
    table = Table("", tuple(columns), tuple(columns.values()), shown)
    sections = (*above, table)
    return Finding(key, title, intro, fact, (), where, sections, few=few, beside=beside) if shown else None


def cut(rows: Sequence[_T], limit: int) -> tuple[tuple[_T, ...], int]:
    """Return the first rows, and the number of omitted ones."""
    return tuple(rows[:limit]), max(len(rows) - limit, 0)
