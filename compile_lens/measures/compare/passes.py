"""Operators of one Python line that Inductor's passes rewrote on some targets, or otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compile_lens.measures.compare.fusion import Reason, listed
from compile_lens.measures.compare.target import Line, TargetPhase
from compile_lens.measures.operators import operator
from compile_lens.record.comparison import Fact
from compile_lens.record.passes import UNNAMED, Pass, Rewrite

FEW = 4
"""Names of nodes in one sentence."""


def passes(targets: Sequence[TargetPhase], line: Line) -> Iterator[Reason]:
    """The passes over the handed graph that changed a line on some targets, or in different ways."""
    changed = {target.target: rewritten(target, line) for target in targets}
    if len({frozenset(texts) for texts in changed.values()}) < 2:
        return
    facts = [Fact(name, text) for name, texts in changed.items() for text in texts]
    where = [name for name, texts in changed.items() if texts]
    facts += _near_misses(targets, line, where)
    rest = [target.target for target in targets if target.target not in where]
    how = f"and left them as they were on {listed(rest)}" if rest else "in different ways"
    yield "pattern", f"Inductor's passes rewrote operators on {listed(where)}, {how}.", tuple(facts)


def rewritten(target: TargetPhase, line: Line) -> list[str]:
    """The operators handed over that a pass changed, and what they became: ``aten.addmm became aten.mm, aten.add``."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for cid, name in target.lowered_by_line.get(line, ()):
        node = target.lowered[cid, name]
        before = [(cid, origin) for origin in node.origins if (cid, origin) in target.handed]
        same = [b for b in before if operator(target.handed[b].target) == operator(node.target)]
        if not before or (len(before) == 1 and same):
            continue
        groups.setdefault((cid, tuple(o for _, o in before)), []).append(name)
    sentences: dict[str, None] = {}
    for (cid, origins), names in groups.items():
        was = ", ".join(operator(target.handed[cid, n].target) for n in origins)
        now = ", ".join(operator(target.lowered[cid, n].target) for n in names)
        by = next((_words(p, r) for _, p, r in _rewrites(target, cid) if set(names) & set(r.after)), "")
        sentences[f"{was} became {now}{f', by {by}' if by else ''}"] = None
    return list(sentences)


def _near_misses(targets: Sequence[TargetPhase], line: Line, where: Sequence[str]) -> Iterator[Fact]:
    """The reports of other targets on the patterns that matched on some."""
    patterns = {
        rewrite.pattern
        for target in targets
        if target.target in where
        for cid, _, rewrite in _rewrites(target)
        if rewrite.pattern and any((cid, n) in target.lowered_by_line.get(line, ()) for n in rewrite.after)
    }
    for target in targets:
        for c in target.capture.compilations if target.target not in where else ():
            for one in c.passes:
                for miss in one.near_misses if one.stage == f"{target.phase}.post_grad" else ():
                    if miss.partition(":")[0] in patterns:
                        yield Fact(target.target, miss)


def rewrites_before(target: TargetPhase, line: Line, others: Sequence[TargetPhase]) -> Iterator[str]:
    """Passes over the graph before it was handed over that changed this line here and matched nothing elsewhere."""
    elsewhere = {(p.name, r.pattern) for other in others for p, r in _of_line(other, line)}
    places: dict[str, list[tuple[str, ...]]] = {}
    for one, rewrite in _of_line(target, line):
        if (one.name, rewrite.pattern) not in elsewhere:
            places.setdefault(_words(one, rewrite), []).append(rewrite.before)
    for words, names in places.items():
        first = ", ".join(f"%{name}" for name in names[0][:FEW]) + (", …" if len(names[0]) > FEW else "")
        more = f" and {len(names) - 1} places like it" if len(names) > 1 else ""
        yield f"{words} changed {first}{more}"


def _of_line(target: TargetPhase, line: Line) -> Iterator[tuple[Pass, Rewrite]]:
    here = set(target.by_line.get(line, ()))
    # Passes over a joint graph are kept with the forward.
    stages = dict.fromkeys((target.phase, "forward"))
    for cid in (c.id for c in target.capture.compilations):
        for _, one, rewrite in (r for stage in stages for r in _rewrites(target, cid, stage)):
            if any((cid, name) in here for name in rewrite.after):
                yield one, rewrite


def _rewrites(target: TargetPhase, cid: str = "", stage: str = "") -> Iterator[tuple[str, Pass, Rewrite]]:
    """The rewrites of a stage, by default ``post_grad``, of one compilation or of all."""
    key = stage or f"{target.phase}.post_grad"
    for compilation in target.capture.compilations:
        for one in compilation.passes if cid in ("", compilation.id) else ():
            if one.stage == key:
                yield from ((compilation.id, one, rewrite) for rewrite in one.rewrites)


def _words(one: Pass, rewrite: Rewrite) -> str:
    name = "a pass without a name" if one.name == UNNAMED else f"the pass {one.name}"
    return f"{name}, pattern {rewrite.pattern}" if rewrite.pattern else name
