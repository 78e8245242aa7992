"""Reasons why targets have different kernels for one Python line: facts of the records, by kind.

Each function looks for one kind of reason. A differing line that none of them explains is reported as unexplained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compile_lens.measures.compare.fusion import Reason, fusion
from compile_lens.measures.compare.target import Line, TargetPhase
from compile_lens.measures.operators import base_name, operator
from compile_lens.record.comparison import UNEXPLAINED, Fact, Row, TargetDifference
from compile_lens.record.graph import Node
from compile_lens.record.lowering import UNNAMED, Pass, Rewrite
from compile_lens.record.messages import all_names, with_counts
from compile_lens.record.support import NEEDS

NO_SPLIT = "REDUCE_TO_SINGLE_ELEMENT"
"""Backend feature that makes every reduction run in one step (``torch/_inductor/ir.py``: ``num_splits``)."""

Features = Mapping[str, tuple[str, ...] | None]


def differences(
    phase: str, targets: Sequence[TargetPhase], rows: Sequence[tuple[Line, Row]], features: Features
) -> list[TargetDifference]:
    """Return the reasons why each of the rows differs; a reason shared by several lines is listed once."""
    places: dict[Reason, dict[str, None]] = {}
    for line, row in rows:
        for reason in list(_reasons(targets, line, features)) or [_unexplained(targets)]:
            places.setdefault(reason, {})[row.place] = None
    return [
        TargetDifference(kind, phase, tuple(where), sentence, facts)
        for (kind, sentence, facts), where in places.items()
    ]


def _reasons(targets: Sequence[TargetPhase], line: Line, features: Features) -> Iterator[Reason]:
    own = _library_calls(targets, line)
    handed = [target.operators(line) for target in targets]
    if own is not None:
        yield own
    elif any(count != handed[0] for count in handed):
        yield _operators(targets, line, handed)
    yield from passes(targets, line)
    yield from _split(targets, line, features)
    yield from _generated(targets, line, features)
    yield from fusion(targets, line)


def _library_calls(targets: Sequence[TargetPhase], line: Line) -> Reason | None:
    """Return a reason if each target calls a library function of its own, and no other handed operator differs."""
    calls = _unshared([Counter(w.called for w in t.works_of(line) if w.called) for t in targets])
    handed = _unshared([target.operators(line) for target in targets])
    if any(not own or own != operators for own, operators in zip(calls, handed)):
        return None
    return (
        "library",
        "PyTorch handed different operators to Inductor, and each of them calls a library function.",
        tuple(Fact(target.target, _counted(own)) for target, own in zip(targets, calls)),
    )


def _operators(targets: Sequence[TargetPhase], line: Line, handed: Sequence[Counter[str]]) -> Reason:
    facts = [
        Fact(target.target, f"not on every target: {_counted(own)}")
        for target, own in zip(targets, _unshared(handed))
        if own
    ]
    for target in targets:
        others = [other for other in targets if other is not target]
        facts += [Fact(target.target, text) for text in rewrites_before(target, line, others)]
    return "operators", "Different ATen operators were handed to Inductor.", tuple(facts)


def _split(targets: Sequence[TargetPhase], line: Line, features: Features) -> Iterator[Reason]:
    """Yield a reason if a reduction runs in two steps, partial results first, on some targets but not on all."""
    steps = {target.target: list(_steps(target, line)) for target in targets}
    where = [name for name, pairs in steps.items() if pairs]
    if not where or len(where) == len(targets):
        return
    facts = [Fact(name, f"first {a.target}; then {b.target}") for name in where for a, b in steps[name]]
    for target in targets:
        if target.target not in where:
            whole = [loop.target for loop in _loops(target, line).values() if loop.kind == "reduction"]
            facts += [Fact(target.target, f"in one step: {'; '.join(dict.fromkeys(whole))}")] if whole else []
            if NO_SPLIT in (features.get(target.target) or ()):
                never = f"Inductor's backend for it never splits one (BackendFeature.{NO_SPLIT})"
                facts.append(Fact(target.target, never))
    cores = ", ".join(f"{target.target} {count}" for target in targets if (count := _cores(target)))
    if cores:
        by = "Inductor decides by the sizes and the number of multiprocessors of the device"
        facts.append(Fact("", f"{by}: {cores}"))
    yield (
        "split",
        f"A reduction is split on {all_names(where)}: parts of each result are reduced first, by more of the device at "
        "once, and then the parts.",
        tuple(facts),
    )


def _steps(target: TargetPhase, line: Line) -> Iterator[tuple[Node, Node]]:
    """Yield pairs of reductions of one operator, of which the second reads only the first."""
    loops = _loops(target, line)
    pairs: dict[tuple[str, str], tuple[Node, Node]] = {}
    for (cid, _), second in loops.items():
        firsts = [loops.get((cid, name)) for name in second.inputs]
        known = [
            f
            for f in firsts
            if f is not None and f.kind == "reduction" and set(f.origins) & set(second.origins)
        ]
        if second.kind == "reduction" and known and len(known) == len(firsts):
            pairs.setdefault((known[0].target, second.target), (known[0], second))
    yield from pairs.values()


def _loops(target: TargetPhase, line: Line) -> dict[tuple[str, str], Node]:
    """Return the loops that compute a value of a line."""
    return {
        (node[0], name): loop
        for node in target.lowered_by_line.get(line, ())
        for name, loop in target.loops_of(node)
    }


def _cores(target: TargetPhase) -> int:
    device = target.capture.target
    value = device.model.figure("multi_processor_count") if device is not None else None
    return value if isinstance(value, int) else 0


def _generated(targets: Sequence[TargetPhase], line: Line, features: Features) -> Iterator[Reason]:
    """Yield the operators for which some targets call a library and others generate code."""
    first, *others = targets
    same = [first.same_as(other) for other in others]
    done: set[str] = set()
    for node in first.lowered_by_line.get(line, ()):
        name = operator(first.lowered[node].target)
        if name in done or any(node not in pairs for pairs in same):
            continue
        calls = {first.target: _calls(first, node)}
        calls |= {other.target: _calls(other, pairs[node]) for other, pairs in zip(others, same)}
        library = {t: c for t, c in calls.items() if c}
        generated = [t for t, c in calls.items() if c == ""]
        if not library or not generated:
            continue
        done.add(name)
        facts = [Fact(t, f"calls {c}") for t, c in library.items()]
        facts += [Fact(t, "Inductor generates it") for t in generated]
        facts += _features(name, list(library), generated, features)
        yield (
            "library",
            f"{name} is a library call on {all_names(library)}, and generated on {all_names(generated)}.",
            tuple(facts),
        )


def _calls(target: TargetPhase, node: tuple[str, str]) -> str | None:
    """Return the library function that computes a node, ``""`` for generated code, ``None`` if no kernel does."""
    works = [work for work in target.works if node in work.nodes]
    calls = [
        w.called for w in works if w.called and base_name(w.called) == base_name(target.lowered[node].target)
    ]
    return calls[0] if calls else "" if any(not w.called for w in works) else None


def _features(name: str, library: Iterable[str], generated: Iterable[str], features: Features) -> list[Fact]:
    feature, words = NEEDS.get(base_name(name), ("", ""))
    has = {target for target, own in features.items() if own is not None and feature in own}
    lacks = f"Inductor's backend for it generates no {words} (it lacks BackendFeature.{feature})"
    facts = []
    for t in library:
        known = feature and features.get(t) is not None and t not in has
        facts.append(Fact(t, lacks if known else "why a library is called was not seen"))
    return facts + [Fact(t, f"its backend generates {words}") for t in generated if feature and t in has]


def _unexplained(targets: Sequence[TargetPhase]) -> Reason:
    facts = []
    for target in targets:
        for cid, reason in target.missing.items():
            facts.append(Fact(target.target, f"{cid}: {reason}"))
        for c in target.capture.compilations:
            facts += [
                Fact(target.target, f"stage {m.stage} of {c.id} was not seen: {m.reason}")
                for m in c.missing
                if m.stage.startswith(f"{target.phase}.") and c.id not in target.missing
            ]
    return "unexplained", UNEXPLAINED, tuple(dict.fromkeys(facts))


def _unshared(counts: Sequence[Counter[str]]) -> list[Counter[str]]:
    """Return each count without the part that all of them share."""
    shared = counts[0].copy()
    for count in counts[1:]:
        shared &= count
    return [count - shared for count in counts]


def _counted(count: Counter[str]) -> str:
    return ", ".join(with_counts(count.elements()))


MAX_NAMES = 4
"""Most node names in one sentence."""


def passes(targets: Sequence[TargetPhase], line: Line) -> Iterator[Reason]:
    """Yield a reason if passes over the handed graph changed a line only on some targets, or in different ways."""
    changed = {target.target: rewritten(target, line) for target in targets}
    if len({frozenset(texts) for texts in changed.values()}) < 2:
        return
    facts = [Fact(name, text) for name, texts in changed.items() for text in texts]
    where = [name for name, texts in changed.items() if texts]
    facts += _near_misses(targets, line, where)
    rest = [target.target for target in targets if target.target not in where]
    how = f"and left them as they were on {all_names(rest)}" if rest else "in different ways"
    yield "pattern", f"Inductor's passes rewrote operators on {all_names(where)}, {how}.", tuple(facts)


def rewritten(target: TargetPhase, line: Line) -> list[str]:
    """Return the handed operators that a pass replaced, in words: ``aten.addmm became aten.mm, aten.add``."""
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
        rewrites = target.side.rewrites(f"{target.phase}.post_grad")
        by = next((_words(p, r) for c, p, r in rewrites if c.id == cid and set(names) & set(r.after)), "")
        sentences[f"{was} became {now}{f', by {by}' if by else ''}"] = None
    return list(sentences)


def _near_misses(targets: Sequence[TargetPhase], line: Line, where: Sequence[str]) -> Iterator[Fact]:
    """Yield the other targets' reports on patterns that matched on some targets."""
    patterns = {
        rewrite.pattern
        for target in targets
        if target.target in where
        for c, _, rewrite in target.side.rewrites(f"{target.phase}.post_grad")
        if rewrite.pattern and any((c.id, n) in target.lowered_by_line.get(line, ()) for n in rewrite.after)
    }
    for target in (one for one in targets if one.target not in where):
        for pattern, miss in target.side.near_misses(f"{target.phase}.post_grad"):
            if pattern in patterns:
                yield Fact(target.target, miss)


def rewrites_before(target: TargetPhase, line: Line, others: Sequence[TargetPhase]) -> Iterator[str]:
    """Yield passes that changed this line here before the graph was handed over, and matched nothing elsewhere."""
    elsewhere = {(p.name, r.pattern) for other in others for p, r in _of_line(other, line)}
    places: dict[str, list[tuple[str, ...]]] = {}
    for one, rewrite in _of_line(target, line):
        if (one.name, rewrite.pattern) not in elsewhere:
            places.setdefault(_words(one, rewrite), []).append(rewrite.before)
    for words, names in places.items():
        first = ", ".join(f"%{name}" for name in names[0][:MAX_NAMES]) + (
            ", …" if len(names[0]) > MAX_NAMES else ""
        )
        more = f" and {len(names) - 1} places like it" if len(names) > 1 else ""
        yield f"{words} changed {first}{more}"


def _of_line(target: TargetPhase, line: Line) -> Iterator[tuple[Pass, Rewrite]]:
    here = set(target.by_line.get(line, ()))
    # Passes over a joint graph are kept with the forward.
    stages = dict.fromkeys((target.phase, "forward"))
    rewrites = [one for stage in stages for one in target.side.rewrites(stage)]
    for c in target.capture.compilations:
        for compilation, done, rewrite in rewrites:
            if compilation is c and any((c.id, name) in here for name in rewrite.after):
                yield done, rewrite


def _words(one: Pass, rewrite: Rewrite) -> str:
    name = "a pass without a name" if one.name == UNNAMED else f"the pass {one.name}"
    return f"{name}, pattern {rewrite.pattern}" if rewrite.pattern else name
