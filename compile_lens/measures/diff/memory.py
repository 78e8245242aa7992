"""Buffers whose memory another value takes over in one of two captures alone, and the code that calls the kernels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from compile_lens.record.difference import ADDED, CHANGED, REMOVED, Change

from .kernels import calls, hunks
from .matching import Match
from .operators import counted, name
from .side import Side, matched

Nodes = frozenset[int]
"""The post-grad nodes whose value a buffer holds, by their numbers."""


def memory(where: str, sides: tuple[Side, Side], phases: tuple[str, str], match: Match) -> Iterator[Change]:
    """Yield the changes in which buffer's memory a value reuses."""
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
    """For the nodes of each buffer, those of the buffer whose memory it reuses; none if it has memory of its own."""
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


def around(where: str, sides: tuple[Side, Side], phases: tuple[str, str]) -> Iterator[Change]:
    """Yield the changed lines of the code that calls the kernels, by compilation.

    A graph's inputs are numbered in the order in which the program reads them. If lines moved, the order changes:
    inputs are then matched as the graph's are, and a new order of taking, checking and freeing them is no difference.
    """
    own = [[c for c in side.capture.compilations if phase in c.code] for side, phase in zip(sides, phases)]
    shown: list[str] = []
    for a, b in zip(*own):
        one, two = (calls(c.code[phase].text) for c, phase in zip((a, b), phases))
        names = _inputs(sides, phases, (a.id, b.id))
        if any(x != y for x, y in names.items()) and _moved(one) == _moved([_named(x, names) for x in two]):
            continue
        for before, after in hunks(one, two):
            shown += [f"-{one[n]}" for n in before]
            shown += [f"+{two[n]}" for n in after]
    if shown:
        lines = f"{len(shown)} line{'s' * (len(shown) > 1)} differ{'s' * (len(shown) == 1)}"
        yield Change("code", CHANGED, f"{where}the code that calls the kernels: {lines}", (), tuple(shown))


_WORD = re.compile(r"\w+")


def _inputs(sides: tuple[Side, Side], phases: tuple[str, str], cids: tuple[str, str]) -> dict[str, str]:
    """The names in the first compilation of the inputs of the second."""
    a, b = (side.stage(phase) for side, phase in zip(sides, phases))
    return {
        b[two].address[2]: a[one].address[2]
        for one, two in matched(sides, phases).pairs.items()
        if a[one].node.op == "placeholder" and (a[one].address[0], b[two].address[0]) == cids
    }


def _named(line: str, names: dict[str, str]) -> str:
    return _WORD.sub(lambda word: names.get(word[0], word[0]), line)


def _moved(lines: list[str]) -> Counter[str]:
    """Lines in any order; the names in the line that takes all inputs (``arg0_1, arg1_1 = args``) in any order too."""
    return Counter(
        ", ".join(sorted(_WORD.findall(line))) if line.endswith("= args") else line for line in lines
    )
