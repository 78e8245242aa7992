"""One side of a comparison: a capture's nodes by stage over all compilations, and their lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.lowering import Lowered, Pass, Rewrite

from ..address import Address, walk
from ..chain import Chain
from ..input_names import sources
from ..operators import base_name, called
from .matching import Item, Match, items, match

Named = tuple[str, str]
"""A compile id and the name of a node in one stage."""


class Side:
    """One capture, with the nodes of all compilations in one sequence for each stage, so that operators match across
    graph breaks."""

    def __init__(self, capture: Record) -> None:
        self.capture = capture
        self._items: dict[str, list[Item]] = {}
        self._numbers: dict[str, dict[Named, int]] = {}
        self.matches: dict[tuple[Side, tuple[str, str]], Match] = {}
        self._groups: dict[str, dict[Named, tuple[Named, ...]]] = {}

    @cached_property
    def chain(self) -> Chain:
        return Chain(self.capture)

    @cached_property
    def phases(self) -> tuple[str, ...]:
        """Phases of the capture."""
        return tuple(p for p in PHASES if any(p in c.phases for c in self.capture.compilations))

    def stage(self, key: str) -> list[Item]:
        """Return the nodes of a stage, over all compilations."""
        if key not in self._items:
            home = self.capture.environment.target.partition(":")[0]
            self._items[key] = items(self._nodes(key), self._argument, home)
        return self._items[key]

    @cached_property
    def _arguments(self) -> dict[str, int]:
        """Argument numbers of the function by Dynamo's name: arguments are identified by position."""
        return {f"L_{text.partition(':')[0]}_": n for n, text in enumerate(self.capture.inputs)}

    @cached_property
    def functions(self) -> dict[str, str]:
        """The function of each compilation, by its id."""
        return {compilation.id: compilation.function for compilation in self.capture.compilations}

    @cached_property
    def handed(self) -> dict[Named, str]:
        """Source of each compilation's inputs, ``L['x']``, by Dynamo's name."""
        return {
            (c.id, name): source for c in self.capture.compilations for name, source in sources(c).items()
        }

    def _argument(self, node: Node) -> int | None:
        return self._arguments.get(node.target)

    def _nodes(self, key: str) -> Iterator[tuple[Address, str, Node]]:
        for compilation in self.capture.compilations:
            graph = compilation.graphs.get(key)
            for path, node in walk(graph) if isinstance(graph, Graph) else ():
                yield (compilation.id, key, path + node.name), path, node

    def before(self, key: str) -> str:
        """Return the stage of the origins of a stage's nodes; ``""`` for the first stage."""
        graphs = (c.graphs.get(key) for c in self.capture.compilations)
        return next((graph.before for graph in graphs if isinstance(graph, Graph)), "")

    def inputs(self, key: str, before: str) -> dict[int, int]:
        """Return the numbers of a stage's inputs by their origins' numbers in the stage before."""
        numbers = self.numbers(before)
        return {
            numbers[item.address[0], origin]: number
            for number, item in enumerate(self.stage(key))
            for origin in (item.node.origins if item.node.op == "placeholder" else ())
            if (item.address[0], origin) in numbers
        }

    def numbers(self, key: str) -> dict[Named, int]:
        """Return the number of each node of a stage."""
        if key not in self._numbers:
            self._numbers[key] = {(i.address[0], i.address[2]): n for n, i in enumerate(self.stage(key))}
        return self._numbers[key]

    def rewrites(self, key: str) -> Iterator[tuple[Compilation, Pass, Rewrite]]:
        """Yield the rewrites of a stage, each with its pass and its compilation."""
        for compilation in self.capture.compilations:
            for done in compilation.passes:
                if done.stage == key:
                    yield from ((compilation, done, rewrite) for rewrite in done.rewrites)

    def near_misses(self, key: str) -> Iterator[tuple[str, str]]:
        """Yield the patterns that nearly matched in a stage, with their reports."""
        for compilation in self.capture.compilations:
            for done in compilation.passes:
                for miss in done.near_misses if done.stage == key else ():
                    yield miss.partition(":")[0], miss

    def lowered(self, phase: str) -> Iterator[tuple[Named, Lowered]]:
        """Yield each node of a phase with its lowering."""
        for compilation in self.capture.compilations:
            for entry in compilation.lowered:
                if entry.phase == phase:
                    yield (compilation.id, entry.node), entry

    def groups(self, phase: str) -> dict[Named, tuple[Named, ...]]:
        """Return the groups of a phase that do work, each with the post-grad nodes that it computes."""
        if phase not in self._groups:
            self._groups[phase] = dict(self._grouped(phase))
        return self._groups[phase]

    def _grouped(self, phase: str) -> Iterator[tuple[Named, tuple[Named, ...]]]:
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
        """Yield the kernels of a phase."""
        for compilation in self.capture.compilations:
            code = compilation.code.get(phase)
            if code is not None:
                yield from ((compilation, code, kernel) for kernel in code.kernels)

    def computed(self, phase: str, cid: str, kernel: Kernel) -> tuple[Named, ...]:
        """Return the post-grad nodes that a kernel computes: its origins, or those of its groups.

        Inductor also lists the inputs of a library call among its origins: only nodes with the call's name count.
        """
        key, groups = f"{phase}.post_grad", self.groups(phase)
        stage, numbers = self.stage(key), self.numbers(key)
        names = [(cid, o) for o in kernel.origins]
        names = names or [n for g in kernel.groups for n in groups.get((cid, g), ())]
        nodes = {n: stage[numbers[n]].node for n in names if n in numbers and stage[numbers[n]].node.compute}
        own = [n for n, node in nodes.items() if base_name(node.target) == base_name(called(kernel.name))]
        return tuple(own if own and kernel.language == "extern" else nodes)

    def lines(self, addresses: Iterable[Address]) -> tuple[str, ...]:
        """Return the Python lines of nodes, as ``model.py:7: y = x.sin()``."""
        return places(f for address in addresses for f in self.frames(address))

    def frames(self, address: Address) -> tuple[Frame, ...]:
        """Return the innermost frames that a node came from."""
        number = self.numbers(address[1]).get((address[0], address[2]))
        own = self.stage(address[1])[number].node.innermost if number is not None else ()
        return own or self.chain.lines(address, derivatives=False)

    def kernel_lines(self, kernel: Kernel) -> tuple[str, ...]:
        """Return the Python lines of a kernel."""
        return places(self.chain.lines(kernel, derivatives=False))


def matched(sides: tuple[Side, Side], keys: tuple[str, str]) -> Match:
    """Return the matched nodes of a stage; inputs are matched as in the stage before."""
    a, b = sides
    if (b, keys) not in a.matches:
        a.matches[b, keys] = match(a.stage(keys[0]), b.stage(keys[1]), _inputs(sides, keys))
    return a.matches[b, keys]


def _inputs(sides: tuple[Side, Side], keys: tuple[str, str]) -> dict[int, int | None]:
    """Return the second side's counterpart, or ``None``, of each input of the first that has origins."""
    above = tuple(side.before(key) for side, key in zip(sides, keys))
    if not all(above) or not all(side.stage(key) for side, key in zip(sides, above)):
        return {}
    ones, twos = (side.inputs(key, before) for side, key, before in zip(sides, keys, above))
    same = matched(sides, (above[0], above[1])).pairs if ones and twos else {}
    known: dict[int, int | None] = {}
    for origin, number in ones.items():
        known[number] = known.get(number) or twos.get(same.get(origin, -1))
    return known


def of_one_program(a: Side, b: Side, key: str) -> dict[Named, Named]:
    """Return the matched nodes of two captures of one program that have the same Python lines."""
    ones, twos = (side.stage(key) for side in (a, b))

    def lines(side: Side, address: Address) -> set[tuple[str, int]]:
        return {(f.file, f.line) for f in side.frames(address)}

    return {
        (one[0], one[2]): (two[0], two[2])
        for x, y in matched((a, b), (key, key)).pairs.items()
        if lines(a, one := ones[x].address) == lines(b, two := twos[y].address)
    }


def places(frames: Iterable[Frame]) -> tuple[str, ...]:
    """Return frames as ``model.py:7: y = x.sin()``, each line once."""
    lines = {}
    for f in frames:
        name = f.file.replace("\\", "/").rpartition("/")[2] or f.file
        lines[f.file, f.line] = f"{name}:{f.line}: {f.whole_line.expression}".rstrip(": ")
    return tuple(lines.values())
