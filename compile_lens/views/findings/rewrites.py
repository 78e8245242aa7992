"""What Inductor's passes changed in the graphs: which pattern matched, and the nodes before and after."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.measures.chain import Address
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph
from compile_lens.record.rewrite import Pass, Rewrite

from ..document import NAME, NUMBER, TEXT, Change, Changes, Finding, Prose, Row, Section, Table, cut
from ..words import outline, quantities
from .places import title

KEY, TITLE = "rewrites", "Rewrites"
INTRO = "Where a pass of Inductor's put other nodes in the place of some, and which patterns came close."
WHERE = "capture.compilations[i].passes"
MISSING = "not in the record"

STEPS = 400
MISSES = 40
PASSES = 200


def rewrites(capture: Record) -> Finding | None:
    """The finding; ``None`` where nothing was compiled."""
    if not any(c.graphs for c in capture.compilations):
        return None
    seen = [c for c in capture.compilations if c.passes]
    if not seen:
        return Finding(KEY, TITLE, INTRO, where=WHERE, missing=MISSING)
    steps = [step for c in seen for p in c.passes for step in _steps(capture, c, p)]
    sections: list[Section] = []
    if steps:
        sections.append(Changes("changes, in order", tuple(steps[:STEPS]), max(len(steps) - STEPS, 0), WHERE))
    else:
        sections.append(Prose("", ("The passes looked at the graphs and changed nothing.",)))
    misses = [miss for c in seen for p in c.passes for miss in p.near_misses]
    if misses:
        more = [f"… and {len(misses) - MISSES} more"] if len(misses) > MISSES else []
        sections.append(Prose("patterns that came close", (*misses[:MISSES], *more)))
    sections.append(_table(capture, seen))
    # What a pattern made of many nodes tells more than a node under another name.
    plain = [f"{step.title}: {step.words[0]}" for step in steps if ": " not in step.title]
    brief = [f"{step.title}: {step.words[0]}" for step in steps if ": " in step.title]
    brief += [f"came close: {miss}" for miss in misses]
    brief += plain or ([] if steps else ["no pass changed anything"])
    fact = quantities.plural(len(steps), "change") if steps else "no change"
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections))


def _steps(capture: Record, compilation: Compilation, made: Pass) -> Iterator[Change]:
    for rewrite in made.rewrites:
        named = f"{made.name}: {rewrite.pattern}" if rewrite.pattern else made.name
        words = [_said(rewrite), f"on the way to {title(capture, compilation, made.stage)}"]
        words += [rewrite.where] if rewrite.where else []
        addresses = tuple(_addresses(compilation, made.stage, rewrite))
        yield Change(named, tuple(words), rewrite.before_text, rewrite.after_text, addresses)


def _said(rewrite: Rewrite) -> str:
    before = outline.names(rewrite.before, 6) or "nothing"
    return f"{before} → {outline.names(rewrite.after, 6) or 'nothing (removed)'}"


def _addresses(compilation: Compilation, stage: str, rewrite: Rewrite) -> Iterator[Address]:
    """What the matched nodes came from, and what stands in their place, as far as the record has them."""
    after = compilation.graphs.get(stage)
    if not isinstance(after, Graph):
        return
    before = compilation.graphs.get(after.before)
    names = {node.name for node in before.nodes} if before is not None else set()
    yield from ((compilation.id, after.before, name) for name in rewrite.origins if name in names)
    own = {node.name for node in after.nodes}
    yield from ((compilation.id, stage, name) for name in rewrite.after if name in own)


def _table(capture: Record, seen: list[Compilation]) -> Table:
    """Passes that changed something; those that looked in vain are counted."""
    rows = []
    idle = 0
    for compilation in seen:
        for made in compilation.passes:
            if not made.rewrites and not made.nodes_reordered and made.nodes_before == made.nodes_after:
                idle += 1
                continue
            nodes = f"{made.nodes_before:,} → {made.nodes_after:,}"
            stage = title(capture, compilation, made.stage)
            name = f"{made.name} in {made.body}" if made.body else made.name
            moved = f"{made.nodes_reordered:,}" if made.nodes_reordered else ""
            rows.append(Row((stage, name, nodes, f"{len(made.rewrites):,}", moved)))
    shown, left = cut(rows, PASSES)
    words = (f"{quantities.plural(idle, 'pass', 'passes')} more looked and changed nothing.",) if idle else ()
    head = ("on the way to", "pass", "nodes", "changes", "reordered")
    kinds = (TEXT, NAME, NUMBER, NUMBER, NUMBER)
    return Table("passes that changed a graph", head, kinds, shown, words, left, WHERE)
