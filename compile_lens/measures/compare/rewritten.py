"""What Inductor's passes made of the operators of one Python line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compile_lens.measures.compare.target import Line, Side
from compile_lens.measures.operators import operator
from compile_lens.record.compilation import Compilation
from compile_lens.record.rewrite import UNNAMED, Pass, Rewrite

FEW = 4
"""Names of nodes that are told."""


def rewritten(side: Side, line: Line) -> list[str]:
    """What was handed over and what became of it, where a pass changed it: ``aten.addmm became aten.mm, aten.add``."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for cid, name in side.lowered_by_line.get(line, ()):
        node = side.lowered[cid, name]
        before = [(cid, origin) for origin in node.origins if (cid, origin) in side.handed]
        same = [b for b in before if operator(side.handed[b].target) == operator(node.target)]
        if not before or (len(before) == 1 and same):
            continue
        groups.setdefault((cid, tuple(o for _, o in before)), []).append(name)
    told: dict[str, None] = {}
    for (cid, before_names), names in groups.items():
        was = ", ".join(operator(side.handed[cid, n].target) for n in before_names)
        now = ", ".join(operator(side.lowered[cid, n].target) for n in names)
        by = _by(side, cid, names)
        told[f"{was} became {now}{f', by {by}' if by else ''}"] = None
    return list(told)


def _by(side: Side, cid: str, names: Sequence[str]) -> str:
    """The pass that made these nodes, where one said so."""
    compilation = next(c for c in side.capture.compilations if c.id == cid)
    for found, rewrite in _rewrites(compilation, f"{side.phase}.post_grad"):
        if set(names) & set(rewrite.after):
            return _words(found, rewrite)
    return ""


def rewrites_before(side: Side, line: Line, others: Sequence[Side]) -> Iterator[str]:
    """Passes over the graph before it was handed over that changed this line here and ran into nothing elsewhere."""
    elsewhere = {(p.name, r.pattern) for other in others for p, r, _ in _of_line(other, line)}
    told: dict[str, list[tuple[str, ...]]] = {}
    for found, rewrite, _ in _of_line(side, line):
        if (found.name, rewrite.pattern) not in elsewhere:
            told.setdefault(_words(found, rewrite), []).append(rewrite.before)
    for words, places in told.items():
        first = ", ".join(f"%{name}" for name in places[0][:FEW]) + (", …" if len(places[0]) > FEW else "")
        yield f"{words} changed {first}" + (
            f" and {len(places) - 1} places like it" if len(places) > 1 else ""
        )


def _of_line(side: Side, line: Line) -> Iterator[tuple[Pass, Rewrite, str]]:
    here = set(side.by_line.get(line, ()))
    for c in side.capture.compilations:
        for stage in dict.fromkeys(
            (side.phase, "forward")
        ):  # passes over a joint graph are kept with the forward
            for found, rewrite in _rewrites(c, stage):
                if any((c.id, name) in here for name in rewrite.after):
                    yield found, rewrite, c.id


def _rewrites(compilation: Compilation, stage: str) -> Iterator[tuple[Pass, Rewrite]]:
    for found in compilation.passes:
        if found.stage == stage:
            for rewrite in found.rewrites:
                yield found, rewrite


def _words(found: Pass, rewrite: Rewrite) -> str:
    name = "a pass without a name" if found.name == UNNAMED else f"the pass {found.name}"
    return f"{name}, pattern {rewrite.pattern}" if rewrite.pattern else name
