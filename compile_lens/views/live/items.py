"""Numbers for all items of a capture: Python lines, nodes, kernels, lines of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from compile_lens.measures.chain import PYTHON, Address, Chain, kernel_lines, walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import Code

MOST_COMPILATIONS = 40
"""Maximum compilations on the page; the rest is only counted."""


@dataclass(frozen=True)
class SeenStage:
    """A stage with items. ``start`` is the number of its first item.

    ``number`` counts stages from 1: stage 0 is Python. ``names`` are the names of its items, in order; in a module
    first its ``kernels``, then their lines.
    """

    number: int
    compilation: int
    id: str
    stage: Graph | Code
    start: int
    names: tuple[str, ...]
    kernels: int = 0

    @cached_property
    def locals(self) -> dict[str, int]:
        """Return the numbers of items within the stage, by name."""
        return {name: local for local, name in enumerate(self.names)}

    def item(self, name: str) -> int:
        """Return the number of an item of the stage."""
        return self.start + self.locals[name]


class Items:
    """The items of a capture, stage by stage, and the links between them.

    Attributes:
        lines: addresses of the Python lines; their numbers count from 0.
        stages: the other stages, in order of the record.
        above: for each item the items from which it directly came.
        within: runs of kernel lines: the first, the last, and the items that contain all of them.
    """

    def __init__(self, capture: Record) -> None:
        chain = Chain(capture)
        links = dict(chain.links())
        self.compilations: Sequence[Compilation] = capture.compilations[:MOST_COMPILATIONS]
        self.lines = [address for address in links if address[1] == PYTHON]
        self.stages = list(_stages(self.compilations, len(self.lines)))
        self._of: dict[Address, int] = {address: i for i, address in enumerate(self.lines)}
        addresses = list(self.lines)
        for seen in self.stages:
            for local, name in enumerate(seen.names):
                address = (seen.id, seen.stage.key, name)
                addresses.append(address)
                self._of.setdefault(address, seen.start + local)
        self.above: list[list[int]] = [
            [self._of[up] for up in links[address] if up in self._of] for address in addresses
        ]
        self.no_origin: dict[int, str] = {
            item: chain.why_not(addresses[item])
            for item in range(len(self.lines), len(addresses))
            if not self.above[item]
        }
        self.within: list[list[int]] = []
        for seen in self.stages:
            for item in (
                range(seen.start + seen.kernels, seen.start + len(seen.names)) if seen.kernels else ()
            ):
                self._add_within(item, [self._of[place] for place in chain.beside(addresses[item])])
        self._by_key = {(seen.compilation, seen.stage.key): seen for seen in self.stages}

    def _add_within(self, item: int, places: list[int]) -> None:
        if self.within and self.within[-1][1:] == [item - 1, *places]:
            self.within[-1][1] = item
        elif places:
            self.within.append([item, item, *places])

    def line(self, file: str, line: int) -> int | None:
        """Return the number of a Python line, if the record has it."""
        return self._of.get(("", PYTHON, f"{file}:{line}"))

    def item(self, address: Address) -> int | None:
        """Return the number of the item at an address, if the page has it."""
        return self._of.get(address)

    def seen(self, compilation: int, key: str) -> SeenStage | None:
        """Return a stage by the number of its compilation and its key."""
        return self._by_key.get((compilation, key))

    def before(self, seen: SeenStage) -> Graph | None:
        """Return the graph to whose nodes the origins of a stage's graph refer."""
        stage = seen.stage
        previous = self.seen(seen.compilation, stage.before) if isinstance(stage, Graph) else None
        return previous.stage if previous is not None and isinstance(previous.stage, Graph) else None


def _stages(compilations: Sequence[Compilation], start: int) -> Iterator[SeenStage]:
    number = 0
    for index, compilation in enumerate(compilations):
        by_key = {s.key: s for s in compilation.stages if isinstance(s, Graph | Code)}
        for stage in by_key.values():
            number += 1
            kernels = 0
            if isinstance(stage, Graph):
                names = dict.fromkeys(path + node.name for path, node in walk(stage))
            else:
                names = dict.fromkeys(kernel.name for kernel in stage.kernels)
                kernels = len(names)
                names.update(dict.fromkeys(_lines(stage)))
            yield SeenStage(number, index, compilation.id, stage, start, tuple(names), kernels)
            start += len(names)


def _lines(code: Code) -> Iterator[str]:
    for kernel in code.kernels:
        if kernel.source:
            yield from (f"{kernel.name}:{line.line}" for line in kernel_lines(kernel))
