"""One phase of one capture by Python line: its operators and the kernels that compute them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from compile_lens.measures.control_flow import launches
from compile_lens.measures.diff.side import Named, Side, of_one_program
from compile_lens.measures.operators import called, operator
from compile_lens.record.compilation import Compilation
from compile_lens.record.figures import MEASURED, ONE, AtLeast, Figure, figure
from compile_lens.record.graph import Node
from compile_lens.record.kernel import Kernel
from compile_lens.record.missing import why_missing

Line = tuple[str, int]
"""A file and a line, from 1; ``("", 0)`` stands for no known line."""

NOWHERE: Line = ("", 0)


@dataclass(frozen=True)
class Work:
    """A kernel with the post-grad nodes that it computes, and the Python lines that these came from."""

    compilation: str
    kernel: Kernel
    nodes: tuple[Named, ...]
    lines: tuple[Line, ...]
    launches: Figure | AtLeast = ONE

    @property
    def called(self) -> str:
        """The function that a library call calls; ``""`` for a generated kernel."""
        return called(self.kernel.name) if self.kernel.language == "extern" else ""


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch of a kernel, or one library call: the fused groups that it runs, and the nodes that they compute."""

    work: Work
    groups: tuple[str, ...]
    nodes: frozenset[Named]

    @property
    def name(self) -> str:
        return self.work.called or self.work.kernel.name


class TargetPhase:
    """One phase of the capture for one target, over all compilations.

    Attributes:
        target: the name of its column.
        handed: compute nodes of the graphs that were handed to Inductor, in order.
        lowered: those of the graphs after Inductor's passes.
        works: the kernels.
        missing: why a compilation has no code, by compile id.
        texts: the text of each Python line.
    """

    def __init__(self, target: str, side: Side, phase: str) -> None:
        self.target, self.side, self.phase = target, side, phase
        self.capture = side.capture
        self.handed, self.lowered, self.loops, self.groups = (
            self._computing(key) for key in (phase, f"{phase}.post_grad", f"{phase}.loops", f"{phase}.groups")
        )
        self.works: list[Work] = []
        self.missing: dict[str, str] = {}
        self.texts: dict[Line, str] = {}
        self._lines: dict[tuple[str, str, str], tuple[Line, ...]] = {}
        self._launch_lines: dict[Launch, frozenset[Line]] = {}
        self._same: dict[str, dict[Named, Named]] = {}
        for compilation in self.capture.compilations:
            self._add(compilation)

    def _computing(self, key: str) -> dict[Named, Node]:
        """Return the nodes of a stage that compute something."""
        return {(i.address[0], i.address[2]): i.node for i in self.side.stage(key) if i.node.compute}

    def _add(self, compilation: Compilation) -> None:
        if self.phase not in compilation.phases:
            return
        code = compilation.code.get(self.phase)
        if code is None:
            stages = {stage.key: stage for stage in compilation.stages}
            self.missing[compilation.id] = why_missing(stages, f"{self.phase}.code")
            return
        for kernel in code.kernels:
            nodes = self.side.computed(self.phase, compilation.id, kernel)
            lines = dict.fromkeys(line for node in nodes for line in self.lines_of(node, "post_grad"))
            count = figure(launches(code, [kernel]), MEASURED)
            self.works.append(Work(compilation.id, kernel, nodes, tuple(lines) or (NOWHERE,), count))

    def lines_of(self, node: Named, stage: str = "") -> tuple[Line, ...]:
        """Return the Python lines of a node of the handed or ``post_grad`` graph; ``NOWHERE`` if none is known."""
        key = (node[0], stage, node[1])
        if key not in self._lines:
            frames = self.side.frames((node[0], f"{self.phase}.{stage}" if stage else self.phase, node[1]))
            self.texts.update({(f.file, f.line): f.text.strip() for f in frames if f.text.strip()})
            self._lines[key] = tuple(dict.fromkeys((f.file, f.line) for f in frames)) or (NOWHERE,)
        return self._lines[key]

    def same_as(self, other: TargetPhase) -> dict[Named, Named]:
        """Return the other target's counterpart of each node after Inductor's passes.

        Nodes are matched as for ``diff``. Lines with other operators, or another order of them, are left out.
        """
        if other.target not in self._same:
            lines = {*self.lowered_by_line, *other.lowered_by_line}
            alike = {line for line in lines if self._order(line) == other._order(line)}
            pairs = of_one_program(self.side, other.side, f"{self.phase}.post_grad")
            self._same[other.target] = {
                one: two
                for one, two in pairs.items()
                if one in self.lowered
                and two in other.lowered
                and alike.issuperset(self.lines_of(one, "post_grad"))
            }
        return self._same[other.target]

    def _order(self, line: Line) -> list[str]:
        return [operator(self.lowered[n].target) for n in self.lowered_by_line.get(line, ())]

    @cached_property
    def launches(self) -> list[Launch]:
        """Launches of all kernels, except those for which the record does not give the groups."""
        each = []
        for work in self.works:
            groups, count = work.kernel.groups, work.kernel.launches
            if not count or len(groups) % count:
                continue
            size = len(groups) // count  # groups are in launch order
            for at in range(0, len(groups), size or 1):
                own = groups[at : at + size]
                nodes = frozenset(n for g in own for n in self.nodes_of(work.compilation, g))
                if work.called:  # its group also lists nodes that it reads
                    nodes &= frozenset(work.nodes)
                each.append(Launch(work, own, nodes))
        return each

    @cached_property
    def launch_of(self) -> dict[Named, Launch]:
        """Launch that runs each group."""
        return {(launch.work.compilation, g): launch for launch in self.launches for g in launch.groups}

    @cached_property
    def launched(self) -> dict[Named, list[Launch]]:
        """Launches of generated kernels that compute each node."""
        by_node: dict[Named, list[Launch]] = {}
        for launch in (one for one in self.launches if not one.work.called):
            for node in launch.nodes:
                by_node.setdefault(node, []).append(launch)
        return by_node

    @cached_property
    def by_line(self) -> dict[Line, list[Named]]:
        """Nodes that were handed to Inductor, by line."""
        return _by_line(self.handed, self.lines_of)

    @cached_property
    def lowered_by_line(self) -> dict[Line, list[Named]]:
        """Nodes after Inductor's passes, by line."""
        return _by_line(self.lowered, lambda node: self.lines_of(node, "post_grad"))

    def works_of(self, line: Line) -> list[Work]:
        """Return the kernels that compute a value of a line."""
        return [work for work in self.works if line in work.lines]

    def operators(self, line: Line) -> Counter[str]:
        """Return the operators of a line in the handed graph, with counts."""
        return Counter(operator(self.handed[n].target) for n in self.by_line.get(line, ()))

    def lowered_operators(self, line: Line) -> Counter[str]:
        """Return the operators of a line after Inductor's passes, with counts."""
        return Counter(self._order(line))

    def members(self, cid: str, group: str) -> tuple[str, ...]:
        """Return the loops of a group."""
        return self.groups[cid, group].members if (cid, group) in self.groups else ()

    def lines(self, launch: Launch) -> frozenset[Line]:
        """Return the Python lines for which a launch computes something."""
        if launch not in self._launch_lines:
            lines = (line for node in launch.nodes for line in self.lines_of(node, "post_grad"))
            self._launch_lines[launch] = frozenset(lines)
        return self._launch_lines[launch]

    def nodes_of(self, cid: str, group: str) -> set[Named]:
        """Return the post-grad nodes that the loops of a group compute."""
        return {n for n in self.side.groups(self.phase).get((cid, group), ()) if n in self.lowered}

    def loops_of(self, node: Named) -> Iterator[tuple[str, Node]]:
        """Yield the loops that compute a post-grad node, or a part of it."""
        for (cid, name), loop in self.loops.items():
            if cid == node[0] and node[1] in loop.origins:
                yield name, loop


def _by_line(nodes: Iterable[Named], lines: Callable[[Named], tuple[Line, ...]]) -> dict[Line, list[Named]]:
    by_line: dict[Line, list[Named]] = {}
    for node in nodes:
        for line in lines(node):
            by_line.setdefault(line, []).append(node)
    return by_line
