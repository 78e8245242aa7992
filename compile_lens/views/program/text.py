"""A program on a terminal."""

from __future__ import annotations

from compile_lens.record.program import ProgramRecord
from compile_lens.views.findings.model import NOTE, NUMBER, Finding, Prose, Table
from compile_lens.views.paper import Paper, paper_of

from . import outline

MANY = {
    "slower": 12,
    "breaks": 12,
    "recompiles": 12,
    "compilations": 24,
    "cuda_graphs": 12,
    "time": 8,
    "guards": 8,
    "elsewhere": 4,
}
"""Rows of each section before the rest is only counted."""


def page(program: ProgramRecord, width: int | None = None, ascii: bool | None = None) -> str:
    """The program as text, ending in a newline. ``width`` and ``ascii`` as for a capture's page."""
    return told(outline.sheet(program), width, ascii)


def told(sheet: outline.Sheet, width: int | None, ascii: bool | None) -> str:
    """A sheet as text, ending in a newline."""
    paper = paper_of(width, ascii, "─→←·…~—×²")
    paper.section(f"compile_lens: {sheet.heading}", sheet.created)
    paper.text_block(" · ".join(sheet.facts), "  ", limit=3)
    if sheet.ended:
        paper.text_block(f"ended: {sheet.ended}", "  ", "    ", limit=4)
    mark = {"compiled": "✓", "partial": "◐", "nothing": "·"}[sheet.state]
    paper.line()
    paper.text_block(sheet.verdict, f"  {mark} ", "    ", limit=6)
    for finding in sheet.findings:
        _finding(paper, finding)
    if sheet.notes:
        paper.section("also")
    for note in sheet.notes[:12]:
        paper.text_block(note, "  note: ", "    ", limit=4)
    paper.more(len(sheet.notes) - 12, "note", "program.notes, program.missing")
    return paper.text()


def _finding(paper: Paper, finding: Finding) -> None:
    paper.section(finding.title.lower(), finding.fact)
    limit = MANY.get(finding.key, 12)
    for section in finding.sections:
        if isinstance(section, (Table, Prose)):
            _titled(paper, section)
        if isinstance(section, Table) and section.rows:
            _table(paper, section, limit, finding.where)


def _titled(paper: Paper, section: Table | Prose) -> None:
    """What stands over the rows of a table, where there is anything."""
    if section.title:
        paper.text_block(section.title, "  ", "    ", limit=2)
    for words in section.words if isinstance(section, Table) else section.paragraphs:
        paper.text_block(words, "    ", limit=6)


def _table(paper: Paper, table: Table, limit: int, where: str) -> None:
    columns = [i for i, kind in enumerate(table.kinds) if kind != NOTE]
    right = [table.kinds[i] == NUMBER for i in columns]
    shown = [[row.cells[i] for i in columns] for row in table.rows[:limit]]
    noted = NOTE in table.kinds
    if noted or not paper.table([[table.head[i] for i in columns], *shown], right):
        heads = [table.head[i] for i in columns if table.head[i]]
        if len(heads) > 2:  # figures without their names would say nothing
            paper.text_block(" · ".join(heads) + ":", "  ", "      ", limit=2)
        for row, cells in zip(table.rows, shown, strict=False):
            paper.text_block("  ".join(cell for cell in cells if cell), "  ", "      ", limit=4)
            for cell, kind in zip(row.cells, table.kinds, strict=True):
                if kind == NOTE and cell:
                    paper.text_block(cell.strip("\n"), "      ", limit=10)
    paper.more(max(len(table.rows) - limit, 0) + table.left, "row", where)
