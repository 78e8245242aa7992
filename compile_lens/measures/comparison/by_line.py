"""One phase of one capture, seen by Python line: which operators a line became, and which kernels compute it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from compile_lens.measures.chain import Chain, walk
from compile_lens.measures.control_flow import launches
from compile_lens.record.absent import Absent
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.figures import MEASURED, ONE, AtLeast, Figure, figure
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import Code, Kernel

Line = tuple[str, int]
"""A file and a line, from 1; ``("", 0)`` stands for no known line."""

NOWHERE: Line = ("", 0)

Named = tuple[str, str]
"""A compile id and the name of a node in one stage of it."""


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
        """Of a library call the function that it calls, else ``""``."""
        return called(self.kernel.name) if self.kernel.language == "extern" else ""


Identity = tuple[str, tuple[Line, ...], str, tuple[str, ...], int, int]
"""What makes a node of one target that of another: compile id, lines, operator, the operators that it reads, and the
how-manieth it is of how many such. Names do not: where one graph has a node more, all later names move on."""


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch of a kernel, or one library call: the groups that it runs, and the nodes that they compute."""

    work: Work
    groups: tuple[str, ...]
    nodes: frozenset[Named]
    same: frozenset[Identity]


class Side:
    """What one target made of one phase, over all compilations of the capture.

    Attributes:
        target: the name of its column.
        handed: compute nodes of the graphs that were handed to Inductor, in order.
        lowered: those of the graphs after Inductor's passes.
        works: the kernels.
        missing: why there is no code of a compilation, by compile id.
        texts: the text of each Python line that was met.
    """

    def __init__(self, target: str, capture: Record, phase: str) -> None:
        self.target, self.capture, self.phase = target, capture, phase
        self.handed: dict[Named, Node] = {}
        self.lowered: dict[Named, Node] = {}
        self.loops: dict[Named, Node] = {}
        self.groups: dict[Named, Node] = {}
        self.works: list[Work] = []
        self.missing: dict[str, str] = {}
        self._lines: dict[tuple[str, str, str], tuple[Line, ...]] = {}
        self._launch_lines: dict[Launch, frozenset[Line]] = {}
        self._alike: dict[str, frozenset[Line]] = {}
        self.texts: dict[Line, str] = {}
        for compilation in capture.compilations:
            self._add(compilation)

    def _add(self, compilation: Compilation) -> None:
        stages = {s.key: s for s in compilation.stages}
        if self.phase not in compilation.phases:
            return
        for key, found in (
            (self.phase, self.handed),
            (f"{self.phase}.post_grad", self.lowered),
            (f"{self.phase}.loops", self.loops),
            (f"{self.phase}.groups", self.groups),
        ):
            stage = stages.get(key)
            if isinstance(stage, Graph):
                found.update(
                    {(compilation.id, path + node.name): node for path, node in walk(stage) if node.compute}
                )
        code = stages.get(f"{self.phase}.code")
        if not isinstance(code, Code):
            self.missing[compilation.id] = _why_not(stages, self.phase)
            return
        for kernel in code.kernels:
            nodes = tuple((compilation.id, name) for name in self._nodes(compilation.id, kernel))
            lines = (line for node in nodes for line in self.lines_of(node, "post_grad"))
            launched = figure(launches(code, [kernel]), MEASURED)
            self.works.append(
                Work(compilation.id, kernel, nodes, tuple(dict.fromkeys(lines)) or (NOWHERE,), launched)
            )

    def _nodes(self, cid: str, kernel: Kernel) -> list[str]:
        """The compute nodes of a kernel: its origins, or those of its loops."""
        names = list(kernel.origins)
        if not names:
            members = [
                m for g in kernel.groups if (cid, g) in self.groups for m in self.groups[cid, g].members
            ]
            names = [o for m in members if (cid, m) in self.loops for o in self.loops[cid, m].origins]
        names = [n for n in dict.fromkeys(names) if (cid, n) in self.lowered]
        if kernel.language != "extern":
            return names
        # Inductor counts what a library call reads to the call as well: it computes what it is named after.
        own = [n for n in names if bare(self.lowered[cid, n].target) == bare(called(kernel.name))]
        return own or names

    def lines_of(self, node: Named, stage: str = "") -> tuple[Line, ...]:
        """The Python lines of a node of the handed graph (or of its ``post_grad``); ``NOWHERE`` if none is known."""
        key = (node[0], stage, node[1])
        if key not in self._lines:
            known = (self.lowered if stage else self.handed)[node]
            frames = known.innermost
            if not frames:
                address = (node[0], f"{self.phase}.{stage}" if stage else self.phase, node[1])
                frames = Chain(self.capture).lines(address)
            self.texts.update({(f.file, f.line): f.text.strip() for f in frames if f.text.strip()})
            self._lines[key] = tuple(dict.fromkeys((f.file, f.line) for f in frames)) or (NOWHERE,)
        return self._lines[key]

    @cached_property
    def identity(self) -> dict[Named, Identity]:
        """What each node after Inductor's passes is on every target."""
        groups: dict[tuple[str, tuple[Line, ...], str, tuple[str, ...]], list[Named]] = {}
        for named, node in self.lowered.items():
            above = (self.lowered.get((named[0], name)) for name in node.inputs)
            reads = tuple("" if found is None else operator(found.target) for found in above)
            key = (named[0], self.lines_of(named, "post_grad"), operator(node.target), reads)
            groups.setdefault(key, []).append(named)
        return {
            named: (*key, number, len(names))
            for key, names in groups.items()
            for number, named in enumerate(names)
        }

    def shared_with(self, other: Side) -> Callable[[Iterable[Identity]], frozenset[Identity]]:
        """Which nodes of this target can be told to be those of another: those of lines that became the same
        operators in the same order on both."""
        if other.target not in self._alike:
            lines = {*self.lowered_by_line, *other.lowered_by_line}
            self._alike[other.target] = frozenset(
                line for line in lines if self._order(line) == other._order(line)
            )
        alike = self._alike[other.target]
        return lambda found: frozenset(i for i in found if all(line in alike for line in i[1]))

    def _order(self, line: Line) -> list[str]:
        return [operator(self.lowered[n].target) for n in self.lowered_by_line.get(line, ())]

    @cached_property
    def named(self) -> dict[Identity, Named]:
        """The node of each identity."""
        return {identity: named for named, identity in self.identity.items()}

    @cached_property
    def launches(self) -> list[Launch]:
        """Each launch of each kernel. Where the record does not say which groups one runs, it is left out."""
        found = []
        for work in self.works:
            groups, count = work.kernel.groups, work.kernel.launches
            if not count or len(groups) % count:
                continue
            size = len(groups) // count  # groups stand in the order of the launches
            for at in range(0, len(groups), size or 1):
                some = groups[at : at + size]
                nodes = frozenset(n for g in some for n in self.nodes_of(work.compilation, g))
                if work.called:  # what it reads is counted to it as well
                    nodes &= frozenset(work.nodes)
                found.append(Launch(work, some, nodes, frozenset(self.identity[n] for n in nodes)))
        return found

    @cached_property
    def launch_of(self) -> dict[Named, Launch]:
        """The launch that runs a group."""
        return {(launch.work.compilation, g): launch for launch in self.launches for g in launch.groups}

    @cached_property
    def launched(self) -> dict[Identity, list[Launch]]:
        """The launches of generated kernels that compute what is the same on every target."""
        found: dict[Identity, list[Launch]] = {}
        for launch in (one for one in self.launches if not one.work.called):
            for identity in launch.same:
                found.setdefault(identity, []).append(launch)
        return found

    @cached_property
    def by_line(self) -> dict[Line, list[Named]]:
        """Nodes that were handed to Inductor, by line."""
        return _by_line(self.handed, self.lines_of)

    @cached_property
    def lowered_by_line(self) -> dict[Line, list[Named]]:
        """Nodes after Inductor's passes, by line."""
        return _by_line(self.lowered, lambda node: self.lines_of(node, "post_grad"))

    def works_of(self, line: Line) -> list[Work]:
        """The kernels that compute something of a line."""
        return [work for work in self.works if line in work.lines]

    def operators(self, line: Line) -> Counter[str]:
        """The operators that a line was handed over as, and how often."""
        return Counter(operator(self.handed[n].target) for n in self.by_line.get(line, ()))

    def lowered_operators(self, line: Line) -> Counter[str]:
        """Those that Inductor's passes made of them."""
        return Counter(operator(self.lowered[n].target) for n in self.lowered_by_line.get(line, ()))

    def members(self, cid: str, group: str) -> tuple[str, ...]:
        """The loops of a group."""
        return self.groups[cid, group].members if (cid, group) in self.groups else ()

    def lines(self, launch: Launch) -> frozenset[Line]:
        """The Python lines that a launch computes something of."""
        if launch not in self._launch_lines:
            lines = (line for node in launch.nodes for line in self.lines_of(node, "post_grad"))
            self._launch_lines[launch] = frozenset(lines)
        return self._launch_lines[launch]

    def nodes_of(self, cid: str, group: str) -> set[Named]:
        """The post-grad nodes that the loops of a group compute."""
        members = self.members(cid, group)
        origins = (o for m in members if (cid, m) in self.loops for o in self.loops[cid, m].origins)
        return {(cid, name) for name in origins if (cid, name) in self.lowered}

    def loops_of(self, node: Named) -> Iterator[tuple[str, Node]]:
        """The loops that compute a post-grad node, or a part of it."""
        for (cid, name), loop in self.loops.items():
            if cid == node[0] and node[1] in loop.origins:
                yield name, loop


def _by_line(nodes: Iterable[Named], lines: Callable[[Named], tuple[Line, ...]]) -> dict[Line, list[Named]]:
    found: dict[Line, list[Named]] = {}
    for node in nodes:
        for line in lines(node):
            found.setdefault(line, []).append(node)
    return found


def _why_not(stages: Mapping[str, object], phase: str) -> str:
    for key in (f"{phase}.code", phase):
        stage = stages.get(key)
        if isinstance(stage, Absent):
            return stage.said
    return f"stage {phase}.code is not in the record"


def operator(target: str) -> str:
    """An operator's name without what says nothing: ``aten.sin`` of ``aten.sin.default``."""
    return target.removesuffix(".default")


def called(name: str) -> str:
    """The function that a library call calls: ``aten.sort.stable``, ``extern_kernels.mm``."""
    return operator(name.partition("#")[0].removeprefix("torch.ops."))


def bare(target: str) -> str:
    """``sort`` of ``aten.sort.stable``, ``mm`` of ``extern_kernels.mm``."""
    parts = operator(target).split(".")
    return parts[-1] if len(parts) < 3 else parts[-2]
