"""What switches would change, as Markdown."""

from __future__ import annotations

from compile_lens.record.what_if import WhatIfRecord
from compile_lens.views.markdown import _Out, code, escape, fenced

from . import outline


def page(found: WhatIfRecord) -> str:
    """The outcome as Markdown, ending in a newline. Every string of the user's is escaped."""
    out = _Out()
    out.add(f"# {escape(outline.heading(found))}")
    out.add(escape(outline.headline(found)))
    rows = outline.rows(found)
    if rows:
        lines = ["| switch | figures | what it does |", "| --- | --- | --- |"]
        for trial in rows:
            settings = ", ".join(map(code, trial.settings))
            lines.append(f"| {settings} | {escape(outline.said(trial))} | {escape(trial.meaning)} |")
        out.add("\n".join(lines))
    for trial in found.helpful:
        out.add(f"To have {escape(trial.name)}:")
        out.add(fenced(trial.to_apply, "python"))
    for title, names in outline.rest(found):
        out.add(f"{escape(title)}: {escape(names)}")
    untried = outline.not_tried(found)
    if untried:
        out.add("## not tried")
        out.add("\n".join(f"- {code(name)}: {escape(why)}" for name, why in untried))
    return "\n\n".join(part for part in out.parts if part) + "\n"
