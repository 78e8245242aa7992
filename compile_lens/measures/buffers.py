"""Buffers between the fused groups of one phase: their writers and readers, and bytes that fusing two would save."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from compile_lens.record.graph import Node
from compile_lens.record.lowering import Lowered

from .arithmetic import node_bytes


class Buffers:
    """Readers and writers of the buffers of one phase.

    Args:
        loops, groups: the nodes of those stages by name; the inputs of the graph are among the loops.
        aten: the post-grad nodes by name.
        lowered: buffers that lowering made of them; empty if not observed: then any value may be needed, or none.
        sizes: the observed values of size symbols.
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

    def common(self, first: Collection[str], second: Collection[str]) -> list[str]:
        """Return names of loops and inputs that one writes and the other reads, or both read, in order of the loops."""
        reads_first, writes_first = self.touched(first)
        reads_second, writes_second = self.touched(second)
        shared = (writes_first & reads_second) | (writes_second & reads_first) | (reads_first & reads_second)
        return sorted((name for name in shared if name in self._loops), key=self._order.__getitem__)

    def saved(self, first: Collection[str], second: Collection[str]) -> tuple[int | None, str]:
        """Return the bytes that one kernel for both would save at most; ``None`` and the reason if a size is not known.

        The kernel reads no buffer that it writes, does not write it if nothing else needs it, and reads any other once.
        """
        common = self.common(first, second)
        known = {name: node_bytes(self._loops[name], self._sizes) for name in common}
        unknown = [name for name, nbytes in known.items() if nbytes is None]
        if without := [name for name in unknown if not self._loops[name].outputs]:
            return None, f"the size of what {', '.join(without)} writes is not recorded"
        if unknown:
            return None, f"the size of {', '.join(unknown)} is not known before it runs"
        together = {*first, *second}
        total = 0
        for name in common:
            size = known[name] or 0
            maker, readers = self.makers.get(name, ""), self.readers.get(name, {})
            within = [g for g in readers if g in together and g != maker]
            reads = sorted(_bytes_moved(size, self._groups[g].reads) for g in within)
            if maker not in together:
                total += sum(reads[:-1])
                continue
            written = _bytes_moved(size, self._groups[maker].writes)
            total += sum(min(read, written) for read in reads)  # the rest was there before: it has to be read
            if name not in self._needed and together.issuperset(readers):
                total += written
        return total, ""

    def touched(self, groups: Collection[str]) -> tuple[set[str], set[str]]:
        """Return the buffers that groups read, and those that they write."""
        reads = {name for g in groups for name in self._read_by.get(g, ())}
        return reads, {name for g in groups for name in self._made_by.get(g, ())}

    def leaves(self, buffer: str, group: str) -> bool:
        """Return True if a buffer that a group writes is or may be a graph result, or if another group reads it."""
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
        """The group that writes each buffer; for one of several results of a library call, the group of the call."""
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
        """Yield the buffers that a loop reads: for a concatenation its pieces, for a loop without work none."""
        before = self._run_before(loop)
        for name in loop.inputs if loop.kind != "nop" else ():
            if name in before:
                continue
            inner = self._loops.get(name)
            pieces = inner is not None and inner.kind == "nop" and len(inner.inputs) > 1
            yield from inner.inputs if pieces and inner is not None else (name,)

    def _run_before(self, loop: Node) -> set[str]:
        """Return the inputs of a loop that it does not read: loops that read what it overwrites, so that they come
        before it."""
        if loop.name not in self._overwriting:
            return set()
        read = {name for origin in loop.origins if origin in self._aten for name in self._aten[origin].inputs}
        queue = list(read)
        for name in queue:
            node = self._aten.get(name)
            if node is not None and node.kind == "view":
                queue += [one for one in node.inputs if one not in read]
                read.update(node.inputs)
        return {name for name in loop.inputs if name in self._values and self._values[name] not in read}

    @cached_property
    def _overwriting(self) -> frozenset[str]:
        return frozenset(entry.buffer for entry in self._lowered if entry.reason == "mutation")

    @cached_property
    def _values(self) -> dict[str, str]:
        """The post-grad node whose value is in each buffer."""
        return {entry.buffer: entry.node for entry in self._lowered if entry.buffer}

    @cached_property
    def _needed(self) -> frozenset[str]:
        """Loops whose values must be written whatever reads them: graph results and inputs changed in place."""
        nodes = self._aten
        results: set[str] = set()
        for name in (name for n in nodes.values() if n.op == "output" for name in n.inputs):
            while name in nodes and nodes[name].kind == "view" and nodes[name].inputs:
                name = nodes[name].inputs[0]
            results.add(name)
        return frozenset(e.buffer for e in self._lowered if e.node in results or e.reason == "mutation")


def _bytes_moved(size: int, moved: int | None) -> int:
    """Return a buffer's size, or all bytes that a group moves if fewer: it may read only a part."""
    return size if moved is None else min(size, moved)
