"""The buffers between the groups of one phase: who writes and reads each, and what one kernel for two would save."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from compile_lens.record.graph import Node
from compile_lens.record.lowering import Lowered

from .arithmetic import node_bytes


class Buffers:
    """Who touches what.

    Args:
        loops, groups: the nodes of those stages by name; the inputs of the graph are among the loops.
        aten: the post-grad nodes by name.
        lowered: what lowering made of them; empty where it was not seen: then any value may be needed, or none.
        sizes: the numbers that were seen for symbols of sizes.
    """

    def __init__(
        self,
        loops: Mapping[str, Node],
        groups: Mapping[str, Node],
        aten: Mapping[str, Node],
        lowered: Iterable[Lowered],
        sizes: Mapping[str, int],
    ) -> None:
        self._sizes = sizes
        self._loops = loops
        self._groups = groups
        self._aten = aten
        self._lowered = tuple(lowered)

    def common(self, ga: Collection[str], gb: Collection[str]) -> list[str]:
        """Return the loops and inputs that one writes and the other reads, or that both read, by name, in order."""
        reads_a, writes_a = self.touched(ga)
        reads_b, writes_b = self.touched(gb)
        shared = (writes_a & reads_b) | (writes_b & reads_a) | (reads_a & reads_b)
        return sorted((name for name in shared if name in self._loops), key=self._order.__getitem__)

    def saved(self, ga: Collection[str], gb: Collection[str]) -> tuple[int | None, str]:
        """Bytes that one kernel for both would not move, at most; ``None`` and why, where a size is not known.

        A buffer that is made there is not read, nor written if nothing else is known to need it; any other is read
        once.
        """
        common = self.common(ga, gb)
        known = {name: node_bytes(self._loops[name], self._sizes) for name in common}
        unknown = [name for name, nbytes in known.items() if nbytes is None]
        if unknown:
            return None, f"the size of {', '.join(unknown)} is not known before it runs"
        together = {*ga, *gb}
        total = 0
        for name in common:
            size = known[name] or 0
            maker, readers = self.makers.get(name, ""), self.readers.get(name, {})
            within = [g for g in readers if g in together and g != maker]
            reads = sorted(_most(size, self._groups[g].reads) for g in within)
            if maker not in together:
                total += sum(reads[:-1])
                continue
            total += sum(reads)
            if name not in self._needed and together.issuperset(readers):
                total += _most(size, self._groups[maker].writes)
        return total, ""

    def touched(self, groups: Collection[str]) -> tuple[set[str], set[str]]:
        """The buffers that groups read, and those that they write."""
        reads = {name for g in groups for name in self._read_by.get(g, ())}
        return reads, {name for g in groups for name in self._made_by.get(g, ())}

    def leaves(self, buffer: str, group: str) -> bool:
        """Return True if a buffer that a group writes is, or may be, a result, or another group reads it."""
        return (
            not self._lowered
            or buffer in self._needed
            or any(reader != group for reader in self.readers.get(buffer, ()))
        )

    @cached_property
    def _order(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self._loops)}

    @cached_property
    def makers(self) -> dict[str, str]:
        """The group that writes each buffer; one result of a library call is written by the call."""
        makers = {member: name for name, group in self._groups.items() for member in group.members}
        for name, loop in self._loops.items():
            if loop.kind == "nop" and len(loop.inputs) == 1 and loop.inputs[0] in makers:
                makers[name] = makers[loop.inputs[0]]
        return makers

    @cached_property
    def _made_by(self) -> dict[str, list[str]]:
        loops_by_group: dict[str, list[str]] = {}
        for name, group in self.makers.items():
            loops_by_group.setdefault(group, []).append(name)
        return loops_by_group

    @cached_property
    def _read_by(self) -> dict[str, dict[str, None]]:
        return {
            name: {
                read: None for m in group.members if m in self._loops for read in self._read(self._loops[m])
            }
            for name, group in self._groups.items()
        }

    @cached_property
    def readers(self) -> dict[str, dict[str, None]]:
        """The groups that read each buffer."""
        readers: dict[str, dict[str, None]] = {}
        for group, reads in self._read_by.items():
            for name in reads:
                readers.setdefault(name, {})[group] = None
        return readers

    def _read(self, loop: Node) -> Iterator[str]:
        """The buffers that a loop reads. A concatenation is read where its pieces are; what does no work reads none."""
        for name in loop.inputs if loop.kind != "nop" else ():
            inner = self._loops.get(name)
            pieces = inner is not None and inner.kind == "nop" and len(inner.inputs) > 1
            yield from inner.inputs if pieces and inner is not None else (name,)

    @cached_property
    def _needed(self) -> frozenset[str]:
        """Loops whose values must be in memory whatever reads them: results of the graph, inputs changed in place."""
        nodes = self._aten
        results: set[str] = set()
        for name in (name for n in nodes.values() if n.op == "output" for name in n.inputs):
            while name in nodes and nodes[name].kind == "view" and nodes[name].inputs:
                name = nodes[name].inputs[0]
            results.add(name)
        return frozenset(e.buffer for e in self._lowered if e.node in results or e.reason == "mutation")


def _most(size: int, moved: int | None) -> int:
    """The size of a buffer, or what a group moves at all where that is less: it may read a part of it."""
    return size if moved is None else min(size, moved)
