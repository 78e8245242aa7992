"""Fusion of two items: whether they are one kernel, and why (``capture.why(a, b)``), from the record alone.

Three verdicts must not be confused. *Inlined*: lowering put both into one loop, before any fusion. *Fused*: the
scheduler put their loops into one group. *Not fused*: they stay separate groups, even if the C++ backend generates
both loops in one function with one launch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from compile_lens.measures.arithmetic import observed_sizes
from compile_lens.measures.buffers import Buffers
from compile_lens.measures.chain import walk
from compile_lens.measures.control_flow import GENERATED
from compile_lens.measures.fusion_answer import (
    DECISIONS_NOT_SEEN,
    DIFFERENT_GRAPHS,
    FUSED,
    IN_FACTS,
    INLINED,
    LIBRARY_CALL_BETWEEN,
    NEVER_PROPOSED,
    NOT_FUSED,
    NOT_PROPOSED,
    NOT_SEEN,
    NOTHING,
    SAME,
    Why,
)
from compile_lens.measures.fusion_remedies import Remedies
from compile_lens.measures.library_calls import called_code, is_custom, is_library, template_remedy
from compile_lens.measures.members import Members, Subject, resolve, unseen_loops
from compile_lens.measures.operators import called
from compile_lens.measures.user_words import MORE, UserWords
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.decision import CUSTOM_REMEDY, REASONS, Decision
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import Code
from compile_lens.record.lowering import REALIZED

_VERDICTS = {
    SAME: "They are the same.",
    INLINED: "They are in one loop: lowering computes them together, before any fusion.",
    FUSED: "They were fused: their loops are in one group.",
    DIFFERENT_GRAPHS: "They belong to graphs that are compiled on their own, so nothing can fuse them.",
}

_NO_DECISIONS = "the record holds no decisions of the scheduler for this graph"
_PART = "One is, at least in part, what the other does."


def why(capture: Record, a: Subject, b: Subject, phase: str = "") -> Why:
    """Return whether ``a`` and ``b`` are one kernel, and why.

    Each is a kernel (or its name), the name of a node, a loop or a group, a function or operator that is called once
    (``"gelu"``), a Python line (``"model.py:7"``; the number alone if there is one file), a call in one
    (``"model.py:7:11-23"``, ``"sin@7"``: see ``Chain``), or an address. A name shared by several nodes, as their own or
    as that of their callee, is ambiguous, even if one node has exactly that name: torch names the first ``mul`` so.
    If both are in several graphs, the answer is about the one in which fusing them would save most, and the facts
    give the verdicts for the others; ``phase`` selects one (``"backward"``, ``"0/1 forward"``). Raise ``UsageError``
    for an unknown or ambiguous item, with the valid ones.
    """
    answers = of_each_graph(capture, a, b, phase)
    first = max(answers, key=lambda answer: answer.rank)
    facts = [f"in {answer.where}: {answer.verdict}" for answer in answers if answer is not first]
    if any(first.words) and (hidden := capture.lacks(claims.LOOP_ORIGINS)):
        facts.append(f"they compute at least that: {hidden}")
    return replace(first, facts=(*first.facts, *facts))


def of_each_graph(capture: Record, a: Subject, b: Subject, phase: str = "") -> list[Why]:
    """Return an answer for each graph that contains both; a single one if no graph does."""
    one, two, common = resolve(capture, a, b, phase)
    places = [_Place(capture, *where).why_of_launches(one, two) for where in common]
    return places or [_different_graphs(one, two, unseen_loops(capture))]


def _different_graphs(one: Members, two: Members, unseen: str) -> Why:
    empty = [m for m in (one, two) if not m.places]
    if empty:
        facts = tuple(f"{m.name}: {m.note}" for m in empty)
        if unseen:
            return Why(one.name, two.name, "", NOT_SEEN, sentence="Not all loops were seen.", facts=facts)
        return Why(one.name, two.name, "", NOTHING, sentence="There is no loop to fuse.", facts=facts)
    facts = tuple(f"{m.name} is in {', '.join(f'{c} {p}' for c, p in m.places)}" for m in (one, two))
    return Why(one.name, two.name, "", DIFFERENT_GRAPHS, sentence=_VERDICTS[DIFFERENT_GRAPHS], facts=facts)


class _Place:
    """One phase of one compilation: its loops, groups, and the scheduler's decisions."""

    def __init__(self, capture: Record, cid: str, phase: str) -> None:
        self.cid, self.phase = cid, phase
        compilation = next(c for c in capture.compilations if c.id == cid)
        stages = {s.key: s for s in compilation.stages if isinstance(s, (Graph, Code))}
        loops, groups, code = (stages.get(f"{phase}.{s}") for s in ("loops", "groups", "code"))
        self.loops = {n.name: n for n in loops.nodes} if isinstance(loops, Graph) else {}
        self.groups = {n.name: n for n in groups.nodes} if isinstance(groups, Graph) else {}
        self.group_of = {loop: n.name for n in self.groups.values() for loop in n.members}
        self.kernels = code.kernels if isinstance(code, Code) else ()
        self.decisions: tuple[Decision, ...] | None = dict(compilation.decisions).get(phase)
        self._lacking = capture.lacks(claims.DECISIONS) or _NO_DECISIONS
        self.contests = [one for one in compilation.autotuning if one.phase == phase]
        self.lowered = {entry.node: entry for entry in compilation.lowered if entry.phase == phase}
        graph = stages.get(f"{phase}.post_grad")
        self.aten = {path + n.name: n for path, n in walk(graph)} if isinstance(graph, Graph) else {}
        sizes = observed_sizes(compilation)
        self.buffers = Buffers(self.loops, self.groups, self.aten, self.lowered.values(), sizes)
        self._inputs = {g: set(node.inputs) for g, node in self.groups.items()}
        self._users = _inverted(self._inputs)
        self._order = {g: place for place, g in enumerate(self.groups)}
        self.words = UserWords(capture, cid, phase)
        self._remedies = Remedies(self.groups, self.loops, self.aten)
        self._capture = capture
        self._in_order = all(
            self._order.get(i, -1) < place for g, place in self._order.items() for i in self._inputs[g]
        )
        self._kernels_of: dict[str, set[str]] = {}  # names of kernels by group
        for kernel in self.kernels:
            for group in kernel.groups:
                self._kernels_of.setdefault(group, set()).add(kernel.name)

    def why(self, one: Members, two: Members) -> Why:
        """Return the answer for two items of this graph."""
        a, b = one.places[self.cid, self.phase], two.places[self.cid, self.phase]
        where = f"{self.cid} {self.phase}"
        if one == two:
            return Why(one.name, two.name, where, SAME, sentence=_VERDICTS[SAME])
        both = [loop for loop in a if loop in b]
        if both:
            part = "" if set(a) == set(b) == set(both) else "in part "
            facts: tuple[str, ...] = (f"both are {part}in {self.words.in_loops(both)}",)
            if "kernel" in (one.kind, two.kind):
                return Why(one.name, two.name, where, SAME, sentence=_PART, facts=facts)
            facts = (*facts, *self._inlined(one, both), *self._inlined(two, both))
            own_a, own_b = self._own_loops(one, both), self._own_loops(two, both)
            if self.groups and (
                own_a or own_b
            ):  # such as a mean: its sum has a loop, and the division is inlined
                answer = self._compare(one, two, where, own_a or a, own_b or b)
                return replace(answer, facts=(*facts, *answer.facts))
            return Why(one.name, two.name, where, INLINED, sentence=_VERDICTS[INLINED], facts=facts)
        if not self.groups:
            note = (f"stage {self.phase}.groups is not in the record",)
            return Why(one.name, two.name, where, NOT_SEEN, sentence="The groups were not seen.", facts=note)
        answer = self._compare(one, two, where, a, b)
        return replace(answer, facts=(*answer.facts, *self._realised(one, b), *self._realised(two, a)))

    def _compare(self, one: Members, two: Members, where: str, a: Collection[str], b: Collection[str]) -> Why:
        """Return the answer for two sets of loops without a common one."""
        left, right = self._groups(a), self._groups(b)
        shared = [g for g in left if g in right]
        if shared:
            return self._fused(one.name, two.name, where, a, b, shared)
        return self._not_fused(one.name, two.name, where, left, right)

    def _own_loops(self, node: Members, both: list[str]) -> list[str]:
        """Return the loops for a part of an ATen node's work that the two items do not share."""
        entry = self.lowered.get(node.name) if node.kind == "node" else None
        return (
            [loop for loop in entry.parts if loop not in both and loop in self.group_of]
            if entry is not None
            else []
        )

    def _inlined(self, node: Members, loops: list[str]) -> Iterator[str]:
        """Yield how an ATen node in these loops was lowered."""
        entry = self.lowered.get(node.name) if node.kind == "node" else None
        if entry is None:
            return
        into = [loop for loop in loops if loop in entry.inlined]
        named = self.words.in_loops if len(loops) > 1 else _list  # a single loop has been named already
        if into and not entry.buffer and not entry.parts:
            yield f"{node.name} was inlined into {named(into)}: its value has no buffer"
        elif into and entry.parts and not entry.buffer:
            yield (
                f"a part of {node.name} has a buffer, that of {named(entry.parts)} ({entry.reason}); "
                f"the rest was inlined into {named(into)}"
            )
        elif entry.buffer in loops:
            yield f"{entry.buffer} is the loop of {node.name}, whose value has a buffer ({entry.reason})"

    def _realised(self, node: Members, loops: Collection[str]) -> Iterator[str]:
        """Yield why an ATen node was not inlined into loops that read it."""
        entry = self.lowered.get(node.name) if node.kind == "node" else None
        if entry is None or entry.reason not in REALIZED:
            return
        reading = [self.loops[loop] for loop in loops if loop in self.loops]
        readers = [n.name for n in reading if n.op == "loop" and entry.buffer in n.inputs]
        if readers:
            shown = f" Shown: {entry.evidence}." if entry.evidence else ""
            yield (
                f"{node.name} was not inlined into {self.words.in_loops(readers)} ({entry.reason}). "
                f"{REALIZED[entry.reason].sentence}{shown}"
            )

    def _groups(self, loops: Collection[str]) -> list[str]:
        return list(dict.fromkeys(self.group_of[loop] for loop in loops if loop in self.group_of))

    def _fused(
        self, one: str, two: str, where: str, a: Collection[str], b: Collection[str], shared: list[str]
    ) -> Why:
        facts = [f"{_list(a)} and {_list(b)} are in the group {_list(shared)}"]
        rest = [loop for loop in (*a, *b) if self.group_of.get(loop) not in shared]
        if rest:
            facts = [f"in the group {_list(shared)}; not in it: {_list(dict.fromkeys(rest))}"]
        by = [d for d in self._decisions_between(a, b) if d.fused]
        pairs = [d for d in by if not d.through_others]
        if pairs:
            first = min(pairs, key=lambda d: d.round)
            size = f"; they shared {first.shared_bytes:,} bytes" if first.shared_bytes else ""
            facts.append(f"round {first.round} fused {_list(first.a)} with {_list(first.b)}{size}")
        elif by:
            facts.append(f"no round fused the two as a pair: a third was fused with both. {by[0]}")
        return Why(one, two, where, FUSED, sentence=_VERDICTS[FUSED], facts=tuple(facts), decisions=tuple(by))

    def _not_fused(self, one: str, two: str, where: str, left: list[str], right: list[str]) -> Why:
        a = [loop for g in left for loop in self.groups[g].members]
        b = [loop for g in right for loop in self.groups[g].members]
        decisions = sorted(
            (d for d in self._decisions_between(a, b) if not d.fused),
            key=lambda d: (-d.round, -len(d.loops), d.loops),
        )
        facts = [
            f"both are in the kernel {name}, each with a loop of its own: the backend puts groups into one function, "
            "which saves a launch and no memory traffic"
            for name in self.kernels_with(left, right)
        ]
        reason = ""
        for side in (left, right):
            kinds = {self.groups[g].kind for g in side}
            if kinds and kinds <= {"extern", "nop"}:
                reason = reason or ("extern" if "extern" in kinds else "nop")
            controls_flow = any(self.groups[g].target in GENERATED for g in side)
            code = called_code(self.groups[g] for g in side)
            what = f"is a call of {code}" if "extern" in kinds else "does no work of its own"
            if reason == "extern" and controls_flow:
                reason, what = "steering", "decides which graphs run, or how often"
            for group in side:
                if self.groups[group].kind == ("extern" if "extern" in kinds else "nop"):
                    facts.append(f"{self._named(group)} {what}, and is never proposed for fusion")
        between = () if reason else self._between(left, right)
        library_groups = [g for g in between if self.groups[g].kind == "extern"]
        if library_groups:
            reason = "extern"
            codes = [called_code([self.groups[g]]) for g in library_groups]
            facts += [
                f"{self._named(g)} stands between them: a call of {code}"
                for g, code in zip(library_groups, codes)
            ]
        elif between:
            facts.append(f"{self.words.groups(between) or _list(between)} has to run between them")
        if decisions and not reason:
            reason = decisions[0].reason
        facts += [self._decided(d, reason) for d in decisions[:IN_FACTS]]
        if len(decisions) > IN_FACTS:
            facts.append(f"{len(decisions) - IN_FACTS} more decisions about them are in the record")
        if not decisions:
            facts.append(self._never_proposed(left, right))
        if reason == "reduction barrier" and self._remedies.steps_of_one(left, right):
            reason = "split reduction"
        saved, note = self.buffers.saved(left, right)
        if self.decisions is None and not reason:
            reason = NOT_SEEN
        sentence, remedy = _words(reason, bool(library_groups), bool(self.buffers.common(left, right)))
        if reason == "extern":
            facts += self._timed_elsewhere((*left, *right, *library_groups))
        calls = self._calls((*left, *right, *library_groups)) if reason == "extern" else ()
        if reason == "extern" and any(is_custom(self.groups[g]) for g in (*left, *right, *library_groups)):
            remedy = CUSTOM_REMEDY
        elif remedy:
            remedy = self._remedies.applicable(reason, remedy, left, right)
        calling = [g for g in library_groups or (*left, *right) if self.groups[g].kind == "extern"]
        extern = calling if reason == "extern" else []
        words = self.words.groups(left), self.words.groups(right)
        library = list(map(self.words.group, extern))
        alike = len({MORE.sub("", text) for text in (*words, *library)}) == 1
        if alike and len(extern) == 1 and not library_groups:
            library = [f"{one if extern[0] in left else two} of {library[0]}"]  # which of the two it is
        return Why(
            one, two, where, NOT_FUSED, reason or NEVER_PROPOSED, sentence, tuple(facts), tuple(decisions),
            saved, note, remedy, calls, words, tuple(library), called_code(self.groups[g] for g in extern),
            tuple(frame for names in (left, right) if (frame := self.words.frame(names)) is not None),
        )  # fmt: skip

    def _decided(self, decision: Decision, reason: str) -> str:
        """Return a decision as text with its sides in the program's words, without the answer's own sentence."""
        text = str(replace(decision, evidence=self.words.evidence(decision.evidence)))
        sides = [" + ".join(side) for side in (decision.a, decision.b)]
        words = [self.words.loops(side) for side in (decision.a, decision.b)]
        if all(words) and words[0] != words[1]:
            text = text.replace(" and ".join(sides), " and ".join(words), 1)
        return text.replace(f" {decision.sentence}", "", 1) if decision.reason == reason else text

    def template_remedy(self, first: str, second: str) -> str:
        """Return how to try a template for the library call ``first``, if ``second`` is pointwise work that it could
        fuse; ``""`` otherwise."""
        members = [self.loops[m] for m in self.groups[second].members if m in self.loops]
        if (
            self.groups[first].kind != "extern"
            or any(loop.kind != "pointwise" for loop in members)
            or not members
        ):
            return ""
        return next(
            filter(None, (template_remedy(self._capture, call) for call in self._calls((first,)))), ""
        )

    def why_of_launches(self, one: Members, two: Members) -> Why:
        """Return the answer for two items; for kernels with several launches, about one launch of each."""
        ones, twos = self._launches(one), self._launches(two)
        if one == two or len(ones) == len(twos) == 1:
            return self.why(one, two)
        fewer, others = (ones, twos) if len(ones) <= len(twos) else (twos, ones)
        pairs = [
            (launch, min(others, key=lambda other: abs(self._place(launch) - self._place(other))))
            for launch in fewer
        ]
        answers = [
            self.why(
                *(
                    self._members(m, side)
                    for m, side in zip((one, two), pair if fewer is ones else pair[::-1])
                )
            )
            for pair in pairs
        ]
        first = max(answers, key=lambda answer: answer.rank)
        counts = f"{one.name} has {len(ones)} launches and {two.name} {len(twos)}: this is about one of each"
        return replace(first, facts=(*first.facts, counts))

    def _launches(self, thing: Members) -> list[list[str]]:
        """Return the groups of each launch of a kernel; for any other item all of its groups at once."""
        groups = self._groups(thing.places[self.cid, self.phase])
        kernel = next((k for k in self.kernels if k.name == thing.name and thing.kind == "kernel"), None)
        count = len(kernel.launch_lines) if kernel is not None else 1
        if count < 2 or not groups or len(groups) % count:
            return [groups]
        size = len(groups) // count
        groups.sort(key=self._order.__getitem__)
        return [groups[at : at + size] for at in range(0, len(groups), size)]

    def _place(self, groups: list[str]) -> int:
        return min((self._order[g] for g in groups), default=0)

    def _members(self, thing: Members, groups: list[str]) -> Members:
        loops = tuple(m for g in groups for m in self.groups[g].members)
        return replace(thing, places={(self.cid, self.phase): loops}) if loops else thing

    def _named(self, group: str) -> str:
        """Return a group in the program's words, with its callee: "`q @ k` (model.py:7), aten.bmm.out,"."""
        target, words = self.groups[group].target, self.words.group(group)
        return f"{group} ({target})" if words == group else f"{words}, {target},"

    def _calls(self, groups: Collection[str]) -> tuple[str, ...]:
        """Return the operators of the library calls among groups."""
        own = {g for g in groups if is_library(self.groups[g])}
        calls = (k for k in self.kernels if k.language == "extern" and own & set(k.groups))
        return tuple(dict.fromkeys(called(k.name) for k in calls))

    def _timed_elsewhere(self, groups: Collection[str]) -> Iterator[str]:
        """Yield the library calls that max-autotune would time against templates on the device."""
        for group in dict.fromkeys(groups):
            members = [self.loops[m] for m in self.groups[group].members if m in self.loops]
            nodes = {name for loop in members for name in loop.origins}
            for one in self.contests:
                if one.templates and nodes & set(one.nodes):
                    yield (
                        f"max-autotune would time it against {len(one.templates)} templates of {one.operator} on the "
                        f"device, which was not done here: what follows a template can be fused with it ({group})"
                    )

    def _decisions_between(self, a: Collection[str], b: Collection[str]) -> Iterator[Decision]:
        """Yield the decisions with one side in ``a`` and the other in ``b``."""
        one, two = set(a), set(b)
        for d in self.decisions or ():
            left, right = set(d.a), set(d.b)
            if (left & one and right & two) or (left & two and right & one):
                yield d

    def _never_proposed(self, left: list[str], right: list[str]) -> str:
        if self.decisions is None:
            return f"what Inductor's scheduler decided was not seen: {self._lacking}"
        common = self.buffers.common(left, right)
        if not common:
            return "Inductor never proposed the pair: they touch no buffer in common"
        shared = self.words.buffers(common)
        if any(self.groups[g].kind in ("extern", "nop") for g in (*left, *right)):
            return f"Inductor never proposed the pair, though both touch {shared}"
        return (
            f"Inductor never proposed the pair, though both touch {shared}, and does not say why "
            "(it tries only neighbours where very many loops touch one buffer)"
        )

    def kernels_with(self, left: Collection[str], right: Collection[str]) -> list[str]:
        """Return the names of the kernels that contain groups of both."""
        ours, theirs = (set().union(*(self._kernels_of.get(g, ()) for g in side)) for side in (left, right))
        return [kernel.name for kernel in self.kernels if kernel.name in ours & theirs]

    def _between(self, left: list[str], right: list[str]) -> list[str]:
        """Return the groups on a path from one to the other, in order."""
        ends = {*left, *right}
        places = [self._order[g] for g in ends] or [0]
        # If every group runs after those that it reads, paths stay between the first and the last place.
        window = range(min(places), max(places) + 1) if self._in_order else range(len(self.groups))
        between: set[str] = set()
        for first, last in ((left, right), (right, left)):
            after = self._reach(first, self._users, window) - ends
            between |= after & self._reach(last, self._inputs, window) if after else after
        return sorted(between, key=self._order.__getitem__)

    def _reach(self, start: Collection[str], edges: Mapping[str, Collection[str]], window: range) -> set[str]:
        """Return the groups reachable by edges through groups with places in the window."""
        seen = set(start)
        queue = list(start)
        for name in queue:
            for following in edges.get(name, ()):
                if following not in seen and self._order.get(following, -1) in window:
                    seen.add(following)
                    queue.append(following)
        return seen


def _words(reason: str, library_between: bool, common: bool) -> tuple[str, str]:
    """Return the sentence and the remedy of a reason."""
    known_reason = REASONS.get(reason)
    if reason == NOT_SEEN and common:
        return DECISIONS_NOT_SEEN, ""
    if library_between and known_reason is not None:
        return LIBRARY_CALL_BETWEEN, known_reason.remedy
    if known_reason is not None:
        return known_reason.sentence, known_reason.remedy
    if common:
        return NOT_PROPOSED, ""
    none = REASONS["no shared data"]
    return none.sentence, none.remedy


def _inverted(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    inverted: dict[str, set[str]] = {}
    for below, above in edges.items():
        for name in above:
            inverted.setdefault(name, set()).add(below)
    return inverted


_list = ", ".join
