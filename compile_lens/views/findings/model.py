"""What a finding is made of: plain sections that every view shows in its own way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from compile_lens.measures.chain import Address

TEXT, NAME, NUMBER, NOTE = "text", "name", "number", "note"
"""Kinds of columns: words that wrap, names in fixed pitch, figures on the right; and what a row rests on, which
may stand below it."""


@dataclass(frozen=True)
class Row:
    """One row: a cell for each column, and what of the chain it is about."""

    cells: tuple[str, ...]
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows under a head. ``kinds`` has a kind for each column.

    ``words`` stand between title and rows; ``full`` marks a table that only a view with room for it shows.
    ``left`` counts rows that were left out; ``where`` says where they are.
    """

    title: str
    head: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[Row, ...]
    words: tuple[str, ...] = ()
    full: bool = False
    left: int = 0
    where: str = ""


@dataclass(frozen=True)
class Prose:
    """Paragraphs."""

    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A text that keeps its lines, such as code."""

    title: str
    text: str
    language: str = ""


@dataclass(frozen=True)
class Picture:
    """An SVG document, and what it shows in words."""

    title: str
    svg: str
    alt: str


@dataclass(frozen=True)
class Step:
    """One change: what a text was before and after it. ``words`` say what was done."""

    title: str
    words: tuple[str, ...]
    before: str
    after: str
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Steps:
    """Changes that follow each other, to be looked at one by one."""

    title: str
    steps: tuple[Step, ...]
    left: int = 0
    where: str = ""


@dataclass(frozen=True)
class Column:
    """One of several things that stand side by side: figures with what each counts, then code."""

    title: str
    words: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]
    left: int = 0


@dataclass(frozen=True)
class Columns:
    """Things side by side, to be compared."""

    title: str
    columns: tuple[Column, ...]


Section = Union[Table, Prose, Block, Picture, Steps, Columns]  # noqa: UP007


@dataclass(frozen=True)
class Finding:
    """Something that the record tells, with what it rests on.

    Attributes:
        key: its name for addresses and files.
        title, intro: what it is, in two words and in one sentence.
        fact: the finding in a few words (``"3 pairs apart"``).
        badge: its figure alone, for a tab (``"~12 kB"``); ``""`` without one.
        brief: the finding in a few lines, for a page without room.
        where: the name that gives all of it (``"capture.decisions"``).
        sections: what a page with room shows.
        missing: why there is nothing to show; ``""`` where there is.
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


def cut(rows: list[Row], limit: int) -> tuple[tuple[Row, ...], int]:
    """The first rows, and how many are left out."""
    return tuple(rows[:limit]), max(len(rows) - limit, 0)
