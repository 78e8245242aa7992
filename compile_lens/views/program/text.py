"""A program on a terminal."""

from __future__ import annotations

import shutil

from compile_lens.record.program import ProgramRecord
from compile_lens.views.findings.model import NOTE, NUMBER, Finding, Table
from compile_lens.views.text import DEFAULT_WIDTH, LEAST_WIDTH, _Paper, _stdout
from compile_lens.views.words import program as words
from compile_lens.views.words.characters import encodes

from . import outline

MANY = {"slower": 12, "breaks": 12, "recompiles": 12, "compilations": 24, "time": 8, "elsewhere": 4}
"""Rows of each section before the rest is only counted."""


def page(program: ProgramRecord, width: int | None = None, ascii: bool | None = None) -> str:
    """The program as text, ending in a newline. ``width`` and ``ascii`` as for a capture's page."""
    encoding = "utf-8"
    if ascii or (ascii is None and not encodes("─→←·…~—×²", _stdout())):
        encoding = "ascii" if ascii else _stdout()
    if width is None:
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    paper = _Paper(max(width, LEAST_WIDTH), encoding)
    paper.section(f"compile_lens: {outline.heading(program)}", program.created)
    paper.text_block(" · ".join(outline.facts(program)), "  ", limit=3)
    if program.ended:
        paper.text_block(f"ended: {program.ended}", "  ", "    ", limit=4)
    mark = {"compiled": "✓", "partial": "◐", "nothing": "·"}[words.state(program)]
    paper.line()
    paper.text_block(words.verdict(program), f"  {mark} ", "    ", limit=6)
    for finding in outline.outline(program):
        _finding(paper, finding)
    told = outline.notes(program)
    if told:
        paper.section("also")
    for note in told[:12]:
        paper.text_block(note, "  note: ", "    ", limit=4)
    paper.more(len(told) - 12, "note", "program.notes, program.missing")
    return paper.text()


def _finding(paper: _Paper, finding: Finding) -> None:
    paper.section(finding.title.lower(), finding.fact)
    limit = MANY.get(finding.key, 12)
    for section in finding.sections:
        if isinstance(section, Table):
            _table(paper, section, limit, finding.where)


def _table(paper: _Paper, table: Table, limit: int, where: str) -> None:
    columns = [i for i, kind in enumerate(table.kinds) if kind != NOTE]
    right = [table.kinds[i] == NUMBER for i in columns]
    shown = [[row.cells[i] for i in columns] for row in table.rows[:limit]]
    noted = NOTE in table.kinds
    if noted or not paper.table([[table.head[i] for i in columns], *shown], right):
        for row, cells in zip(table.rows, shown, strict=False):
            paper.text_block("  ".join(cell for cell in cells if cell), "  ", "      ", limit=4)
            for cell, kind in zip(row.cells, table.kinds, strict=True):
                if kind == NOTE and cell:
                    paper.text_block(cell.strip("\n"), "      ", limit=10)
    paper.more(len(table.rows) - limit, "row", where)
