"""Where Python took over, in HTML: each place with the compiler's reason, hint, link and stack."""

from __future__ import annotations

from compile_lens.record.capture import Record
from compile_lens.record.messages import plain

from ...words import outcome, quantities, sentences
from ...words.characters import short
from .markup import FAINT, MONO, STATE_COLOURS, block, div, faint, fold, heading, mono, note, span, tag, text

_MANY = 40
"""Places shown one by one before the rest is only counted."""

_OPEN = 3
"""Up to so many are open when the page is first seen."""


def eager(capture: Record) -> str:
    """Every graph break and everything that was skipped; ``""`` where all of the program was compiled."""
    found = outcome.eager(capture)
    if not found:
        return ""
    parts = [heading("Ran eagerly", "what Python ran in place of compiled code, and why", "eager-heading")]
    for one in found[:_MANY]:
        summary = (
            tag("b", text(short(one.head, 400)))
            + " "
            + faint(text(short(outcome.reason(one.ending).what, 400)))
        )
        parts.append(fold(summary, _place(one), "break", open=len(found) <= _OPEN))
    if len(found) > _MANY:
        more = quantities.plural(len(found) - _MANY, "place")
        parts.append(note(f"and {more} more: capture.breaks, capture.skipped"))
    return "".join(parts)


def _place(one: outcome.Eager) -> str:
    reason = outcome.reason(one.ending)
    look = "white-space:pre-wrap"
    parts = [div(block(short(reason.what)), f"{look};font-weight:600;color:{STATE_COLOURS['partial'][0]}")]
    parts += [div(block(short(said)), f"{look};margin:2px 0 0") for said in (reason.why, one.why) if said]
    for title, said in (("Hint", reason.hint), ("More", reason.link)):
        if said:
            strong = span(title, f"font-weight:600;color:{FAINT};margin-right:6px")
            parts.append(div(strong + block(short(said)), f"{look};margin:6px 0 0"))
    for frame in one.ending.frames:
        at = mono(f"{frame.file}:{frame.within}", "font-size:12px")
        at += faint(f" in {text(plain(frame.function))}", "font-size:12px")
        line = frame.text.strip()
        code = div(mono(line, "font-size:12px"), "padding-left:18px") if line else ""
        parts.append(div(at + code, "margin:6px 0 0", "frame"))
    if reason.whole:
        whole = div(block(short(reason.whole)), f"{look};{MONO};font-size:12px")
        parts.append(fold(faint(sentences.WHOLE_MESSAGE), whole, "message", level=1))
    return "".join(parts)
