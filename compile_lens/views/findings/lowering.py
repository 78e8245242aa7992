"""What lowering made of each ATen node: computed inside the loops that read it, or given a buffer, and why."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.record.capture import Record
from compile_lens.record.lowering import REALISED, Lowered

from ..document import NAME, NOTE, TEXT, Finding, Row, Section, Table, cut
from ..words import quantities
from .fusion import loops_in_short
from .places import Place, places

KEY, TITLE = "lowering", "Lowering"
INTRO = (
    "Before there is anything to fuse, lowering computes a value inside each loop that reads it, "
    "or gives it a loop and a buffer of its own."
)
WHERE = "capture.compilations[i].lowered"
MISSING = "not in the record"

NODES = 2_000


def lowering(capture: Record) -> Finding | None:
    """The finding; ``None`` where nothing was lowered."""
    seen = [place for place in places(capture) if place.graph("loops") is not None]
    if not seen:
        return None
    sections: list[Section] = []
    brief: list[str] = []
    inlined = realised = 0
    for place in seen:
        own = [one for one in place.compilation.lowered if one.phase == place.phase]
        ours = [one for one in own if one.buffer or one.parts]
        rest = [one for one in own if not one.buffer and not one.parts and one.loops]
        inlined, realised = inlined + len(rest), realised + len(ours)
        sections += [_realised(place, ours)] if ours else []
        sections += [_inlined(place, rest)] if rest else []
        if own:
            brief.append(f"{place.title}: {len(rest)} inlined, {len(ours)} given a buffer{_counts(ours)}")
    if not sections:
        return Finding(KEY, TITLE, INTRO, where=WHERE, missing=MISSING)
    fact = f"{inlined} inlined, {realised} not"
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections))


def _counts(ours: Sequence[Lowered]) -> str:
    kinds: dict[str, int] = {}
    for one in ours:
        kinds[one.reason or "no reason given"] = kinds.get(one.reason or "no reason given", 0) + 1
    said = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda i: -i[1]))
    return f" ({said})" if said else ""


def _realised(place: Place, ours: Sequence[Lowered]) -> Table:
    rows, left = cut([_row(place, one) for one in ours], NODES)
    kinds = dict.fromkeys(one.reason for one in ours if one.reason in REALISED)
    words = [
        f"{kind}: {REALISED[kind].sentence}"
        + (f" To try: {REALISED[kind].remedy}" if REALISED[kind].remedy else "")
        for kind in kinds
    ]
    title = f"{place.title}: {quantities.plural(len(ours), 'value')} given a buffer"
    head = ("ATen node", "written by", "why", "also computed in", "shown by")
    kinds_of = (NAME, NAME, TEXT, NAME, NOTE)
    return Table(title, head, kinds_of, rows, tuple(words), left, WHERE)


def _row(place: Place, one: Lowered) -> Row:
    shown = "; ".join(words for words in (one.evidence, one.where) if words)
    by = one.buffer or f"{loops_in_short(one.parts)} (a part of it)"
    cells = (one.node, by, one.reason or "no reason given", loops_in_short(one.inlined), shown)
    return Row(cells, _addresses(place, one))


def _addresses(place: Place, one: Lowered) -> tuple[tuple[str, str, str], ...]:
    loops = dict.fromkeys((one.buffer, *one.parts, *one.loops))
    return (place.at("post_grad", one.node), *(place.at("loops", loop) for loop in loops if loop))


def _inlined(place: Place, rest: Sequence[Lowered]) -> Table:
    rows = []
    for one in rest:
        again = f"{len(one.loops)} times" if len(one.loops) > 1 else "once"
        rows.append(Row((one.node, loops_in_short(one.loops), again), _addresses(place, one)))
    shown, left = cut(rows, NODES)
    title = f"{place.title}: {quantities.plural(len(rest), 'value')} inlined"
    words = ("They have no buffer: each of these loops computes the value where it reads it.",)
    head = ("ATen node", "into", "computed")
    return Table(title, head, (NAME, NAME, TEXT), shown, words, left, WHERE)
