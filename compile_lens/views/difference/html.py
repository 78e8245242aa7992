"""A difference as one self-contained page, without a script: the cause on top, each level that differs below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compile_lens.record.difference import Change, DifferenceRecord
from compile_lens.views.html.markup import (
    EDGE,
    FAINT,
    GROUND,
    MONO,
    SANS,
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
from compile_lens.views.html.sheet import sheet
from compile_lens.views.words.characters import short
from compile_lens.views.words.palette import INK

from . import outline

MANY = 100
LONG = 2_000
"""Lines of one listing."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_INKS = {"+": STATE_COLOURS["compiled"], "−": STATE_COLOURS["failed"], "-": STATE_COLOURS["failed"]}


def mimebundle(found: DifferenceRecord, include: object = None, exclude: object = None) -> dict[str, str]:
    """HTML and plain text for a notebook, as IPython asks for them."""
    from compile_lens.views.text import DEFAULT_WIDTH

    from .text import page

    makers: dict[str, Callable[[], str]] = {
        "text/plain": lambda: page(found, width=DEFAULT_WIDTH, ascii=False),
        "text/html": lambda: fragment(found),
    }
    wanted = set(makers) if include is None else set(include)  # type: ignore[call-overload]
    wanted -= set(exclude or ())  # type: ignore[call-overload]
    return {kind: make() for kind, make in makers.items() if kind in wanted}


def fragment(found: DifferenceRecord) -> str:
    """The difference as one ``<div class="compile-lens cl-difference">``."""
    parts = [div(span("compile_lens", f"font-size:12px;font-weight:600;letter-spacing:0.4px;color:{FAINT}"))]
    parts.append(div(mono(short(outline.heading(found), 400), "font-size:18px;font-weight:600")))
    ink, ground, edge = STATE_COLOURS["partial" if found else "compiled"]
    said = "".join(div(text(short(line, 1_000)), "padding:2px 0") for line in outline.summary(found))
    parts.append(
        div(
            said,
            f"background:{ground};border:1px solid {edge};color:{ink};border-radius:6px;padding:10px 14px;"
            "margin:10px 0",
            "summary",
        )
    )
    for part in outline.parts(found):
        content = "".join(_change(change) for change in part.changes[:MANY])
        left = len(part.changes) - MANY
        content += note(f"… and {left:,} more: difference.at({part.level!r})") if left > 0 else ""
        title = text(part.title) + faint(f" {len(part.changes):,}")
        parts.append(fold(title, content, f"level cl-{part.level}", open=part.level not in outline.FOLDED))
    if outline.unknown(found):
        parts.append(heading(outline.unknown(found)))
        parts += [div(text(short(reason, 600)), "font-size:13px") for reason in found.unknown[:MANY]]
    look = (
        f"{SANS};font-size:14px;line-height:1.5;color:{INK};background:{GROUND};border:1px solid {EDGE};"
        "border-radius:10px;padding:18px 22px;max-width:1600px;box-sizing:border-box;text-align:left;overflow-x:auto"
    )
    return f'<div class="compile-lens cl-difference" style="{look}">\n' + "\n".join(parts) + "\n</div>\n"


def document(found: DifferenceRecord) -> str:
    """The difference as a page of its own, with a policy that forbids scripts and outside requests."""
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(short(outline.heading(found), 200))} · compile_lens</title>\n"
        f"<style>\n{sheet(widest=1600)}</style>\n</head>\n<body>\n<main>\n{fragment(found)}</main>\n</body>\n</html>\n"
    )


def _change(change: Change) -> str:
    mark = outline.mark(change)
    ink = _INKS.get(mark, (INK, "", ""))[0]
    words = outline.figure(change) if change.name else change.text
    lines = "".join(
        div(mono(line, "font-size:12px"), "padding-left:22px") for line in change.lines[: outline.LINES]
    )
    left = len(change.lines) - outline.LINES
    lines += div(faint(f"and {left} lines more"), "padding-left:22px;font-size:12px") if left > 0 else ""
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
    return tag("pre", shown, look) + more


def _lines(facts: tuple[str, ...]) -> Iterator[str]:
    for line in facts:
        ink, ground, _ = _INKS.get(line[:1], (INK, "transparent", ""))
        yield span(block(line), f"color:{ink};background:{ground};display:block;white-space:pre")
