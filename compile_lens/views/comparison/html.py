"""A comparison as one self-contained page: figures, reasons, lines and code side by side.

As that of a capture it has two layers: one that needs no script, and one that takes its place where scripts run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compile_lens.record.comparison import (
    KINDS,
    UNEXPLAINED,
    Cell,
    Column,
    ComparisonRecord,
    Difference,
    Row,
    Use,
)
from compile_lens.record.kernel import Code, Kernel
from compile_lens.views.mime import bundle
from compile_lens.views.render.html.dark import style
from compile_lens.views.render.html.listing import listing
from compile_lens.views.render.html.markup import (
    EDGE,
    FAINT,
    FRAME,
    GROUND,
    PHASE_COLOURS,
    STATE_COLOURS,
    SUNK,
    Budget,
    div,
    faint,
    fold,
    heading,
    mono,
    note,
    scrolled,
    span,
    tag,
    text,
)
from compile_lens.views.render.html.sheet import around
from compile_lens.views.render.text import DEFAULT_WIDTH
from compile_lens.views.words import sentences, stamp
from compile_lens.views.words.characters import short
from compile_lens.views.words.launches import counted, launched
from compile_lens.views.words.outline import LANGUAGES, names, traffic
from compile_lens.views.words.palette import INK
from compile_lens.views.words.quantities import plural

from . import outline
from .live import live

_MANY = 60
"""Differences, lines and kernels shown one by one before the rest is only counted."""

_WIDTH = 300
"""Least width of a column, in CSS pixels: where they do not fit beside each other, they scroll."""


def mimebundle(
    comparison: ComparisonRecord, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
) -> dict[str, str]:
    """HTML and plain text for a notebook, as IPython asks for them."""
    from .text import page

    writers = {
        "text/plain": lambda: page(comparison, DEFAULT_WIDTH, ascii=False),
        "text/html": lambda: fragment(comparison),
    }
    return bundle(writers, include, exclude)


def fragment(comparison: ComparisonRecord, *, standalone: bool = False) -> str:
    """The comparison as one ``<div class="compile-lens cl-comparison">``, right also where its style is removed.

    ``standalone`` says that it has a page of its own.
    """
    budget = Budget()
    parts = [
        _header(comparison, standalone),
        heading("Figures", text(outline.MODELLED_NOTE)),
        *(_figures(comparison, table) for table in outline.tables(comparison)),
        heading("Why they differ", text(outline.agreement(comparison)), "why-heading"),
        *(_difference(one) for one in comparison.differences[:_MANY]),
        _more(len(comparison.differences) - _MANY, "difference", "comparison.differences"),
        _rows(comparison),
        _may_differ(comparison),
        *(_module(module, budget) for module in outline.modules(comparison)),
    ]
    page = "\n".join(part for part in parts if part)
    inner = f'<div class="cl-static" style="{FRAME}">\n{page}\n</div>'
    own = " data-standalone" if standalone else ""
    dark = style(".cl-comparison")
    alive = live(comparison)
    return f'<div class="compile-lens cl-comparison"{own}>\n{dark}{inner}\n{alive}</div>\n'


def document(comparison: ComparisonRecord) -> str:
    """The comparison as a page of its own, with a policy that forbids outside requests."""
    title = text(short(outline.heading(comparison), 200))
    page = fragment(comparison, standalone=True)
    return around(page, title, "", widest=1600)


def _may_differ(comparison: ComparisonRecord) -> str:
    differences = outline.may_differ(comparison)
    if not differences:
        return ""
    lines = [div(text(short(words, 1000)), "font-size:13px;padding:1px 0") for words in differences[:_MANY]]
    more = _more(len(differences) - _MANY, "thing", "capture.target.may_differ and .queries")
    return heading(text(stamp.MAY_DIFFER.capitalize()), "", "may-differ-heading") + "".join(lines) + more


def _header(comparison: ComparisonRecord, standalone: bool) -> str:
    brand = span("compile_lens", f"font-size:12px;font-weight:600;letter-spacing:.4px;color:{FAINT}")
    name = mono(short(comparison.function, 300), "font-size:22px;font-weight:600")
    said = text(short(outline.heading(comparison).removeprefix(comparison.function), 300))
    top = div(brand) + tag(
        "h1" if standalone else "div",
        name + span(said, "font-size:16px;font-weight:400;margin-left:6px"),
        "margin:2px 0 6px;font-size:22px;line-height:1.3",
    )
    facts = faint(" · ".join(text(short(f, 300)) for f in outline.made_with(comparison)), "font-size:13px")
    inputs = dict.fromkeys(i for c in comparison.captures.values() for i in c.inputs[:20])
    given = "".join(div(mono(i, "font-size:13px"), "padding:1px 0") for i in inputs)
    cards = _side_by_side([_card(column) for column in comparison.columns])
    return div(top + div(facts) + given, "", "header") + cards


def _card(column: Column) -> str:
    ink, ground, edge = STATE_COLOURS[outline.mood(column)]
    name = div(mono(column.target, f"font-size:16px;font-weight:600;color:{ink}"))
    lines = [div(text(short(fact, 1000)), "font-size:13px") for fact in outline.column(column)]
    look = f"border:1px solid {edge};border-radius:8px;background:{ground};padding:8px 14px"
    return div(
        name + "".join(lines),
        f"{look};height:100%;box-sizing:border-box",
        f"target cl-{outline.mood(column)}",
    )


def _side_by_side(columns: Sequence[str], cls: str = "columns") -> str:
    """Columns of equal width that scroll together where they do not fit."""
    cells = [
        div(content, f"flex:1 0 {_WIDTH}px;min-width:0;width:{_WIDTH}px", "column") for content in columns
    ]
    look = "display:flex;gap:10px;margin:8px 0;align-items:stretch"
    return scrolled("".join(cells), look, cls)


def _figures(comparison: ComparisonRecord, table: outline.Table) -> str:
    head = _cell(
        text(table.phase), "th", SUNK, f"text-align:left;color:{PHASE_COLOURS.get(table.phase, INK)}"
    )
    head += "".join(_cell(text(c.target), "th", SUNK, "text-align:right") for c in comparison.columns)
    rows = [tag("tr", head, f"background:{SUNK}")]
    for title, values in table.rows:
        differ = len(set(values)) > 1
        cells = _cell(text(title), "td", GROUND, "text-align:left")
        words = "font-size:12px;" if title == "kernel kinds" else ""
        for value in values:
            cells += _cell(
                tag("b", text(value)) if differ else text(value), "td", GROUND, f"{words}text-align:right"
            )
        rows.append(tag("tr", cells, f"background:{GROUND}"))
    look = f"border-collapse:collapse;margin:0;background:{GROUND};color:{INK};border:1px solid {EDGE};font-size:13px"
    return scrolled(tag("table", "".join(rows), look, "figures"), "margin:0 0 10px 0")


def _cell(content: str, name: str, ground: str, style: str = "") -> str:
    return tag(name, content, f"padding:5px 12px;background:{ground};border-bottom:1px solid {EDGE};{style}")


def _difference(one: Difference) -> str:
    ink, ground, edge = STATE_COLOURS[
        "nothing" if one.sentence == UNEXPLAINED else "failed" if one.kind == "failed" else "compiled"
    ]
    pill = f"color:{ink};background:{ground};border:1px solid {edge};border-radius:6px;padding:1px 8px"
    kind = span(text(KINDS.get(one.kind, one.kind)), f"font-weight:600;margin-right:8px;{pill}")
    where = faint(text(short(outline.where(one), 300)), "font-size:13px")
    said = div(text(short(one.sentence, 1000)), "font-weight:600;margin:4px 0")
    facts = "".join(_fact(f.target, f.text) for f in one.facts)
    look = f"border:1px solid {EDGE};border-radius:8px;padding:8px 14px;margin:8px 0"
    return div(div(kind + where) + said + facts, look, f"difference cl-{text(one.kind)}")


def _fact(target: str, words: str) -> str:
    who = mono(target, "font-weight:600;font-size:13px;margin-right:6px") if target else ""
    return div(who + text(short(words, 2000)), "padding:1px 0 1px 12px;font-size:13px", "fact")


def _rows(comparison: ComparisonRecord) -> str:
    if not comparison.rows:
        return ""
    parts = [
        heading("Kernels by line", "what each Python line became; those that differ are open", "rows-heading")
    ]
    rows = comparison.rows
    shown = set(id(row) for row in sorted(rows, key=lambda row: row.alike)[:_MANY])
    parts += [_row(row) for row in rows if id(row) in shown]
    parts.append(_more(len(rows) - _MANY, "line", "comparison.rows"))
    return "".join(parts)


def _row(row: Row) -> str:
    phase = span(
        text(row.phase), f"color:{PHASE_COLOURS.get(row.phase, INK)};font-weight:600;margin-right:8px"
    )
    place = mono(row.place, "font-size:12px;font-weight:600;margin-right:8px")
    sign = (
        ""
        if row.alike
        else span(
            " differs", f"color:{STATE_COLOURS['nothing'][0]};font-weight:600;margin-left:8px;font-size:13px"
        )
    )
    head = phase + place + mono(short(row.text, 300), "font-size:12px") + sign
    return fold(head, _side_by_side([_line_cell(cell) for cell in row.cells]), "row", open=not row.alike)


def _line_cell(cell: Cell) -> str:
    parts = [div(mono(cell.target, "font-weight:600;font-size:13px"))]
    parts += [div(_use(use), "margin:4px 0") for use in cell.kernels[:_MANY]]
    parts.append(_more(len(cell.kernels) - _MANY, "kernel", "Cell.kernels"))
    if not cell.kernels:
        parts.append(note(text(short(cell.note, 500)) or "no kernel"))
    if cell.operators:
        parts.append(div(faint("from " + text(outline.operators(cell.operators)), "font-size:12px")))
    return div("".join(parts), "font-size:13px")


def _use(use: Use) -> str:
    if use.language == "extern":
        return (
            mono(use.called, "font-size:12px;font-weight:600")
            + faint(" library call", "font-size:12px")
            + _also(use)
        )
    language = LANGUAGES.get(use.language, use.language)
    return (
        mono(use.name, "font-size:12px;font-weight:600")
        + faint(f" {text(language)} {text(use.kind)}", "font-size:12px")
        + _also(use)
    )


def _also(use: Use) -> str:
    said = f", {counted(use.launches, 'launch', 'launches')}" if use.launches != 1 else ""
    said += f", also {names(use.lines, 4)}" if use.lines else ""
    return faint(text(said), "font-size:12px") if said else ""


def _module(module: outline.Module, budget: Budget) -> str:
    detail = f"compilation {module.compilation}, as Inductor wrote it for each target"
    title = (
        f"Code of the {module.phase} graph" if module.phase == "inference" else f"Code of the {module.phase}"
    )
    columns = [_code(column, code, budget) for column, code in module.codes]
    return heading(text(title), text(detail), "code-heading") + _side_by_side(columns, "code-columns")


def _code(column: Column, code: Code | None, budget: Budget) -> str:
    name = div(mono(column.target, "font-weight:600;font-size:14px"))
    if code is None:
        return name + note(text(short(column.failure or sentences.NO_CODE, 500)))
    said = div(text(stamp.of_code(code)), f"font-size:12px;color:{FAINT}", "stamp")
    parts = [name, said]
    if code.may_differ:
        lines = "".join(div(text(short(t, 1000)), "font-size:12px;padding:1px 0") for t in code.may_differ)
        parts.append(fold(span(text(stamp.may_differ(code)), "font-size:12px"), lines, "may-differ"))
    for kernel in code.kernels[:_MANY]:
        parts.append(_kernel(code, kernel, budget))
    parts.append(_more(len(code.kernels) - _MANY, "kernel", "capture.kernels"))
    whole = listing(code.text, "python", budget, height=420)
    parts.append(fold(span("the whole module", "font-size:12px"), whole, "wrapper", level=1))
    return "".join(parts)


def _kernel(code: Code, kernel: Kernel, budget: Budget) -> str:
    kind = (
        "library call"
        if kernel.language == "extern"
        else f"{LANGUAGES.get(kernel.language, kernel.language)} {kernel.kind}"
    )
    facts = [kind, launched(code, kernel), traffic(kernel)]
    head = mono(kernel.name, "font-size:12px;font-weight:600;overflow-wrap:anywhere")
    head += faint(" " + text(" · ".join(f for f in facts if f)), "font-size:12px")
    if not kernel.source:
        return div(
            head,
            f"border:1px solid {EDGE};border-radius:6px;padding:7px 12px;margin:6px 0;overflow-wrap:anywhere",
            "kernel",
        )
    body = listing(kernel.source, kernel.language, budget, height=420)
    return fold(head, body, "kernel", open=True)


def _more(count: int, what: str, where: str) -> str:
    return note(f"and {plural(count, what)} more: {text(where)}") if count > 0 else ""
