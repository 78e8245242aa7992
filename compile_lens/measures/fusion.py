"""Why two things are one kernel, or are not: ``capture.why(a, b)``, from the record alone.

Three things must not be confused. *Inlined*: lowering put both into one loop, before any fusion. *Fused*: the
scheduler made one group of their loops. *Not fused*: they stay groups of their own, even where the C++
backend writes both, one loop after the other, into one function with one launch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from compile_lens.decision import REASONS, Decision
from compile_lens.graph import Graph, Node
from compile_lens.lowered import REALISED
from compile_lens.measures.members import Members, resolve
from compile_lens.record import Capture, Code, Kernel

SAME, INLINED, FUSED, NOT_FUSED, APART, NOTHING = (
    "same", "inlined", "fused", "not fused", "different graphs", "no loop",
)  # fmt: skip
"""What ``Why.verdict`` can be."""

_VERDICTS = {
    SAME: "They are the same.",
    INLINED: "They are in one loop: lowering computes them together, before any fusion.",
    FUSED: "They were fused: their loops are in one group.",
    APART: "They belong to graphs that are compiled on their own, so nothing can fuse them.",
}


_WALL = "A call of a library stands between them: all of it has to run after one and before the other."
_PART = "One is, at least in part, what the other does."


@dataclass(frozen=True)
class Why:
    """What ``capture.why(a, b)`` returns.

    Attributes:
        a, b: the two things, as they were asked for.
        where: the compile id and the phase (``"0/0 forward"``); ``""`` where they share none.
        verdict: ``same``, ``inlined``, ``fused``, ``not fused``, ``different graphs`` or ``no loop``.
        reason: if not fused, a key of ``compile_lens.decision.REASONS``, or ``"never proposed"``.
        sentence: the answer in one plain sentence.
        facts: what the record shows for it, in order.
        decisions: what the scheduler decided about their groups, the last word first.
        saved: modelled bytes, at most, that fusing would have saved: what one writes and the other reads,
            and what both read, each buffer as a whole; ``None`` where that is unknown or is no question.
        saved_note: why ``saved`` is ``None``.
        remedy: what one could try, ``""`` where there is nothing to try.
    """

    a: str
    b: str
    where: str
    verdict: str
    reason: str = ""
    sentence: str = ""
    facts: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    saved: int | None = None
    saved_note: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        head = f"{self.a} and {self.b}" + (f" ({self.where})" if self.where else "")
        text = [f"{head}: {self.verdict}" + (f", {self.reason}" if self.reason else ""), f"  {self.sentence}"]
        text += [f"  - {fact}" for fact in self.facts]
        if self.saved is not None:
            text.append(f"  fusing would have saved at most {self.saved:,} bytes (modelled)")
        elif self.saved_note:
            text.append(f"  bytes that fusing would have saved: unknown, {self.saved_note}")
        if self.remedy:
            text.append(f"  to try: {self.remedy}")
        return "\n".join(text)


def why(capture: Capture, a: Kernel | str | int, b: Kernel | str | int, phase: str = "") -> Why:
    """Why ``a`` and ``b`` are one kernel, or are not.

    Each is a kernel (or its name), the name of an ATen node, of a loop or of a group, or a Python line
    (``"model.py:7"``; the number alone where there is one file). ``phase`` picks one graph (``"backward"``,
    ``"0/1 forward"``) where they are in several.

    Raises ``UsageError``, which names what there is, for something that is unknown or ambiguous.
    """
    one, two, where = resolve(capture, a, b, phase)
    if where is None:
        return _apart(one, two)
    return _Place(capture, *where).why(one, two)


def _apart(one: Members, two: Members) -> Why:
    empty = [m for m in (one, two) if not m.places]
    if empty:
        facts = tuple(f"{m.name}: {m.note}" for m in empty)
        return Why(one.name, two.name, "", NOTHING, sentence="There is no loop to fuse.", facts=facts)
    facts = tuple(f"{m.name} is in {', '.join(f'{c} {p}' for c, p in m.places)}" for m in (one, two))
    return Why(one.name, two.name, "", APART, sentence=_VERDICTS[APART], facts=facts)


class _Place:
    """One phase of one compilation: its loops, its groups, and what was decided about them."""

    def __init__(self, capture: Capture, cid: str, phase: str) -> None:
        self.cid, self.phase = cid, phase
        compilation = next(c for c in capture.compilations if c.id == cid)
        stages = {s.key: s for s in compilation.stages if isinstance(s, (Graph, Code))}
        loops, groups, code = (stages.get(f"{phase}.{s}") for s in ("loops", "groups", "code"))
        self.loops = {n.name: n for n in loops.nodes} if isinstance(loops, Graph) else {}
        self.groups = {n.name: n for n in groups.nodes} if isinstance(groups, Graph) else {}
        self.of = {loop: n.name for n in self.groups.values() for loop in n.members}
        self.kernels = code.kernels if isinstance(code, Code) else ()
        self.decisions: tuple[Decision, ...] | None = dict(compilation.decisions).get(phase)
        self.lowered = {entry.node: entry for entry in compilation.lowered if entry.phase == phase}

    def why(self, one: Members, two: Members) -> Why:
        """The answer for two things of this place."""
        a, b = one.places[self.cid, self.phase], two.places[self.cid, self.phase]
        where = f"{self.cid} {self.phase}"
        if one == two:
            return Why(one.name, two.name, where, SAME, sentence=_VERDICTS[SAME])
        both = [loop for loop in a if loop in b]
        if both:
            whole = set(a) == set(b) == set(both)
            facts: tuple[str, ...] = (f"both are {'' if whole else 'in part '}in {_list(both)}",)
            if "kernel" in (one.kind, two.kind):
                return Why(one.name, two.name, where, SAME, sentence=_PART, facts=facts)
            facts = (*facts, *self._inlined(one, both), *self._inlined(two, both))
            return Why(one.name, two.name, where, INLINED, sentence=_VERDICTS[INLINED], facts=facts)
        if not self.groups:
            note = f"stage {self.phase}.groups is not in the record"
            return Why(
                one.name, two.name, where, NOTHING, sentence="The groups were not seen.", facts=(note,)
            )
        ga, gb = self._groups(a), self._groups(b)
        shared = [g for g in ga if g in gb]
        found = (
            self._fused(one.name, two.name, where, a, b, shared)
            if shared
            else self._not_fused(one.name, two.name, where, ga, gb)
        )
        return replace(found, facts=(*found.facts, *self._realised(one, b), *self._realised(two, a)))

    def _inlined(self, node: Members, loops: list[str]) -> Iterator[str]:
        """What lowering made of an ATen node that is in these loops."""
        entry = self.lowered.get(node.name) if node.kind == "node" else None
        if entry is None:
            return
        into = [loop for loop in loops if loop in entry.inlined]
        if into and not entry.buffer and not entry.parts:
            yield f"{node.name} was inlined into {_list(into)}: its value has no buffer"
        elif into and entry.parts and not entry.buffer:
            yield (
                f"a part of {node.name} has a buffer, that of {_list(entry.parts)} ({entry.reason}); "
                f"the rest was inlined into {_list(into)}"
            )
        elif entry.buffer in loops:
            yield f"{entry.buffer} is the loop of {node.name}, whose value has a buffer ({entry.reason})"

    def _realised(self, node: Members, loops: Collection[str]) -> Iterator[str]:
        """Why an ATen node was not inlined into loops that read it."""
        entry = self.lowered.get(node.name) if node.kind == "node" else None
        if entry is None or entry.reason not in REALISED:
            return
        reading = [self.loops[loop] for loop in loops if loop in self.loops]
        readers = [n.name for n in reading if n.op == "loop" and entry.buffer in n.inputs]
        if readers:
            shown = f" Shown: {entry.shown}." if entry.shown else ""
            yield (
                f"{node.name} was not inlined into {_list(readers)} ({entry.reason}). "
                f"{REALISED[entry.reason].sentence}{shown}"
            )

    def _groups(self, loops: Collection[str]) -> list[str]:
        return list(dict.fromkeys(self.of[loop] for loop in loops if loop in self.of))

    def _fused(
        self, one: str, two: str, where: str, a: Collection[str], b: Collection[str], shared: list[str]
    ) -> Why:
        facts = [f"{_list(a)} and {_list(b)} are in the group {_list(shared)}"]
        rest = [loop for loop in (*a, *b) if self.of.get(loop) not in shared]
        if rest:
            facts = [f"in the group {_list(shared)}; not in it: {_list(dict.fromkeys(rest))}"]
        by = [d for d in self._about(a, b) if d.fused]
        pairs = [d for d in by if not d.through_others]
        if pairs:
            first = min(pairs, key=lambda d: d.round)
            size = f"; they shared {first.shared:,} bytes" if first.shared else ""
            facts.append(f"round {first.round} fused {_list(first.a)} with {_list(first.b)}{size}")
        elif by:
            facts.append(f"no round fused the two as a pair: a third was fused with both. {by[0]}")
        return Why(one, two, where, FUSED, sentence=_VERDICTS[FUSED], facts=tuple(facts), decisions=tuple(by))

    def _not_fused(self, one: str, two: str, where: str, ga: list[str], gb: list[str]) -> Why:
        a = [loop for g in ga for loop in self.groups[g].members]
        b = [loop for g in gb for loop in self.groups[g].members]
        decisions = sorted(
            (d for d in self._about(a, b) if not d.fused), key=lambda d: (-d.round, -len(d.loops), d.loops)
        )
        facts = list(self._one_function(ga, gb))
        reason = ""
        for side in (ga, gb):
            kinds = {self.groups[g].kind for g in side}
            reason = reason or next(
                (k for k in ("extern", "nop") if kinds <= {"extern", "nop"} and k in kinds), ""
            )
            what = "is a call of a library" if "extern" in kinds else "does no work of its own"
            for group in side:
                if self.groups[group].kind == ("extern" if "extern" in kinds else "nop"):
                    facts.append(
                        f"{group} ({self.groups[group].target}) {what}, and is never proposed for fusion"
                    )
        between = () if reason else self._between(ga, gb)
        walls = [g for g in between if self.groups[g].kind == "extern"]
        if walls:
            reason = "extern"
            facts += [
                f"{g} ({self.groups[g].target}) stands between them: a call of a library" for g in walls
            ]
        elif between:
            facts.append(f"{_list(between)} has to run between them")
        if decisions and not reason:
            reason = decisions[0].reason
        facts += [str(d) for d in decisions[:3]]
        if len(decisions) > 3:
            facts.append(f"{len(decisions) - 3} more decisions about them are in the record")
        if not decisions:
            facts.append(self._never(ga, gb))
        saved, note = self._saved(ga, gb)
        sentence, remedy = _words(reason, bool(walls), bool(self._common(ga, gb)))
        return Why(
            one, two, where, NOT_FUSED, reason or "never proposed", sentence, tuple(facts), tuple(decisions),
            saved, note, remedy,
        )  # fmt: skip

    def _about(self, a: Collection[str], b: Collection[str]) -> Iterator[Decision]:
        """The decisions of which one side is of ``a`` and the other of ``b``."""
        one, two = set(a), set(b)
        for d in self.decisions or ():
            left, right = set(d.a), set(d.b)
            if (left & one and right & two) or (left & two and right & one):
                yield d

    def _never(self, ga: list[str], gb: list[str]) -> str:
        if self.decisions is None:
            return "the record holds no decisions of the scheduler for this graph"
        common = self._common(ga, gb)
        if not common:
            return "Inductor never proposed the pair: they touch no buffer in common"
        if any(self.groups[g].kind in ("extern", "nop") for g in (*ga, *gb)):
            return f"Inductor never proposed the pair, though both touch {_list(common)}"
        return (
            f"Inductor never proposed the pair, though both touch {_list(common)}, and does not say why "
            "(it tries only neighbours where very many loops touch one buffer)"
        )

    def _one_function(self, ga: list[str], gb: list[str]) -> Iterator[str]:
        for kernel in self.kernels:
            if set(kernel.groups) & set(ga) and set(kernel.groups) & set(gb):
                yield (
                    f"both are in the kernel {kernel.name}, each with a loop of its own: the backend writes "
                    "groups into one function, which saves a launch and no memory traffic"
                )

    def _between(self, ga: list[str], gb: list[str]) -> list[str]:
        """Groups on a path from one to the other, in order."""
        above = {g: set(node.inputs) for g, node in self.groups.items()}
        found: dict[str, None] = {}
        for first, last in ((ga, gb), (gb, ga)):
            after = _reach(first, _turned(above)) - {*first, *last}
            before = _reach(last, above) - {*first, *last}
            found.update({g: None for g in self.groups if g in after and g in before})
        return list(found)

    def _touched(self, groups: list[str]) -> tuple[dict[str, None], dict[str, None]]:
        """Loops and inputs that groups read, and loops whose results they write."""
        members = [self.loops[m] for g in groups for m in self.groups[g].members if m in self.loops]
        return {name: None for n in members for name in n.inputs}, {n.name: None for n in members}

    def _common(self, ga: list[str], gb: list[str]) -> list[str]:
        """What one writes and the other reads, and what both read."""
        reads_a, writes_a = self._touched(ga)
        reads_b, writes_b = self._touched(gb)
        return [
            name
            for name in self.loops
            if (name in writes_a and name in reads_b)
            or (name in writes_b and name in reads_a)
            or (name in reads_a and name in reads_b)
        ]

    def _saved(self, ga: list[str], gb: list[str]) -> tuple[int | None, str]:
        common = self._common(ga, gb)
        if not common:
            return 0, ""
        sizes = {name: _nbytes(self.loops[name]) for name in common}
        unknown = [name for name, size in sizes.items() if size is None]
        if unknown:
            return None, f"the size of {_list(unknown)} is not known before it runs"
        return sum(size for size in sizes.values() if size is not None), ""


def _words(reason: str, wall: bool, common: bool) -> tuple[str, str]:
    """The sentence and the remedy of a reason."""
    found = REASONS.get(reason)
    if wall and found is not None:
        return _WALL, found.remedy
    if found is not None:
        return found.sentence, found.remedy
    if common:
        return "Inductor did not propose the pair.", ""
    none = REASONS["no shared data"]
    return none.sentence, none.remedy


def _nbytes(node: Node) -> int | None:
    sizes = [t.nbytes for t in node.outputs]
    return None if not sizes or None in sizes else sum(s for s in sizes if s is not None)


def _turned(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    turned: dict[str, set[str]] = {}
    for below, above in edges.items():
        for name in above:
            turned.setdefault(name, set()).add(below)
    return turned


def _reach(start: Collection[str], edges: dict[str, set[str]]) -> set[str]:
    seen = set(start)
    queue = list(start)
    for name in queue:
        for following in edges.get(name, ()):
            if following not in seen:
                seen.add(following)
                queue.append(following)
    return seen


def _list(names: Collection[str]) -> str:
    return ", ".join(names)
