"""Loads and stores of each launch: modelled bytes by the ATen nodes that cause them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import Kernel

from .address import walk
from .arithmetic import node_bytes, observed_sizes
from .buffers import Buffers

_SHARES_MEMORY = ("view", "allocation")
"""Kinds of nodes whose result lies in the memory of another node."""


_MAX_SIZE = 2**63


def size(number: int | None) -> int | None:
    """Return a number of bytes or operations; ``None`` if it is implausible."""
    return number if number is not None and 0 <= number < _MAX_SIZE else None


@dataclass(frozen=True)
class Access:
    """Bytes loaded or stored, and the names of the post-grad nodes that share them equally."""

    nbytes: float
    nodes: tuple[str, ...]


class LaunchAccesses:
    """Loads and stores of the launches of one phase."""

    def __init__(self, compilation: Compilation, phase: str) -> None:
        graphs = compilation.graphs
        nodes, loops, groups = (
            _by_name(graphs.get(f"{phase}.{stage}")) for stage in ("post_grad", "loops", "groups")
        )
        lowered = [one for one in compilation.lowered if one.phase == phase]
        self.nodes = nodes
        self._sizes = observed_sizes(compilation)
        self._loops, self._groups = loops, groups
        self._buffers = Buffers(loops, groups, nodes, lowered, self._sizes)
        self._values: dict[str, tuple[str, ...]] = {
            one.node: (one.buffer, *one.parts) for one in lowered if one.buffer or one.parts
        }
        if not lowered:
            self._values = {
                loop.origins[-1]: (name,) for name, loop in loops.items() if loop.origins and loop.op != "nop"
            }
        self._writers: dict[str, list[str]] = {}
        for node, buffers in self._values.items():
            for buffer in buffers:
                self._writers.setdefault(buffer, []).append(node)

    def launches(self, kernel: Kernel) -> list[tuple[Access, ...]]:
        """Return the accesses of each launch of a kernel: those of its own groups if all launches are alike, else an
        equal share of all. If sizes are unknown, each launch is a single access by all nodes that it computes."""
        count = max(kernel.launches, 1)
        own = self._computing(kernel.origins)
        if kernel.language == "extern":
            return [(Access(_moved(kernel) / count, own[-1:]),)] * count
        groups = [name for name in kernel.groups if name in self._groups]
        accesses = {name: tuple(self._of_group(name)) for name in groups}
        # The same code runs in each launch, so groups are in launch order and alike in all launches.
        each = len(groups) // count
        sizes = [(self._groups[name].reads, self._groups[name].writes) for name in groups]
        alike = each * count == len(kernel.groups) and sizes == sizes[:each] * count
        if each and alike and all(accesses.values()):
            launches = (groups[start : start + each] for start in range(0, len(groups), each))
            return [tuple(one for name in own_groups for one in accesses[name]) for own_groups in launches]
        together = [one for name in groups for one in accesses[name]]
        if not together:
            return [(Access(_moved(kernel) / count, own),)] * count
        return [tuple(Access(one.nbytes / count, one.nodes) for one in together)] * count

    def _computing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names of nodes that compute; all known names if none does."""
        every = tuple(name for name in names if name in self.nodes)
        return tuple(name for name in every if self.nodes[name].compute) or every

    def _of_group(self, name: str) -> Iterator[Access]:
        group = self._groups[name]
        members = [self._loops[member] for member in group.members if member in self._loops]
        own = self._computing(dict.fromkeys(origin for loop in members for origin in loop.origins))
        reads, writes = self._buffers.touched((name,))
        loads = {buffer: self._readers(buffer, members) or own for buffer in sorted(reads - writes)}
        stores = {
            buffer: tuple(self._writers.get(buffer, ())) or own
            for buffer in sorted(writes)
            if self._buffers.leaves(buffer, name)
        }
        yield from self._shared(group.reads, loads, own)
        yield from self._shared(group.writes, stores, own)

    def _shared(
        self, total: int | None, nodes_of: Mapping[str, tuple[str, ...]], own: tuple[str, ...]
    ) -> Iterator[Access]:
        """Split the bytes that a group moves over its buffers, in proportion to their sizes."""
        total = size(total)
        if total is None:
            return
        sizes = {buffer: self._size(buffer) for buffer in nodes_of}
        known = {buffer: min(own_size, total) for buffer, own_size in sizes.items() if own_size is not None}
        whole = sum(known.values())
        if not whole or len(known) < len(sizes):
            yield Access(total, own)
            return
        for buffer, own_size in known.items():
            yield Access(total * own_size / whole, nodes_of[buffer])

    def _size(self, buffer: str) -> int | None:
        node = self._loops.get(buffer) or self.nodes.get(buffer)
        return size(node_bytes(node, self._sizes)) if node is not None else None

    def _readers(self, buffer: str, loops: Iterable[Node]) -> tuple[str, ...]:
        """Return the nodes of loops that read a buffer's value."""
        origins = dict.fromkeys(o for loop in loops if buffer in loop.inputs for o in loop.origins)
        return tuple(
            name
            for name in origins
            if name in self.nodes
            and self.nodes[name].kind not in _SHARES_MEMORY
            and any(buffer in self._buffers_of(name, value) for value in self.nodes[name].inputs)
        )

    def _buffers_of(self, reader: str, value: str) -> tuple[str, ...]:
        """Return the buffers that contain a node's value when another node reads it."""
        path = reader.rpartition("/")[0]
        name = f"{path}/{value}" if path and f"{path}/{value}" in self.nodes else value
        for _ in range(len(self.nodes)):
            node = self.nodes.get(name)
            if name in self._values or node is None:
                break
            if node.op == "placeholder":
                return (name,)
            if not node.inputs or not (node.kind in _SHARES_MEMORY or not node.compute):
                break
            name = node.inputs[0]
        return self._values.get(name, (name,))


def _by_name(graph: Graph | None) -> dict[str, Node]:
    return {path + node.name: node for path, node in walk(graph)} if graph is not None else {}


def _moved(kernel: Kernel) -> int:
    return (size(kernel.reads) or 0) + (size(kernel.writes) or 0)
