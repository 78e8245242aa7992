"""A Document: what a page says, as data. Subjects build it from a record, renderers print it.

Numbers and absences stay data here. Units, rounding, "≥", "~", "—" and "not seen" are printed in one place,
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
        bound: ``AT_LEAST`` where only ``known`` of ``graphs`` graphs could be counted.
        exact: print every digit, without a unit prefix.
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
    """A number or thing that is not there. ``reason`` is why it was not seen; ``""`` if it was seen to be none."""

    what: str
    reason: str = ""


Cell = Union[str, Address, Quantity, Absence]  # noqa: UP007
"""A cell of a table: a text or name, an address of the chain, a number, or the lack of one."""


def quantity(
    value: int | Figure | AtLeast | None, unit: str = COUNT, what: str = "", *, exact: bool = False
) -> Quantity | Absence:
    """A figure of a measure as a cell: a ``Quantity``, or an ``Absence`` of ``what`` for ``None``."""
    if value is None:
        return Absence(what, "not known")
    if isinstance(value, AtLeast):
        bound = EXACT if value.known == value.graphs else AT_LEAST
        return Quantity(value.count, unit, value.basis, bound, value.known, value.graphs, exact)
    return Quantity(int(value), unit, getattr(value, "basis", MEASURED), exact=exact)


ANY, TERMINAL, PAGE, LIVE = "any", "terminal", "page", "live"
"""The room that a section needs: it is for all views, for a terminal alone, for pages, for the live page alone."""

TEXT, NAME, NUMBER, NOTE = "text", "name", "number", "note"
"""Kinds of columns: words that wrap, names in fixed pitch, figures on the right, and a note that may stand below
its row."""


@dataclass(frozen=True)
class Row:
    """One row: a cell for each column, and the addresses that it links to."""

    cells: tuple[Cell, ...]
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows under a head. ``kinds`` has a kind for each column.

    ``words`` stand between title and rows, ``notes`` below them. ``left`` counts rows that were left out; ``where``
    says where they are. ``definitions`` explain each column but the first. A ``ledger`` has a row for each phase, a
    total last, and is turned on its side where it does not fit.
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
    """Paragraphs. An ``inline`` title stands in the line of the first one."""

    title: str
    paragraphs: tuple[str, ...]
    inline: bool = False


@dataclass(frozen=True)
class Block:
    """A text that keeps its lines, such as code. ``folded`` marks one that only a page with room has, and folds."""

    title: str
    text: str
    language: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Spot:
    """A part of a picture that says something: from where to where of its width, as shares of it, and what.
    ``chosen`` is said before anyone points at another."""

    start: float
    end: float
    words: str
    addresses: tuple[Address, ...] = ()
    chosen: bool = False


@dataclass(frozen=True)
class Picture:
    """An SVG document, what it shows in words, and its parts from left to right, which a live page lets one choose."""

    title: str
    svg: str
    alt: str
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class Change:
    """One change: a text before and after it. ``words`` describe the change."""

    title: str
    words: tuple[str, ...]
    before: str
    after: str
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Changes:
    """Changes that follow each other, to be looked at one by one."""

    title: str
    changes: tuple[Change, ...]
    left: int = 0
    where: str = ""


@dataclass(frozen=True)
class Column:
    """One of several things that stand side by side: labelled figures, then code."""

    title: str
    words: tuple[str, ...]
    figures: tuple[tuple[str, Cell], ...]
    blocks: tuple[Block, ...]
    left: int = 0


@dataclass(frozen=True)
class Columns:
    """Things side by side, to be compared."""

    title: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Entry:
    """One thing told in labelled lines.

    Attributes:
        key: its name, by which a page may put more HTML under it.
        detail: a few words after the head.
        lines: a label, ``""`` for none, and its text.
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
    """Things told one after the other. ``style`` is their class on a page, where they are ``open`` at first or not.
    ``listed`` ones are short lines of a list, with no headings and no folds. ``left`` counts entries that were left
    out."""

    entries: tuple[Entry, ...]
    style: str = "entry"
    where: str = ""
    room: str = ANY
    open: bool = False
    left: int = 0
    listed: bool = False


@dataclass(frozen=True)
class Listing:
    """A function of the user's with its text. ``marks``: a word and a state for lines, by their number in the file."""

    source: Source
    modules: tuple[str, ...] = ()
    marks: Mapping[int, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Listings:
    """Functions of the user's. ``legend`` explains each state of the marks. Only a page with room shows them."""

    listings: tuple[Listing, ...]
    legend: tuple[tuple[str, str], ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Step:
    """One stage in the strip. ``facts`` counts what it holds; ``missing`` is why it was not seen, ``none`` why
    there is none."""

    key: str
    title: str
    facts: tuple[str, ...] = ()
    seconds: float | None = None
    missing: str = ""
    stage: Stage | None = None
    none: str = ""


@dataclass(frozen=True)
class Lane:
    """Stages that follow each other: the shared ones (``phase`` is ``""``), or those of one phase."""

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
    """The graphs, code and guards of one compilation. ``listed``: a table elsewhere has the facts of each
    kernel."""

    capture: Record
    compilation: Compilation
    listed: bool = False
    alone: bool = True
    first: bool = True
    above: tuple[Flow | Table, ...] = ()


@dataclass(frozen=True)
class Group:
    """Findings under one title, each short where there is little room."""

    findings: tuple[Finding, ...]
    unknown: tuple[tuple[str, tuple[str, ...]], ...] = ()


Section = Union[  # noqa: UP007
    Table, Prose, Block, Picture, Changes, Columns, Entries, Listings, Flow, Compiled, Group
]


@dataclass(frozen=True)
class Finding:
    """One result of reading the record, with the sections that show it.

    Attributes:
        key: its name for addresses and files.
        title, intro: its name, and one sentence about it.
        fact: the result in a few words (``"3 pairs apart"``).
        badge: its figure alone, for a tab (``"~12 kB"``); ``""`` without one.
        brief: the result in a few lines, for a page without room.
        where: the name that gives all of it (``"capture.decisions"``).
        sections: what a page with room shows.
        missing: why there is nothing to show; ``""`` where there is.
        few: rows or entries shown where there is little room.
        open: a page shows it under a heading, not folded; ``beside`` next to others of the kind.
        aside: a few words beside the title on a page.
        room: the room that it needs.
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
    """One figure before and after: what it counts, both numbers in words, ``""`` for no ``before``; ``large`` if
    ``after`` is at most four fifths of it, from which on it has the colour of a saving."""

    what: str
    before: str
    after: str
    large: bool = False


@dataclass(frozen=True)
class Document:
    """The content of every view of a subject.

    Attributes:
        kind: the subject (``"program"``), which chooses the look of its page.
        heading: its name.
        state: one of ``words.outcome.STATES``; ``verdict`` is the result in a sentence without a full stop.
        created: when it was captured.
        facts: where and how, in a few words each; ``details`` are labelled lines below them.
        changes: the result in figures.
        inputs: the arguments of the call; ``None`` for a subject that has none.
        failure: the error that ended it; ``remarks`` are sentences below the verdict, ``below`` one
            that says what follows.
        findings: the sections, in order.
        also: facts that belong to no finding.
        notes: what a reader should know besides; ``notes_where`` names where all of them are, ``notes_title`` is a
            heading in place of the usual one.
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
    """A finding of one table; ``None`` without rows. ``columns`` are titles with their kinds, ``above`` what stands
    over it."""
    shown = tuple(map(Row, rows))
    table = Table("", tuple(columns), tuple(columns.values()), shown)
    sections = (*above, table)
    return Finding(key, title, intro, fact, (), where, sections, few=few, beside=beside) if shown else None


def cut(rows: Sequence[_T], limit: int) -> tuple[tuple[_T, ...], int]:
    """The first rows, and how many are left out."""
    return tuple(rows[:limit]), max(len(rows) - limit, 0)
