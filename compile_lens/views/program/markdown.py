"""A program as Markdown."""

from __future__ import annotations

from compile_lens.record.program import ProgramRecord
from compile_lens.views.markdown import _Out, _section, escape

from . import outline


def page(program: ProgramRecord) -> str:
    """The program as Markdown, ending in a newline. Every string of the user's is escaped or fenced."""
    return told(outline.sheet(program))


def told(sheet: outline.Sheet) -> str:
    """A sheet as Markdown, ending in a newline."""
    out = _Out()
    out.add(f"# {escape(sheet.heading)}")
    out.add(escape(" · ".join(sheet.facts)))
    if sheet.ended:
        out.add(f"Ended: {escape(sheet.ended)}.")
    out.add(f"**{escape(sheet.verdict)}.**")
    for finding in sheet.findings:
        out.add(f"## {escape(finding.title)}: {escape(finding.fact)}")
        out.add(escape(finding.intro))
        for section in finding.sections:
            _section(out, section)
    if sheet.notes:
        out.add("## Notes")
        out.add("\n".join(f"- {escape(note)}" for note in sheet.notes))
    return "\n\n".join(out.parts) + "\n"
