"""A comparison as Markdown, for issues, reviews and notes."""

from __future__ import annotations

from compile_lens.record.comparison import KINDS, ComparisonRecord
from compile_lens.views.render.markdown import TEXT_LIMIT, Out, code, escape
from compile_lens.views.words.stamp import MAY_DIFFER, of_code

from . import outline

_MANY = 200
_FENCES = {"cpp": "cpp", "triton": "python", "metal": "cpp"}


def page(comparison: ComparisonRecord) -> str:
    """The comparison as Markdown, ending in a newline. Every string of the user's is escaped or fenced."""
    out = Out()
    out.add(f"# {escape(outline.heading(comparison))}")
    out.add(escape(" · ".join(outline.made_with(comparison))))
    out.add(
        "\n".join(
            f"- **{escape(c.target)}**: {escape('; '.join(outline.column(c)))}" for c in comparison.columns
        )
    )
    for table in outline.tables(comparison):
        out.add(f"## {escape(table.phase)}")
        out.add(_table([c.target for c in comparison.columns], table.rows))
    out.add("## Why they differ")
    out.add(escape(outline.agreement(comparison)))
    for one in comparison.differences[:_MANY]:
        where = outline.where(one)
        kind = f"**{escape(KINDS.get(one.kind, one.kind))}**"
        lines = [f"{kind}{f' ({escape(where)})' if where else ''}: {escape(one.sentence)}"]
        lines += [f"- {escape(str(fact))}" for fact in one.facts]
        out.add(lines[0] + ("\n\n" + "\n".join(lines[1:]) if lines[1:] else ""))
    out.more(len(comparison.differences) - _MANY, "difference")
    if comparison.rows:
        out.add("## Kernels by line")
        for row in comparison.rows[:_MANY]:
            lines = [f"{escape(row.phase)} {code(row.place)} {code(row.text) if row.text else ''}".rstrip()]
            lines[0] += "" if row.alike else " (differs)"
            for cell in row.cells:
                said = "; ".join(outline.use(use) for use in cell.kernels) or cell.note or "no kernel"
                lines.append(f"- {escape(cell.target)}: {escape(said)}")
            out.add(lines[0] + "\n\n" + "\n".join(lines[1:]))
        out.more(len(comparison.rows) - _MANY, "line")
    if differences := outline.may_differ(comparison):
        out.add(f"## {MAY_DIFFER.capitalize()}")
        out.add("\n".join(f"- {escape(words)}" for words in differences[:_MANY]))
        out.more(len(differences) - _MANY, "thing")
    for module in outline.modules(comparison):
        for column, found in module.codes:
            if found is None:
                continue
            out.add(f"## {escape(f'{column.target}: {module.phase} {module.compilation}')}")
            out.add(escape(of_code(found)))
            if found.may_differ:
                out.add(
                    f"{MAY_DIFFER.capitalize()}:\n\n" + "\n".join(f"- {escape(t)}" for t in found.may_differ)
                )
            for kernel in found.kernels:
                if kernel.source:
                    out.add(code(kernel.name))
                    out.listing(kernel.source, _FENCES.get(kernel.language, ""), TEXT_LIMIT)
    return "\n\n".join(part for part in out.parts if part) + "\n"


def _table(targets: list[str], rows: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    head = ["", *targets]
    lines = [head, ["---", *("---:" for _ in targets)], *([title, *values] for title, values in rows)]
    return "\n".join(
        "| " + " | ".join(escape(c) if i != 1 else c for c in line) + " |" for i, line in enumerate(lines)
    )
