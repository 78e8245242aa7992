"""A difference as Markdown, for a pull request."""

from __future__ import annotations

from compile_lens.record.difference import Change, DifferenceRecord
from compile_lens.views.render.markdown import TEXT_LIMIT, Out, escape

from . import outline

MANY = 60


def page(found: DifferenceRecord) -> str:
    """The difference as Markdown, ending in a newline. Every string of the user's is escaped or fenced."""
    out = Out()
    out.add(f"# {escape(outline.heading(found))}")
    out.add("\n".join(f"- {escape(line)}" for line in outline.summary(found)))
    for part in outline.parts(found):
        out.add(f"## {escape(part.title)}")
        for change in part.changes[:MANY]:
            _change(out, change)
        out.more(len(part.changes) - MANY, "change")
    if outline.unknown(found):
        out.add(f"## {outline.unknown(found)}")
        out.add("\n".join(f"- {escape(reason)}" for reason in found.unknown))
    return "\n\n".join(part for part in out.parts if part) + "\n"


def _change(out: Out, change: Change) -> None:
    words = outline.figure(change) if change.name else outline.told(change)
    lines = [f"- {outline.mark(change)} {escape(words)}"]
    if change.level != "code":
        lines += [f"  - {escape(fact)}" for fact in change.facts]
    out.add("\n".join(lines))
    if change.level == "code":
        out.listing("\n".join(change.facts) + "\n", "diff", TEXT_LIMIT)
