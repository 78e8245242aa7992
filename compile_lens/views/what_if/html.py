"""What switches would change as a page: a row for each, which opens the difference that the switch makes.

It needs no script. Where the page is a file, each row also leads to the living page of its difference, beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from compile_lens.measures.diff.levels import difference
from compile_lens.record.difference import DifferenceRecord
from compile_lens.record.what_if import Trial, WhatIfRecord
from compile_lens.views.difference.html import static
from compile_lens.views.mime import text_and_html
from compile_lens.views.render.html.dark import style
from compile_lens.views.render.html.markup import (
    FRAME,
    MONO,
    STATE_COLOURS,
    block,
    div,
    faint,
    fold,
    heading,
    mono,
    note,
    tag,
    text,
)
from compile_lens.views.render.html.sheet import around
from compile_lens.views.words.characters import short

from . import outline

WRAPS = "white-space:pre-wrap;overflow-wrap:anywhere"
"""Code to copy: a line too long for its place goes on below, and is copied as one."""

MOST = 1_000_000
"""Characters of HTML that the differences of one page take; the rows beyond them say how to ask for theirs."""


def mimebundle(
    found: WhatIfRecord, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
) -> dict[str, str]:
    """HTML and plain text for a notebook, as IPython asks for them."""
    from .text import page

    return text_and_html(found, page, fragment, include, exclude)


def fragment(found: WhatIfRecord, pages: Mapping[str, str] | None = None, *, standalone: bool = False) -> str:
    """The outcome as one ``<div class="compile-lens cl-what-if">``.

    ``pages``: files of differences by switch. ``standalone``: it has a page of its own.
    """
    ink, ground, edge = STATE_COLOURS["compiled" if found.helpful else "partial"]
    said = f"background:{ground};border:1px solid {edge};color:{ink};border-radius:8px;padding:7px 14px;margin:10px 0"
    parts = [
        tag(
            "h1" if standalone else "div",
            mono(short(outline.heading(found), 400), "font-size:18px;font-weight:600"),
            "margin:0;font-size:18px;overflow-wrap:anywhere",
        ),
        div(text(short(outline.headline(found), 1_000)), f"{said};overflow-wrap:anywhere", "summary"),
    ]
    rows = outline.rows(found)
    if rows:
        parts.append(heading(text(outline.SOMETHING), "each opens what it changes"))
    left = MOST
    for trial in rows:
        row, left = _row(found, trial, left, (pages or {}).get(trial.name, ""))
        parts.append(row)
    for title, names in outline.rest(found):
        parts += [heading(text(title)), div(mono(names, "font-size:13px"))]
    untried = outline.not_tried(found)
    if untried:
        parts.append(heading("not tried"))
    parts += [
        div(mono(name, "font-size:13px") + text(f": {short(why, 600)}"), "font-size:13px")
        for name, why in untried
    ]
    inside = "\n".join(parts)
    return (
        f'<div class="compile-lens cl-what-if">\n{style(".cl-what-if")}'
        f'<div class="cl-static" style="{FRAME}">\n{inside}\n</div>\n</div>\n'
    )


def _row(found: WhatIfRecord, trial: Trial, left: int, page: str) -> tuple[str, int]:
    """A row, and how many characters of differences are left for those below."""
    head = mono(", ".join(trial.settings), "font-weight:600") + " " + text(outline.said(trial))
    head += faint(f" {text(trial.meaning)}", "font-size:13px;margin-left:6px")
    link = tag("a", "its difference as a living page", "", "", f'href="{quote(page)}"') if page else ""
    copied = ""
    if trial in found.helpful:
        copied = tag(
            "pre", block(trial.to_apply), f"{MONO};font-size:13px;margin:4px 0 12px 12px;{WRAPS}", "apply"
        )
    inside = static(of(found, trial))
    if len(inside) > left:
        inside = note(f"its difference is too long for this page: {text(f'.diff({trial.name!r})')}")
    return fold(head, (div(link) if link else "") + inside, "trial") + copied, left - len(inside)


def of(found: WhatIfRecord, trial: Trial) -> DifferenceRecord:
    """The difference that a trial makes."""
    assert trial.capture is not None  # one that changes a figure has one
    return difference(found.base, trial.capture, DifferenceRecord)


def document(found: WhatIfRecord, pages: Mapping[str, str]) -> str:
    """The outcome as a page of its own, with a policy that forbids outside requests."""
    title = text(short(outline.heading(found), 200))
    return around(fragment(found, pages, standalone=True), title, "", widest=1600)
