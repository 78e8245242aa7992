"""A program as Markdown."""

from __future__ import annotations

from compile_lens.record.program import ProgramRecord
from compile_lens.views.markdown import _Out, _section, escape
from compile_lens.views.words import program as words

from . import outline


def page(program: ProgramRecord) -> str:
    """The program as Markdown, ending in a newline. Every string of the user's is escaped or fenced."""
    out = _Out()
    out.add(f"# {escape(outline.heading(program))}")
    out.add(escape(" · ".join(outline.facts(program))))
    if program.ended:
        out.add(f"Ended: {escape(program.ended)}.")
    out.add(f"**{escape(words.verdict(program))}.**")
    for finding in outline.outline(program):
        out.add(f"## {escape(finding.title)}: {escape(finding.fact)}")
        out.add(escape(finding.intro))
        for section in finding.sections:
            _section(out, section)
    notes = outline.notes(program)
    if notes:
        out.add("## Notes")
        out.add("\n".join(f"- {escape(note)}" for note in notes))
    return "\n\n".join(out.parts) + "\n"
