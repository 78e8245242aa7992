"""Operators of both captures that passes, lowering or fusion treated differently.

Also buffers whose memory is reused in only one of them, and the code that calls the kernels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.difference import ADDED, CHANGED, REMOVED, Change
from compile_lens.record.lowering import UNNAMED, Lowered

from ..fusion import why
from ..unfused_pairs import unfused_pairs
from .kernels import calls, differing_lines, hunks, signed, times
from .matching import Match
from .operators import counted, name
from .side import Named, Side, matched


def rewrites(where: str, sides: tuple[Side, Side], stage: tuple[str, str]) -> Iterator[Change]:
    """Yield patterns and passes that matched more or less often."""
    ones, twos = (_matched(side, key) for side, key in zip(sides, stage))
    for what in dict.fromkeys((*ones, *twos)):
        before, after = ones[what], twos[what]
        fewer = sides[before > after].capture
        if before == after or fewer.lacks(claims.REWRITES):
            continue
        kind = ADDED if not before else REMOVED if not after else CHANGED
        own, key = (sides[0], stage[0]) if kind == REMOVED else (sides[1], stage[1])
        lines, facts = _rewritten(own, key, what)
        more = _misses((sides[1], stage[1]) if kind == REMOVED else (sides[0], stage[0]), what)
        yield Change("rewrites", kind, f"{where}{what} {_times(before, after)}", lines, (*facts, *more))


def _times(before: int, after: int) -> str:
    """Return the number of matches before and after, in words."""
    if not after:
        return f"matched {times(before)}, and no longer does"
    return (
        f"matched {times(before)}, and now {times(after)}"
        if before
        else f"matches {times(after)}, and did not before"
    )


def _matched(side: Side, key: str) -> Counter[str]:
    return Counter(
        rewrite.pattern or done.name
        for _, done, rewrite in side.rewrites(key)
        if rewrite.pattern or done.name != UNNAMED
    )


def _rewritten(side: Side, key: str, what: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines that a pattern rewrote, and its rewrites as ``before → after``."""
    lines: dict[str, None] = {}
    facts: dict[str, None] = {}
    for c, done, rewrite in side.rewrites(key):
        if (rewrite.pattern or done.name) != what:
            continue
        graph = c.graphs.get(key)
        before = graph.before if graph is not None else ""
        known = {n.name for n in c.graphs[before].nodes} if before in c.graphs else set()
        lines.update(dict.fromkeys(side.lines((c.id, before, o) for o in rewrite.origins if o in known)))
        facts[f"{', '.join(rewrite.before)} → {', '.join(rewrite.after) or 'nothing'}"] = None
    return tuple(lines), tuple(facts)[:MAX_FACTS]


def _misses(of: tuple[Side, str], what: str) -> tuple[str, ...]:
    """Return the near misses of a pattern on the side where it did not match."""
    side, key = of
    misses = (miss for pattern, miss in side.near_misses(key) if pattern == what)
    return tuple(dict.fromkeys(misses))[:MAX_FACTS]


MAX_FACTS = 3


def lowering(
    where: str, sides: tuple[Side, Side], phases: tuple[str, str], pairs: Mapping[Named, Named]
) -> Iterator[Change]:
    """Yield operators of both captures that are inlined in one and have a buffer in the other, or differ in it."""
    ones, twos = (dict(side.lowered(phase)) for side, phase in zip(sides, phases))
    outcomes: dict[tuple[str, str], list[Named]] = {}
    for one, two in pairs.items():
        if one in ones and two in twos:
            before, after = _lowering_words(ones[one]), _lowering_words(twos[two])
            if before != after:
                outcomes.setdefault((before, after), []).append(two)
    key = f"{phases[1]}.post_grad"
    for (before, after), nodes in outcomes.items():
        names = counted(_names(sides[1], key, nodes))
        facts = tuple(
            dict.fromkeys(f"{n}: {twos[cid, n].sentence} {twos[cid, n].evidence}".strip() for cid, n in nodes)
        )
        lines = sides[1].lines((cid, key, n) for cid, n in nodes)
        yield Change(
            "lowering", CHANGED, f"{where}{names}: {before} became {after}", lines, facts[:MAX_FACTS]
        )


def _lowering_words(entry: Lowered) -> str:
    """Return the lowering of a node in words, without loop names."""
    if entry.buffer or entry.parts:
        parts = f", in {len(entry.parts) + bool(entry.buffer)} steps" if entry.parts else ""
        return f"a buffer ({entry.reason}){parts}"
    return "inlined"


def _names(side: Side, key: str, nodes: Iterable[Named]) -> list[str]:
    numbers, stage = side.numbers(key), side.stage(key)
    return [name(stage[numbers[node]].node) for node in nodes if node in numbers]


def fusion(where: str, sides: tuple[Side, Side], phases: tuple[str, str], match: Match) -> Iterator[Change]:
    """Yield operators of both captures that are one group on one side and several on the other."""
    keys = (f"{phases[0]}.post_grad", f"{phases[1]}.post_grad")
    homes = [_groups_by_node(side, phase, key) for side, phase, key in zip(sides, phases, keys)]
    forth = dict(match.pairs)
    back = {two: one for one, two in forth.items()}
    for own, other, pairs in ((0, 1, forth), (1, 0, back)):
        for numbers in _groups(homes[own]).values():
            parts: dict[Named, list[int]] = {}
            for number in numbers:
                for home in homes[other].get(pairs.get(number, -1), ())[:1]:
                    parts.setdefault(home, []).append(pairs[number])
            if len(parts) < 2:
                continue
            items = sides[other].stage(keys[other])
            sets = [counted(name(items[n].node) for n in some) for some in parts.values()]
            theirs = [n for some in parts.values() for n in some]
            now = sides[1].stage(keys[1])
            lines = sides[1].lines(now[n if own == 0 else forth[n]].address for n in theirs)
            # The reasons come from the side where they are separate, which may be the first.
            verb, head = (
                ("was one group, and is several", "they are not fused because")
                if own == 0
                else ("was several groups, and is one", "they were not fused because")
            )
            reasons = _why(sides[other].capture, phases[other], list(parts))
            facts = tuple(f"{head}: {one}" for one in reasons)
            yield Change("fusion", CHANGED, f"{where}{' | '.join(sets)} {verb}", lines, facts)


def _groups_by_node(side: Side, phase: str, key: str) -> dict[int, list[Named]]:
    """Return the groups of each post-grad node that computes something."""
    numbers, stage = side.numbers(key), side.stage(key)
    homes: dict[int, list[Named]] = {}
    for group, nodes in side.groups(phase).items():
        for node in nodes:
            if node in numbers and stage[numbers[node]].node.compute:
                homes.setdefault(numbers[node], []).append(group)
    return homes


def _groups(homes: Mapping[int, list[Named]]) -> dict[Named, list[int]]:
    """Return the nodes computed by one group only: nodes inlined into several groups separate none."""
    by_group: dict[Named, list[int]] = {}
    for number, groups in homes.items():
        if len(groups) == 1:
            by_group.setdefault(groups[0], []).append(number)
    return by_group


def _why(capture: Record, phase: str, groups: list[Named]) -> tuple[str, ...]:
    """Return the recorded reasons why groups are not fused."""
    wanted = {name for _, name in groups}
    ids = list(dict.fromkeys(cid for cid, _ in groups))
    reasons = [
        p.why for cid in ids for p in unfused_pairs(capture, cid, phase) if {p.first, p.second} <= wanted
    ]
    if not reasons and len(ids) == 1:
        first, second = (name for _, name in groups[:2])
        reasons = [why(capture, first, second, f"{ids[0]} {phase}")]
    sentences = [f"{one.sentence} ({one.reason})" if one.reason else one.sentence for one in reasons]
    return tuple(dict.fromkeys(sentences or ["They are in different graphs, each compiled by itself."]))[
        :MAX_FACTS
    ]


Nodes = frozenset[int]
"""Numbers of the post-grad nodes whose value is in a buffer."""


def memory(where: str, sides: tuple[Side, Side], phases: tuple[str, str], match: Match) -> Iterator[Change]:
    """Yield values that reuse the memory of another buffer than before."""
    reuses_before, reuses_after = (_reuses(side, phase) for side, phase in zip(sides, phases))
    items = sides[1].stage(f"{phases[1]}.post_grad")

    def operators(some: list[Nodes]) -> str:
        return counted(name(items[n].node) for nodes in some for n in sorted(nodes))

    removed: list[tuple[Nodes, Nodes]] = []
    added: list[tuple[Nodes, Nodes]] = []
    for nodes, taken in reuses_before.items():
        mapped, before = (frozenset(match.pairs.get(n, -1) for n in some) for some in (nodes, taken))
        after = reuses_after.get(mapped)
        if after is None or -1 in mapped or -1 in before or before == after:
            continue
        if before and after:
            how = f"takes over the memory of {operators([after])}, not of {operators([before])}"
            text = f"the result of {operators([mapped])} {how}"
            yield Change(
                "memory", CHANGED, where + text, sides[1].lines(items[n].address for n in sorted(mapped))
            )
        else:
            (removed if before else added).append((mapped, before or after))
    for kind, some, words in (
        (REMOVED, removed, "no longer take{s} over"),
        (ADDED, added, "now take{s} over"),
    ):
        if some:
            results = "result" if len(some) == 1 else "results"
            verb = words.format(s="s" * (len(some) == 1))
            of = f"of {operators([nodes for _, nodes in some])}"
            text = f"{where}the {results} of {operators([nodes for nodes, _ in some])} {verb} the memory {of}"
            lines = sides[1].lines(items[n].address for nodes, _ in some for n in sorted(nodes))
            yield Change("memory", kind, text, lines)


def _reuses(side: Side, phase: str) -> dict[Nodes, Nodes]:
    """Return by the nodes of each buffer those of the buffer whose memory it reuses; empty for memory of its own."""
    numbers = side.numbers(f"{phase}.post_grad")
    taken: dict[Nodes, Nodes] = {}
    for compilation in side.capture.compilations:
        for plan in (m for m in compilation.memory if m.phase == phase):
            nodes = {
                buffer.name: frozenset(
                    numbers[compilation.id, o] for o in buffer.origins if (compilation.id, o) in numbers
                )
                for buffer in plan.buffers
            }
            for buffer in plan.buffers:
                if buffer.kind != "input" and nodes[buffer.name]:
                    taken.setdefault(nodes[buffer.name], nodes.get(buffer.reuses, frozenset()))
    return taken


def caller_code(where: str, sides: tuple[Side, Side], phases: tuple[str, str]) -> Iterator[Change]:
    """Yield the changed lines of the code that calls the kernels, by compilation.

    A graph's inputs are numbered in the order in which the program reads them. If lines moved, the numbers change:
    inputs are matched as in the graphs, and a new order of unpacking, checking and freeing them is no difference.
    """
    own = [[c for c in side.capture.compilations if phase in c.code] for side, phase in zip(sides, phases)]
    shown: list[str] = []
    for a, b in zip(*own):
        one, two = (calls(c.code[phase].text) for c, phase in zip((a, b), phases))
        names = _inputs(sides, phases, (a.id, b.id))
        if any(x != y for x, y in names.items()) and _order_independent(one) == _order_independent(
            [_renamed(x, names) for x in two]
        ):
            continue
        shown += signed(one, two, hunks(one, two))
    if shown:
        yield differing_lines(f"{where}the code that calls the kernels", shown)


_WORD = re.compile(r"\w+")


def _inputs(sides: tuple[Side, Side], phases: tuple[str, str], cids: tuple[str, str]) -> dict[str, str]:
    """Return the first compilation's names for the inputs of the second."""
    a, b = (side.stage(phase) for side, phase in zip(sides, phases))
    return {
        b[two].address[2]: a[one].address[2]
        for one, two in matched(sides, phases).pairs.items()
        if a[one].node.op == "placeholder" and (a[one].address[0], b[two].address[0]) == cids
    }


def _renamed(line: str, names: dict[str, str]) -> str:
    return _WORD.sub(lambda word: names.get(word[0], word[0]), line)


def _order_independent(lines: list[str]) -> Counter[str]:
    """Count lines in any order; the line that unpacks all inputs (``arg0_1, arg1_1 = args``) by its sorted names."""
    return Counter(
        ", ".join(sorted(_WORD.findall(line))) if line.endswith("= args") else line for line in lines
    )
