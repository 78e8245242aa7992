"""Why targets made different kernels of one Python line: facts of the records, by kind.

Each function looks for one kind of reason, and gives nothing where it finds none. A line that differs and that
none of them explains is said to be unexplained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compile_lens.measures.compare.fusion import Told, joined, listed
from compile_lens.measures.compare.rewritten import rewrites_before, rewritten
from compile_lens.measures.compare.target import Line, Side
from compile_lens.measures.operators import bare, operator
from compile_lens.record.comparison import UNEXPLAINED, Difference, Fact, Row
from compile_lens.record.graph import Node
from compile_lens.record.support import NEEDS

WHOLE = "REDUCE_TO_SINGLE_ELEMENT"
"""The feature of a backend that reduces in one step, however long (``torch/_inductor/ir.py``: ``num_splits``)."""

Features = Mapping[str, tuple[str, ...] | None]


def differences(
    phase: str, sides: Sequence[Side], rows: Sequence[tuple[Line, Row]], features: Features
) -> list[Difference]:
    """Why each of the rows, which all differ, does. What is said of several lines in the same words stands once."""
    found: dict[tuple[str, str, tuple[Fact, ...]], dict[str, None]] = {}
    for line, row in rows:
        told = list(_told(sides, line, features)) or [_unexplained(sides)]
        for kind, sentence, facts in told:
            found.setdefault((kind, sentence, facts), {})[row.place] = None
    return [
        Difference(kind, phase, tuple(places), said, facts) for (kind, said, facts), places in found.items()
    ]


def _told(sides: Sequence[Side], line: Line, features: Features) -> Iterator[Told]:
    own = _own_calls(sides, line)
    handed = [side.operators(line) for side in sides]
    if own is not None:
        yield own
    elif _differ(handed):
        yield _operators(sides, line, handed)
    yield from _passes(sides, line)
    yield from _split(sides, line, features)
    yield from _generated(sides, line, features)
    yield from joined(sides, line)


def _differ(counts: Sequence[Counter[str]]) -> bool:
    return any(count != counts[0] for count in counts)


def _own_calls(sides: Sequence[Side], line: Line) -> Told | None:
    """Each target calls a library function of another name, and that is all that was handed over differently."""
    calls = [Counter(w.called for w in side.works_of(line) if w.called) for side in sides]
    handed = [side.operators(line) for side in sides]
    for own, said in zip(_apart(calls), _apart(handed)):
        if not own or own != said:
            return None
    facts = tuple(Fact(side.target, _counted(own)) for side, own in zip(sides, _apart(calls)))
    return (
        "library",
        "PyTorch handed other operators to Inductor, and each of them calls a library function.",
        facts,
    )


def _operators(sides: Sequence[Side], line: Line, handed: Sequence[Counter[str]]) -> Told:
    facts = [
        Fact(side.target, f"not on every target: {_counted(own)}")
        for side, own in zip(sides, _apart(handed))
        if own
    ]
    for side in sides:
        others = [other for other in sides if other is not side]
        facts += [Fact(side.target, text) for text in rewrites_before(side, line, others)]
    return "operators", "Other ATen operators were handed to Inductor.", tuple(facts)


def _passes(sides: Sequence[Side], line: Line) -> Iterator[Told]:
    """Passes over what was handed over that changed the line on some targets, or otherwise."""
    changed = {side.target: rewritten(side, line) for side in sides}
    if len({frozenset(texts) for texts in changed.values()}) < 2:
        return
    facts = [Fact(target, text) for target, texts in changed.items() for text in texts]
    where = [target for target, texts in changed.items() if texts]
    facts += _near_misses(sides, line, where)
    rest = [side.target for side in sides if side.target not in where]
    said = f"and left them as they were on {listed(rest)}" if rest else "in different ways"
    yield "pattern", f"Inductor's passes rewrote operators on {listed(where)}, {said}.", tuple(facts)


def _near_misses(sides: Sequence[Side], line: Line, where: Sequence[str]) -> Iterator[Fact]:
    """What other targets say of the patterns that matched on some."""
    names = {
        rewrite.pattern
        for side in sides
        if side.target in where
        for c in side.capture.compilations
        for p in c.passes
        if p.stage == f"{side.phase}.post_grad"
        for rewrite in p.rewrites
        if rewrite.pattern and any((c.id, n) in side.lowered_by_line.get(line, ()) for n in rewrite.after)
    }
    for side in sides:
        for c in side.capture.compilations if side.target not in where else ():
            for p in c.passes:
                for miss in p.misses if p.stage == f"{side.phase}.post_grad" else ():
                    if miss.partition(":")[0] in names:
                        yield Fact(side.target, miss)


def _split(sides: Sequence[Side], line: Line, features: Features) -> Iterator[Told]:
    """A reduction in two steps, parts of each result first, on some targets and not on all."""
    found = {side.target: list(_steps(side, line)) for side in sides}
    where = [target for target, steps in found.items() if steps]
    if not where or len(where) == len(sides):
        return
    facts = [Fact(t, f"first {a.target}; then {b.target}") for t in where for a, b in found[t]]
    for side in sides:
        if side.target not in where:
            whole = [loop.target for loop in _loops(side, line).values() if loop.kind == "reduction"]
            facts += [Fact(side.target, f"in one step: {'; '.join(dict.fromkeys(whole))}")] if whole else []
            if WHOLE in (features.get(side.target) or ()):
                facts.append(
                    Fact(side.target, f"Inductor's backend for it never splits one (BackendFeature.{WHOLE})")
                )
    cores = [(side.target, _cores(side)) for side in sides]
    said = ", ".join(f"{target} {count}" for target, count in cores if count)
    if said:
        facts.append(
            Fact("", f"Inductor decides by the sizes and the number of multiprocessors of the device: {said}")
        )
    yield (
        "split",
        f"A reduction is split on {listed(where)}: parts of each result are reduced first, by more of the device at "
        "once, and then the parts.",
        tuple(facts),
    )


def _steps(side: Side, line: Line) -> Iterator[tuple[Node, Node]]:
    """Pairs of reductions of one operator of which the second reads nothing but the first."""
    loops = _loops(side, line)
    seen: dict[tuple[str, str], None] = {}
    for (cid, _), second in loops.items():
        firsts = [loops.get((cid, name)) for name in second.inputs]
        known = [
            f
            for f in firsts
            if f is not None and f.kind == "reduction" and set(f.origins) & set(second.origins)
        ]
        if second.kind != "reduction" or not known or len(known) != len(firsts):
            continue
        if (known[0].target, second.target) not in seen:
            seen[known[0].target, second.target] = None
            yield known[0], second


def _loops(side: Side, line: Line) -> dict[tuple[str, str], Node]:
    """The loops that compute something of a line."""
    return {
        (node[0], name): loop
        for node in side.lowered_by_line.get(line, ())
        for name, loop in side.loops_of(node)
    }


def _cores(side: Side) -> int:
    target = side.capture.target
    value = target.model.figure("multi_processor_count") if target is not None else None
    return value if isinstance(value, int) else 0


def _generated(sides: Sequence[Side], line: Line, features: Features) -> Iterator[Told]:
    """Operators for which some targets call a library and others have generated code."""
    first, *others = sides
    same = [first.same_as(other) for other in others]
    told: dict[str, None] = {}
    for node in first.lowered_by_line.get(line, ()):
        target = operator(first.lowered[node].target)
        if target in told or any(node not in found for found in same):
            continue
        calls = {side.target: _calls(side, found[node]) for side, found in zip(others, same)}
        calls = {first.target: _calls(first, node), **calls}
        library = {t: c for t, c in calls.items() if c}
        written = [t for t, c in calls.items() if c == ""]
        if not library or not written:
            continue
        told[target] = None
        facts = [Fact(t, f"calls {c}") for t, c in library.items()]
        facts += [Fact(t, "Inductor generates it") for t in written]
        facts += _features(target, list(library), written, features)
        yield (
            "library",
            f"{target} is a library call on {listed(library)}, and generated on {listed(written)}.",
            tuple(facts),
        )


def _calls(side: Side, node: tuple[str, str]) -> str | None:
    """The library function that computes a node, ``""`` for generated code, ``None`` if nothing does."""
    works = [work for work in side.works if node in work.nodes]
    if not works:
        return None
    calls = [w.called for w in works if w.called and bare(w.called) == bare(side.lowered[node].target)]
    return calls[0] if calls else "" if any(not w.called for w in works) else None


def _features(target: str, library: Iterable[str], written: Iterable[str], features: Features) -> list[Fact]:
    feature, words = NEEDS.get(bare(target), ("", ""))
    has = {t for t, found in features.items() if found is not None and feature in found}
    facts = []
    for t in library:
        if feature and features.get(t) is not None and t not in has:
            facts.append(
                Fact(t, f"Inductor's backend for it generates no {words} (it lacks BackendFeature.{feature})")
            )
        else:
            facts.append(Fact(t, "why a library is called was not seen"))
    return facts + [Fact(t, f"its backend generates {words}") for t in written if feature and t in has]


def _unexplained(sides: Sequence[Side]) -> Told:
    facts = []
    for side in sides:
        for cid, reason in side.missing.items():
            facts.append(Fact(side.target, f"{cid}: {reason}"))
        for c in side.capture.compilations:
            facts += [
                Fact(side.target, f"stage {m.stage} of {c.id} was not seen: {m.reason}")
                for m in c.missing
                if m.stage.startswith(f"{side.phase}.") and c.id not in side.missing
            ]
    return "unexplained", UNEXPLAINED, tuple(dict.fromkeys(facts))


def _apart(counts: Sequence[Counter[str]]) -> list[Counter[str]]:
    """What each has beyond what all have."""
    shared = counts[0].copy()
    for count in counts[1:]:
        shared &= count
    return [count - shared for count in counts]


def _counted(count: Counter[str]) -> str:
    return ", ".join(name if n == 1 else f"{n} × {name}" for name, n in count.items())
