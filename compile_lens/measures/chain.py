"""The chain between stages, both ways: Python line ↔ Dynamo ↔ ATen ↔ loop ↔ group ↔ kernel and its lines.

Links are read from the record (``origins``, ``members``, ``frames``), never guessed. Many to many is
ordinary: fusion makes n→1, decomposition 1→n, and a rematerialised operator stands in two kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from compile_lens.errors import UsageError
from compile_lens.measures.address import PYTHON as PYTHON
from compile_lens.measures.address import Address as Address
from compile_lens.measures.address import python as python
from compile_lens.measures.address import walk as walk
from compile_lens.measures.cached import once
from compile_lens.measures.derivatives import Derivatives
from compile_lens.measures.ends import End, Ends
from compile_lens.record.absent import Absent
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.record.kernel import Code, Kernel, LineOrigin


class Chain:
    """The links of a capture. *Up* is towards the Python line, *down* towards the kernel.

    Every answer is in a fixed order: the order of the record. Building takes time proportional to the number
    of links and happens once for a capture, however many chains are made of it.

    Raises (every method that takes an address): ``UsageError`` if the record has no such node.
    """

    def __init__(self, capture: Record) -> None:
        self._links = _links(capture)
        self._ends = Ends(capture, self._links.down)
        self._derivatives = Derivatives(capture, self._links.up)

    def addresses(self) -> tuple[Address, ...]:
        """Everything that has an address: nodes by stage, kernels, lines of kernels, then Python lines."""
        links = self._links
        return (*links.nodes, *links.kernels, *links.code_lines, *links.lines)

    def __contains__(self, address: object) -> bool:
        links = self._links
        return (
            address in links.nodes
            or address in links.kernels
            or address in links.code_lines
            or address in links.lines
        )

    def links(self) -> Iterator[tuple[Address, Collection[Address]]]:
        """Each address of ``addresses()``, in that order, and what it directly came from.

        The whole table in one go: quicker than ``up`` for each of many addresses.
        """
        for address in self.addresses():
            yield address, self._links.up.get(address, _NONE).keys()

    def up(self, address: Address) -> tuple[Address, ...]:
        """What it directly came from."""
        return tuple(self._links.up.get(self._known(address), ()))

    def down(self, address: Address) -> tuple[Address, ...]:
        """What it directly became."""
        return tuple(self._links.down.get(self._known(address), ()))

    def ancestors(self, address: Address) -> tuple[Address, ...]:
        """Everything that it came from, nearest first; not itself."""
        return _reach(self._links.up, [self._known(address)])

    def descendants(self, address: Address) -> tuple[Address, ...]:
        """Everything that it became, nearest first; not itself."""
        return _reach(self._links.down, [self._known(address)])

    def lines(self, of: Kernel | Address) -> tuple[Frame, ...]:
        """The innermost user frames that a kernel or node came from, by file and line.

        A frame of torch's own counts only for a node that has no other.
        Empty if the chain does not reach Python (``why_not`` says where it ends).
        """
        if isinstance(of, Kernel):
            start = self._links.uses[self._position(of)]
        else:
            start = [self._known(of)]
            if of[1] == PYTHON:
                start = [a for a in self._links.down.get(of, ()) if self._innermost(a) == of]
        found: dict[Frame, None] = {}
        for address in (*start, *_reach(self._links.up, start)):
            if address in self._links.framed:
                found.update(dict.fromkeys(self._links.nodes[address].innermost))
        if not isinstance(of, Kernel) and of[1] == PYTHON:
            found = {f: None for f in found if python(f.file, f.line) == of}
        return tuple(
            sorted(found, key=lambda f: (f.file, f.line, f.column is not None, f.column or 0, f.function))
        )

    def derivatives(self, of: Address) -> tuple[Address, ...]:
        """For whose derivative a node of the joint graph is there, or anything of a backward down to a line of a
        kernel: nodes before the joint graph.

        What the backward computes again is there for the derivatives that read it. Empty for everything else.
        """
        return self._derivatives.of(self._known(of))

    def kernels(self, file: str, line: int) -> tuple[Kernel, ...]:
        """The kernels that a Python line became, itself or through what it calls, in order of the record.

        Empty for a line that became none: one that holds no tensor work, or whose work was optimised away. Raises
        ``UsageError`` for a file that the record does not know.
        """
        if file not in self._links.files:
            files = list(self._links.files)
            some = ", ".join(map(repr, files[:12])) or "none"
            more = f" and {len(files) - 12} more" if len(files) > 12 else ""
            raise UsageError(f"the record knows no file {file!r}; it knows {some}{more}")
        start = python(file, line)
        reached = {start, *_reach(self._links.down, [start])}
        every = zip(self._links.every, self._links.uses, strict=True)
        return tuple(kernel for kernel, uses in every if not reached.isdisjoint(uses))

    def why_not(self, address: Address) -> str:
        """Why the chain ends at an address: why nothing is above it, or where something is, why nothing came of it;
        ``""`` if it goes on both ways, or has come down to the generated code."""
        self._known(address)
        links = self._links
        above = links.up.get(address) or address[1] == PYTHON
        if above and not links.down.get(address) and not address[1].endswith(".code"):
            return str(self.end(address))
        if links.up.get(address):
            return ""
        if address[1] == PYTHON:
            return "a Python line is where the chain starts"
        item = links.nodes.get(address) or links.kernels.get(address) or links.code_lines[address]
        said = item.no_origin or links.lost.get(address, "")
        return said or "the record names no origin and no source line for it"

    def end(self, address: Address) -> End:
        """Why nothing came of a Python line or a node from which nothing came."""
        return self._ends.why(self._known(address))

    def leading(self) -> Collection[Address]:
        """Everything that leads to a kernel, kernels aside."""
        start = dict.fromkeys(address for uses in self._links.uses for address in uses)
        return {*start, *_reach(self._links.up, start)}

    def _innermost(self, address: Address) -> Address:
        (frame,) = self._links.nodes[address].innermost
        return python(frame.file, frame.line)

    def _position(self, kernel: Kernel) -> int:
        every = self._links.every
        for position, known in enumerate(every):
            if known is kernel:
                return position
        if kernel in every:  # an equal one, from a copy of the record
            return every.index(kernel)
        names = ", ".join(dict.fromkeys(k.name for k in every)) or "none"
        raise UsageError(f"kernel {kernel.name!r} is not one of this capture, which has {names}")

    def _known(self, address: Address) -> Address:
        links = self._links
        if not (isinstance(address, tuple) and list(map(type, address)) == [str] * 3):
            kernels = ", ".join(dict.fromkeys(k.name for k in links.every)) or "none"
            raise UsageError(
                f"{address!r} is neither a kernel nor an address, as (compile id, stage, name): give one of "
                f"capture.kernels ({kernels}), or of capture.chain.addresses()"
            )
        if address in links.nodes or address in links.kernels or address in links.code_lines:
            return address
        if address[1] == PYTHON:
            return address
        compile_id, stage, name = address
        if (compile_id, stage) in links.missing:
            raise UsageError(
                f"stage {stage!r} of {compile_id} was not seen: {links.missing[compile_id, stage]}"
            )
        names = [a[2] for a in links.nodes if a[:2] == (compile_id, stage)]
        names += [a[2] for a in links.kernels if a[:2] == (compile_id, stage)]
        if names:
            some = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            raise UsageError(f"stage {stage!r} of {compile_id} has no {name!r}; it has {some}")
        stages = ", ".join(dict.fromkeys(f"{a[0]} {a[1]}" for a in (*links.nodes, *links.kernels))) or "none"
        raise UsageError(f"the capture has no stage {stage!r} of {compile_id!r}; it has {stages}")


@dataclass
class _Links:
    """What a chain knows. It must not hold the capture itself, whose life bounds its own."""

    nodes: dict[Address, Node] = field(default_factory=dict)
    kernels: dict[Address, Kernel] = field(default_factory=dict)
    code_lines: dict[Address, LineOrigin] = field(default_factory=dict)
    """Lines of kernels."""
    lines: dict[Address, None] = field(default_factory=dict)
    up: dict[Address, dict[Address, None]] = field(default_factory=dict)
    down: dict[Address, dict[Address, None]] = field(default_factory=dict)
    framed: set[Address] = field(default_factory=set)
    """Nodes that are linked to their own frames."""
    lost: dict[Address, str] = field(default_factory=dict)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)
    files: dict[str, None] = field(default_factory=dict)
    """Python files that the record names."""
    every: list[Kernel] = field(default_factory=list)
    uses: list[list[Address]] = field(default_factory=list)
    """For each kernel of ``every`` what it directly came from. Two library calls may share a name, and so
    an address; they do not share their origins."""

    def link(self, below: Address, above: Address) -> None:
        self.up.setdefault(below, {})[above] = None
        self.down.setdefault(above, {})[below] = None


_NONE: dict[Address, None] = {}


@once
def _links(capture: Record) -> _Links:
    links = _Links()
    links.files.update((source.file, None) for source in capture.sources)
    for compilation in capture.compilations:
        links.files[compilation.file] = None
        _compilation(links, compilation)
    for node in links.nodes.values():
        links.files.update((frame.file, None) for frame in node.frames)
    return links


def _compilation(links: _Links, compilation: Compilation) -> None:
    graphs = {s.key: s for s in compilation.stages if isinstance(s, Graph)}
    for stage in compilation.stages:
        if isinstance(stage, Absent):
            links.missing[compilation.id, stage.stage] = stage.reason
        elif isinstance(stage, Graph):
            for path, node in walk(stage):
                links.nodes[compilation.id, stage.key, path + node.name] = node
    names = {key: _Names(graph) for key, graph in graphs.items()}
    reaches: set[Address] = set()
    for key in _before_first(graphs):
        _graph(links, compilation.id, graphs[key], names, reaches)
    for stage in compilation.stages:
        if isinstance(stage, Code):
            for kernel in stage.kernels:
                _kernel(links, compilation.id, stage, kernel, names)
            for kernel in stage.kernels:  # after all of them: an address that is a kernel's is no line's
                _kernel_lines(links, compilation.id, stage, kernel, names)


def _before_first(graphs: dict[str, Graph]) -> list[str]:
    """Stage keys, each after the one that its origins name."""
    order: dict[str, None] = {}
    for key in graphs:
        path: list[str] = []
        while key in graphs and key not in order and key not in path:
            path.append(key)
            key = graphs[key].before
        order.update(dict.fromkeys(reversed(path)))
    return list(order)


def _graph(links: _Links, cid: str, graph: Graph, names: dict[str, _Names], reaches: set[Address]) -> None:
    loops = f"{graph.phase}.loops" if graph.stage == "groups" else ""
    for path, node in walk(graph):
        here = (cid, graph.key, path + node.name)
        above = _resolve(links, here, graph.before, path, node.origins, names)
        if loops and loops in names:
            # Members of a group are loops, whatever stage its origins name; they may be the same links.
            above += [(cid, loops, name) for m in node.members for name in names[loops].find(path, m)]
        for address in dict.fromkeys(above):
            links.link(here, address)
        if any(address in reaches for address in above):
            reaches.add(here)
        elif node.frames:
            # The first stage, or a node whose origins end before Python while it still knows its own line.
            # The user's own come first, the innermost of them before the others.
            for frame in sorted(reversed(node.frames), key=lambda f: f.of_torch):
                line = python(frame.file, frame.line)
                links.lines[line] = None
                links.link(here, line)
            links.framed.add(here)
            reaches.add(here)


def _kernel(links: _Links, cid: str, code: Code, kernel: Kernel, names: dict[str, _Names]) -> None:
    here = (cid, code.key, kernel.name)
    above = _resolve(links, here, f"{code.phase}.groups", "", kernel.groups, names)
    above += _resolve(links, here, f"{code.phase}.post_grad", "", kernel.origins, names)
    links.kernels.setdefault(here, kernel)
    links.every.append(kernel)
    links.uses.append(list(dict.fromkeys(above)))
    for address in above:
        links.link(here, address)


def _kernel_lines(links: _Links, cid: str, code: Code, kernel: Kernel, names: dict[str, _Names]) -> None:
    if not kernel.source:
        return
    for line in kernel_lines(kernel):
        here = (cid, code.key, f"{kernel.name}:{line.line}")
        if here in links.kernels:
            continue
        links.code_lines.setdefault(here, line)
        if not kernel.lines:
            links.link(here, (cid, code.key, kernel.name))
        for address in _resolve(links, here, f"{code.phase}.post_grad", "", line.origins, names):
            links.link(here, address)


def kernel_lines(kernel: Kernel) -> tuple[LineOrigin, ...]:
    """The lines of a kernel that have an address.

    Those whose origins were followed. Where none were (templates), those that its machine code came from: they
    have no origins of their own, and are linked to the kernel as a whole.
    """
    if kernel.lines or kernel.machine is None:
        return kernel.lines
    found = {line for form in kernel.machine.forms for _, line in form.links if line > 0}
    return tuple(LineOrigin(line) for line in sorted(found))


def _resolve(
    links: _Links, here: Address, before: str, path: str, wanted: Iterable[str], names: dict[str, _Names]
) -> list[Address]:
    """Addresses of named origins. Those that the record does not hold are left out, and the reason kept."""
    wanted = tuple(wanted)
    if not wanted:
        return []
    cid = here[0]
    if before not in names:
        reason = links.missing.get((cid, before), "it is not in the record")
        said = f"the chain stops here: stage {before!r}, which its origins name, was not seen: {reason}"
        links.lost.setdefault(here, said)
        return []
    found: list[Address] = []
    for name in wanted:
        hits = names[before].find(path, name)
        if not hits:
            said = f"the chain stops here: its origin {name!r} is not in stage {before!r} of the record"
            links.lost.setdefault(here, said)
        found += [(cid, before, hit) for hit in hits]
    return found


class _Names:
    """The node names of one graph. A name in a subgraph is unique there, not in the whole."""

    def __init__(self, graph: Graph) -> None:
        self.full: set[str] = set()
        self.inner: dict[str, list[str]] = {}
        for path, node in walk(graph):
            self.full.add(path + node.name)
            if path:
                self.inner.setdefault(node.name, []).append(path + node.name)

    def find(self, path: str, name: str) -> list[str]:
        """The full name of ``name`` seen from the subgraph ``path``: nearest scope outwards, then inwards."""
        scope = path
        while True:
            if scope + name in self.full:
                return [scope + name]
            if not scope:
                break
            scope = scope[:-1].rpartition("/")[0]
            scope = scope + "/" if scope else ""
        inner = self.inner.get(name, [])
        return inner if len(inner) == 1 else []  # two bodies hold it: which one is meant is not said


def _reach(edges: dict[Address, dict[Address, None]], start: Iterable[Address]) -> tuple[Address, ...]:
    """Everything reachable from ``start``, breadth first, without ``start`` itself."""
    begin = dict.fromkeys(start)
    seen = dict(begin)
    queue = list(begin)
    for address in queue:
        for following in edges.get(address, ()):
            if following not in seen:
                seen[following] = None
                queue.append(following)
    return tuple(a for a in seen if a not in begin)
