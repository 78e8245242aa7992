"""One of the two captures that are compared: its nodes by stage over all compilations, and the lines they came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.lowering import Lowered

from ..address import Address, walk
from ..chain import Chain
from .matching import Item, items

Named = tuple[str, str]
"""A compile id and the name of a node in one stage."""


class Side:
    """What is asked of one capture. Stages of all compilations stand one after the other: a graph break is no reason
    for an operator to be another."""

    def __init__(self, capture: Record) -> None:
        self.capture = capture
        self._items: dict[str, list[Item]] = {}
        self._numbers: dict[str, dict[Named, int]] = {}

    @cached_property
    def chain(self) -> Chain:
        return Chain(self.capture)

    @cached_property
    def phases(self) -> tuple[str, ...]:
        """The phases that it has."""
        return tuple(p for p in PHASES if any(p in c.phases for c in self.capture.compilations))

    def stage(self, key: str) -> list[Item]:
        """The nodes of a stage, over all compilations."""
        if key not in self._items:
            self._items[key] = items(self._nodes(key), self._argument)
        return self._items[key]

    @cached_property
    def _arguments(self) -> dict[str, int]:
        """The arguments of the function by name: their order tells them apart, not what they are called."""
        return {f"L_{text.partition(':')[0]}_": n for n, text in enumerate(self.capture.inputs)}

    def _argument(self, node: Node) -> int | None:
        return self._arguments.get(node.target)

    def _nodes(self, key: str) -> Iterator[tuple[Address, str, Node]]:
        for compilation in self.capture.compilations:
            graph = compilation.graphs.get(key)
            for path, node in walk(graph) if isinstance(graph, Graph) else ():
                yield (compilation.id, key, path + node.name), path, node

    def numbers(self, key: str) -> dict[Named, int]:
        """The number of each node of a stage."""
        if key not in self._numbers:
            found = enumerate(self.stage(key))
            self._numbers[key] = {(item.address[0], item.address[2]): number for number, item in found}
        return self._numbers[key]

    def lowered(self, phase: str) -> Iterator[tuple[Named, Lowered]]:
        """What lowering made of each node of a phase."""
        for compilation in self.capture.compilations:
            for entry in compilation.lowered:
                if entry.phase == phase:
                    yield (compilation.id, entry.node), entry

    def groups(self, phase: str) -> Iterator[tuple[Named, tuple[Named, ...]]]:
        """The groups of a phase that do work, each with the post-grad nodes that it computes."""
        for compilation in self.capture.compilations:
            graph, loops = (compilation.graphs.get(f"{phase}.{stage}") for stage in ("groups", "loops"))
            if not isinstance(graph, Graph) or not isinstance(loops, Graph):
                continue
            origins = {node.name: node.origins for node in loops.nodes}
            for group in graph.calls:
                if group.kind == "nop":
                    continue
                names = dict.fromkeys(o for member in group.members for o in origins.get(member, ()))
                yield (compilation.id, group.name), tuple((compilation.id, name) for name in names)

    def kernels(self, phase: str) -> Iterator[tuple[Compilation, Code, Kernel]]:
        """The kernels of a phase."""
        for compilation in self.capture.compilations:
            code = compilation.code.get(phase)
            if code is not None:
                yield from ((compilation, code, kernel) for kernel in code.kernels)

    def lines(self, addresses: Iterable[Address]) -> tuple[str, ...]:
        """The Python lines of nodes, as ``model.py:7: y = x.sin()``."""
        return said(f for address in addresses for f in self._frames(address))

    def _frames(self, address: Address) -> tuple[Frame, ...]:
        number = self.numbers(address[1]).get((address[0], address[2]))
        own = self.stage(address[1])[number].node.innermost if number is not None else ()
        return own or self.chain.lines(address)

    def kernel_lines(self, kernel: Kernel) -> tuple[str, ...]:
        """The Python lines of a kernel."""
        return said(self.chain.lines(kernel))


def said(frames: Iterable[Frame]) -> tuple[str, ...]:
    """Frames as ``model.py:7: y = x.sin()``, each line once."""
    found = {}
    for f in frames:
        name = f.file.replace("\\", "/").rpartition("/")[2] or f.file
        found[f.file, f.line] = f"{name}:{f.line}: {f.text.strip()}".rstrip(": ")
    return tuple(found.values())
