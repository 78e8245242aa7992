"""A difference as one self-contained page: the cause on top, each level that differs below it.

As that of a comparison it has two layers: one that needs no script, and one that takes its place where scripts run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compile_lens.record.difference import Change, DifferenceRecord
from compile_lens.record.figures import MODELLED
from compile_lens.views.mime import bundle
from compile_lens.views.render.html.dark import style
from compile_lens.views.render.html.markup import (
    EDGE,
    FRAME,
    MONO,
    STATE_COLOURS,
    SUNK,
    block,
    div,
    faint,
    fold,
    heading,
    mono,
    note,
    span,
    tag,
    text,
)
from compile_lens.views.render.html.sheet import around
from compile_lens.views.render.text import DEFAULT_WIDTH
from compile_lens.views.words.characters import short
from compile_lens.views.words.palette import INK

from . import outline
from .live import live

MANY = 100
LONG = 2_000
"""Lines of one listing."""

_COLUMN = "flex:1 1 460px;min-width:0;max-width:100%"
_WHOLE = "flex:1 1 100%;min-width:0;max-width:100%"
_WIDE = ("code",)
"""Levels that hold listings, which want the whole width."""

_INKS = {"+": STATE_COLOURS["compiled"], "−": STATE_COLOURS["failed"], "-": STATE_COLOURS["failed"]}


def mimebundle(
    found: DifferenceRecord, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
) -> dict[str, str]:
    """HTML and plain text for a notebook, as IPython asks for them."""
    from .text import page

    writers = {
        "text/plain": lambda: page(found, DEFAULT_WIDTH, ascii=False),
        "text/html": lambda: fragment(found),
    }
    return bundle(writers, include, exclude)


def fragment(found: DifferenceRecord, *, standalone: bool = False) -> str:
    """The difference as one ``<div class="compile-lens cl-difference">``. ``standalone``: it has a page of its own."""
    name = mono(short(outline.heading(found), 400), "font-size:18px;font-weight:600")
    top = tag(
        "h1" if standalone else "div", name, "margin:0;font-size:18px;line-height:1.3;overflow-wrap:anywhere"
    )
    inside = f'<div class="cl-static" style="{FRAME}">\n{top}\n{static(found)}\n</div>\n'
    own = " data-standalone" if standalone else ""
    return f'<div class="compile-lens cl-difference"{own}>\n{style(".cl-difference")}{inside}{live(found)}</div>\n'


def static(found: DifferenceRecord) -> str:
    """What the difference says below its title, as HTML that needs no script."""
    parts = [_summary(found), _figures(found)]
    levels = "".join(
        div(_level(part), _COLUMN if part.level not in _WIDE else _WHOLE) for part in outline.parts(found)
    )
    parts.append(div(levels, "display:flex;flex-wrap:wrap;gap:0 20px;align-items:flex-start", "levels"))
    if outline.unknown(found):
        parts.append(heading(outline.unknown(found)))
        parts += [div(text(short(reason, 600)), "font-size:13px") for reason in found.unknown[:MANY]]
    return "\n".join(part for part in parts if part)


def _summary(found: DifferenceRecord) -> str:
    """The cause, which is what a reader came for."""
    ink, ground, edge = STATE_COLOURS["partial" if found else "compiled"]
    said = (*outline.causes(found), *outline.apart(found)) if found else outline.summary(found)
    lines = "".join(
        div(text(short(line, 1_000)), f"padding:2px 0{';font-size:16px;font-weight:600' * (i == 0)}")
        for i, line in enumerate(said)
    )
    look = f"background:{ground};border:1px solid {edge};color:{ink};border-radius:8px;padding:7px 14px;margin:10px 0"
    return div(lines, f"{look};overflow-wrap:anywhere", "summary")


def _figures(found: DifferenceRecord) -> str:
    """What it came to: each count before and after."""
    if not found:
        return ""
    boxes = "".join(_figure(change) for change in found.at("figures"))
    row = "display:flex;flex-wrap:wrap;gap:8px;margin:0 0 10px 0"
    return div(boxes, row, "figures") if boxes else note(outline.NO_FIGURE)


def _figure(change: Change) -> str:
    look = f"border:1px solid {EDGE};border-radius:8px;padding:4px 12px"
    if change.before is None or change.after is None:
        return div(text(outline.figure(change)), look)
    said = f"{change.before:,} → {change.after:,}"
    modelled = ", modelled" if change.basis == MODELLED else ""
    below = f"{change.name.replace('_', ' ')}, {change.after - change.before:+,}{modelled}"
    return div(
        div(text(said), "font-size:17px;font-weight:600;line-height:1.3")
        + faint(text(below), "font-size:12px"),
        look,
    )


def _level(part: outline.Part) -> str:
    content = "".join(_change(change) for change in part.changes[:MANY])
    left = len(part.changes) - MANY
    content += note(f"… and {left:,} more: difference.at({part.level!r})") if left > 0 else ""
    title = text(part.title) + faint(f" {len(part.changes):,}")
    return fold(title, content, f"level cl-{part.level}", open=part.level not in outline.FOLDED)


def document(found: DifferenceRecord) -> str:
    """The difference as a page of its own, with a policy that forbids outside requests."""
    title = text(short(outline.heading(found), 200))
    return around(fragment(found, standalone=True), title, "", widest=1600)


def _change(change: Change) -> str:
    mark = outline.mark(change)
    ink = _INKS.get(mark, (INK, "", ""))[0]
    words = outline.figure(change) if change.name else change.text
    lines = "".join(
        div(mono(line, "font-size:12px"), "padding-left:22px") for line in change.lines[: outline.LINES]
    )
    left = len(change.lines) - outline.LINES
    lines += (
        div(faint(f"and {outline.plural(left, 'more line')}"), "padding-left:22px;font-size:12px")
        if left > 0
        else ""
    )
    head = div(span(mark, f"{MONO};color:{ink};font-weight:600;margin-right:8px") + text(short(words, 1_000)))
    if change.level == "code":
        return div(head + lines + _listing(change.facts), "margin:6px 0", "change")
    facts = "".join(
        div(faint(text(short(fact, 600))), "padding-left:22px;font-size:13px") for fact in change.facts
    )
    return div(head + lines + facts, "margin:6px 0", "change")


def _listing(facts: tuple[str, ...]) -> str:
    """Lines that differ, each in the colour of its side."""
    shown = "".join(_lines(facts[:LONG]))
    more = note(f"… and {len(facts) - LONG:,} lines more: Change.facts") if len(facts) > LONG else ""
    look = f"{MONO};font-size:12px;line-height:1.45;background:{SUNK};padding:8px;margin:4px 0 4px 22px;overflow-x:auto"
    return tag("pre", shown, look, extra='tabindex="0"') + more


def _lines(facts: tuple[str, ...]) -> Iterator[str]:
    for line in facts:
        ink, ground, _ = _INKS.get(line[:1], (INK, "transparent", ""))
        yield span(block(line), f"color:{ink};background:{ground};display:block;white-space:pre")
