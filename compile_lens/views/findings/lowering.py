"""Findings on the lowering of each ATen node (inlined into the loops that read it, or given a buffer, and why), and on
the rewrites before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compile_lens.measures.chain import Address
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph
from compile_lens.record.lowering import REALIZED, Lowered, Pass, Rewrite
from compile_lens.record.messages import first_names

from ..document import (
    NAME,
    NOTE,
    NUMBER,
    TEXT,
    Change,
    Changes,
    Finding,
    Prose,
    Row,
    Section,
    Table,
    cut,
)
from ..words import quantities
from .fusion import loops_in_short
from .places import Place, places, title

KEY, TITLE = "lowering", "Lowering"
INTRO = (
    "Before there is anything to fuse, lowering computes a value inside each loop that reads it, "
    "or gives it a loop and a buffer of its own."
)
WHERE = "capture.compilations[i].lowered"
MISSING = "not in the record"

NODES = 2_000

OF_LIBRARY_CALLS = "for a library call"
"""Label of the reason ``extern`` in counts; values read by a call have it too, so it does not count calls."""


def lowering(capture: Record) -> Finding | None:
    """Return the finding; None if nothing was lowered."""
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
        return Finding(KEY, TITLE, INTRO, where=WHERE, missing=capture.lacks(claims.LOWERING) or MISSING)
    fact = f"{inlined} inlined, {realised} not"
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections))


def _counts(ours: Sequence[Lowered]) -> str:
    ranked = Counter(one.reason or "no reason given" for one in ours).most_common()
    counts = ", ".join(f"{count} {OF_LIBRARY_CALLS if kind == 'extern' else kind}" for kind, count in ranked)
    return f" ({counts})" if counts else ""


def _realised(place: Place, ours: Sequence[Lowered]) -> Table:
    rows, left = cut([_row(place, one) for one in ours], NODES)
    kinds = dict.fromkeys(one.reason for one in ours if one.reason in REALIZED)
    words = [
        f"{kind}: {REALIZED[kind].sentence}"
        + (f" To try: {REALIZED[kind].remedy}" if REALIZED[kind].remedy else "")
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


REWRITES_KEY, REWRITES_TITLE = "rewrites", "Rewrites"
REWRITES_INTRO = "Where Inductor's passes replaced nodes, and which patterns came close."
REWRITES_WHERE = "capture.compilations[i].passes"
REWRITES_MISSING = "not in the record"

STEPS = 400
MISSES = 40
PASSES = 200


def rewrites(capture: Record) -> Finding | None:
    """Return the finding; None if nothing was compiled."""
    if not any(c.graphs for c in capture.compilations):
        return None
    seen = [c for c in capture.compilations if c.passes]
    if not seen:
        missing = capture.lacks(claims.REWRITES) or REWRITES_MISSING
        return Finding(REWRITES_KEY, REWRITES_TITLE, REWRITES_INTRO, where=REWRITES_WHERE, missing=missing)
    steps = [step for c in seen for p in c.passes for step in _steps(capture, c, p)]
    sections: list[Section] = []
    if steps:
        sections.append(
            Changes("changes, in order", tuple(steps[:STEPS]), max(len(steps) - STEPS, 0), REWRITES_WHERE)
        )
    else:
        sections.append(Prose("", ("The passes looked at the graphs and changed nothing.",)))
    misses = [miss for c in seen for p in c.passes for miss in p.near_misses]
    if misses:
        more = [f"… and {len(misses) - MISSES} more"] if len(misses) > MISSES else []
        sections.append(Prose("patterns that came close", (*misses[:MISSES], *more)))
    sections.append(_table(capture, seen))
    # A pattern over several nodes is more informative than a renamed node.
    plain = [f"{step.title}: {step.words[0]}" for step in steps if ": " not in step.title]
    brief = [f"{step.title}: {step.words[0]}" for step in steps if ": " in step.title]
    brief += [f"came close: {miss}" for miss in misses]
    brief += plain or ([] if steps else ["no pass changed anything"])
    fact = quantities.plural(len(steps), "change") if steps else "no change"
    return Finding(
        REWRITES_KEY, REWRITES_TITLE, REWRITES_INTRO, fact, tuple(brief), REWRITES_WHERE, tuple(sections)
    )


def _steps(capture: Record, compilation: Compilation, one: Pass) -> Iterator[Change]:
    for rewrite in one.rewrites:
        named = f"{one.name}: {rewrite.pattern}" if rewrite.pattern else one.name
        words = [_rewrite_words(rewrite), f"on the way to {title(capture, compilation, one.stage)}"]
        words += [rewrite.where] if rewrite.where else []
        addresses = tuple(_rewrites_addresses(compilation, one.stage, rewrite))
        yield Change(named, tuple(words), rewrite.before_text, rewrite.after_text, addresses)


def _rewrite_words(rewrite: Rewrite) -> str:
    before = first_names(rewrite.before, 6) or "nothing"
    return f"{before} → {first_names(rewrite.after, 6) or 'nothing (removed)'}"


def _rewrites_addresses(compilation: Compilation, stage: str, rewrite: Rewrite) -> Iterator[Address]:
    """Yield the addresses of the matched nodes and of their replacement, as far as the record has them."""
    after = compilation.graphs.get(stage)
    if not isinstance(after, Graph):
        return
    before = compilation.graphs.get(after.before)
    names = {node.name for node in before.nodes} if before is not None else set()
    yield from ((compilation.id, after.before, name) for name in rewrite.origins if name in names)
    own = {node.name for node in after.nodes}
    yield from ((compilation.id, stage, name) for name in rewrite.after if name in own)


def _table(capture: Record, seen: list[Compilation]) -> Table:
    """Return the table of the passes that changed something; the others are only counted."""
    rows = []
    idle = 0
    for compilation in seen:
        for one in compilation.passes:
            if not one.rewrites and not one.nodes_reordered and one.nodes_before == one.nodes_after:
                idle += 1
                continue
            nodes = f"{one.nodes_before:,} → {one.nodes_after:,}"
            stage = title(capture, compilation, one.stage)
            name = f"{one.name} in {one.body}" if one.body else one.name
            moved = f"{one.nodes_reordered:,}" if one.nodes_reordered else ""
            rows.append(Row((stage, name, nodes, f"{len(one.rewrites):,}", moved)))
    shown, left = cut(rows, PASSES)
    words = (f"{quantities.plural(idle, 'pass', 'passes')} more looked and changed nothing.",) if idle else ()
    head = ("on the way to", "pass", "nodes", "changes", "reordered")
    kinds = (TEXT, NAME, NUMBER, NUMBER, NUMBER)
    return Table("passes that changed a graph", head, kinds, shown, words, left, REWRITES_WHERE)
