"""Direct links of a capture: what each node, kernel and kernel line came from and what it became."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from compile_lens.measures.address import Address, line_address, walk
from compile_lens.measures.memo import memoized
from compile_lens.measures.merged_constants import MergedConstants
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import Code, Kernel, LineOrigin
from compile_lens.record.missing import AbsentStage


@dataclass
class Links:
    """Links of a chain. It must not reference the capture, whose lifetime bounds its own."""

    nodes: dict[Address, Node] = field(default_factory=dict)
    kernels: dict[Address, Kernel] = field(default_factory=dict)
    code_lines: dict[Address, LineOrigin] = field(default_factory=dict)
    """Lines of kernels."""
    lines: dict[Address, None] = field(default_factory=dict)
    up: dict[Address, dict[Address, None]] = field(default_factory=dict)
    down: dict[Address, dict[Address, None]] = field(default_factory=dict)
    places: dict[Address, dict[Address, None]] = field(default_factory=dict)
    """Loops, groups and kernel that contain a kernel line, and the lines of each of these. The chain does not
    continue from here: a line did not come from all that its loop came from."""
    framed: set[Address] = field(default_factory=set)
    """Nodes that are linked to their own frames."""
    constants: dict[Address, dict[Address, None]] = field(default_factory=dict)
    """Merged constants, each with the readers that are linked to some of its parts instead (``MergedConstants``)."""
    derived: set[Address] = field(default_factory=set)
    """Nodes of joint graphs that autograd made for a derivative."""
    lost: dict[Address, str] = field(default_factory=dict)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)
    files: dict[str, None] = field(default_factory=dict)
    """Python files that the record names."""
    every: list[Kernel] = field(default_factory=list)
    uses: list[list[Address]] = field(default_factory=list)
    """For each kernel of ``every`` the addresses that it directly came from. Two library calls may share a name and
    an address, but not their origins."""

    def link(self, below: Address, above: Address) -> None:
        self.up.setdefault(below, {})[above] = None
        self.down.setdefault(above, {})[below] = None

    def place(self, line: Address, place: Address) -> None:
        self.places.setdefault(line, {})[place] = None
        self.places.setdefault(place, {})[line] = None

    def link_constants(self, merged: MergedConstants, below: Address, context: Iterable[Address]) -> None:
        """Link a reader of merged constants to the parts that it uses, which ``context`` reads."""
        for constant, parts in merged.split(self.up.get(below, ()), context).items():
            self.unlink(below, constant)
            self.constants.setdefault(constant, {})[below] = None
            for part in parts:
                self.link(below, part)

    def unlink(self, below: Address, above: Address) -> None:
        del self.up[below][above], self.down[above][below]


@memoized
def links_of(capture: Record) -> Links:
    links = Links()
    links.files.update((source.file, None) for source in capture.sources)
    for compilation in capture.compilations:
        links.files[compilation.file] = None
        _compilation(links, compilation)
    for node in links.nodes.values():
        links.files.update((frame.file, None) for frame in node.frames)
    return links


def _compilation(links: Links, compilation: Compilation) -> None:
    graphs = {s.key: s for s in compilation.stages if isinstance(s, Graph)}
    for stage in compilation.stages:
        if isinstance(stage, AbsentStage):
            links.missing[compilation.id, stage.stage] = stage.reason
        elif isinstance(stage, Graph):
            for path, node in walk(stage):
                links.nodes[compilation.id, stage.key, path + node.name] = node
                if node.derivative:
                    links.derived.add((compilation.id, stage.key, path + node.name))
    names = {key: _Names(graph) for key, graph in graphs.items()}
    merged = MergedConstants(compilation.id, graphs, links.up)
    reached: set[Address] = set()
    for key in _dependency_order(graphs):
        _graph(links, compilation.id, graphs[key], names, reached)
        if graphs[key].stage == "loops":
            for path, node in walk(graphs[key]):
                here = (compilation.id, key, path + node.name)
                links.link_constants(merged, here, tuple(links.up.get(here, ())))
    if "joint" in graphs and "forward" in graphs:
        _unlink_unneeded(links, compilation.id, graphs)
    for stage in compilation.stages:
        if isinstance(stage, Code):
            for kernel in stage.kernels:
                _kernel(links, compilation.id, stage, kernel, names, merged)
            for kernel in stage.kernels:  # after all kernels, whose addresses take precedence
                _kernel_lines(links, compilation.id, stage, kernel, names, merged)


def _dependency_order(graphs: dict[str, Graph]) -> list[str]:
    """Return stage keys, each after the stage of its origins."""
    order: dict[str, None] = {}
    for key in graphs:
        path: list[str] = []
        while key in graphs and key not in order and key not in path:
            path.append(key)
            key = graphs[key].before
        order.update(dict.fromkeys(reversed(path)))
    return list(order)


def _graph(links: Links, cid: str, graph: Graph, names: dict[str, _Names], reached: set[Address]) -> None:
    loops = f"{graph.phase}.loops" if graph.stage == "groups" else ""
    for path, node in walk(graph):
        here = (cid, graph.key, path + node.name)
        above = _resolve(links, here, graph.before, path, node.origins, names)
        if loops and loops in names:
            # Members of a group are loops, whatever stage its origins name; the links may coincide.
            above += [(cid, loops, name) for m in node.members for name in names[loops].find(path, m)]
        for address in dict.fromkeys(above):
            links.link(here, address)
        if any(address in reached for address in above):
            reached.add(here)
        elif node.frames:
            # The first stage, or a node whose origins end before Python while it still knows its own line.
            # The user's own come first, the innermost of them before the others.
            for frame in sorted(reversed(node.frames), key=lambda f: f.of_torch):
                line = line_address(frame.file, frame.line)
                links.lines[line] = None
                links.link(here, line)
            links.framed.add(here)
            reached.add(here)


def _unlink_unneeded(links: Links, cid: str, graphs: dict[str, Graph]) -> None:
    """Unlink a forward node from a derivative that it does not serve.

    Equal values were merged before the graph was partitioned: a sine of the program with the one that the derivative of
    a cosine needs. If the backward recomputes it, the forward's node is the program's alone: the derivative needs it
    only if a part of the derivative is in the forward and reads it.
    """
    joint = {(cid, "joint", path + n.name): [path + i for i in n.inputs] for path, n in walk(graphs["joint"])}
    again = None
    if "backward" in graphs:
        calls = [path + n.name for path, n in walk(graphs["backward"]) if n.op.startswith("call_")]
        again = {above for name in calls for above in links.up.get((cid, "backward", name), ())}
    parts: dict[Address, set[str]] = {}
    """For a forward node, the joint-graph inputs of the derivative nodes that read it."""
    for path, node in reversed(list(walk(graphs["forward"]))):
        here = (cid, "forward", path + node.name)
        above = links.up.get(here, {})
        derived = [address for address in above if address in links.derived]
        for address in derived if len(derived) < len(above) else ():
            kept = node.name in graphs["forward"].saved if again is None else address not in again
            if not kept and address[2] not in parts.get(here, ()):
                links.unlink(here, address)
        taken = {name for address in above if address in links.derived for name in joint.get(address, ())}
        for source in node.inputs:
            parts.setdefault((cid, "forward", path + source), set()).update(taken)


def _kernel(
    links: Links, cid: str, code: Code, kernel: Kernel, names: dict[str, _Names], merged: MergedConstants
) -> None:
    here = (cid, code.key, kernel.name)
    above = _resolve(links, here, f"{code.phase}.groups", "", kernel.groups, names)
    above += _resolve(links, here, f"{code.phase}.post_grad", "", kernel.origins, names)
    links.kernels.setdefault(here, kernel)
    links.every.append(kernel)
    used = merged.split(above, above)
    links.uses.append(list(dict.fromkeys(part for one in above for part in used.get(one, (one,)))))
    for address in above:
        links.link(here, address)
    links.link_constants(merged, here, above)


def _kernel_lines(
    links: Links, cid: str, code: Code, kernel: Kernel, names: dict[str, _Names], merged: MergedConstants
) -> None:
    if not kernel.source:
        return
    context = _resolve(
        links, (cid, code.key, kernel.name), f"{code.phase}.post_grad", "", kernel.origins, names
    )
    groups = _resolve(links, (cid, code.key, kernel.name), f"{code.phase}.groups", "", kernel.groups, names)
    within: dict[Address, tuple[Address, ...]] = {}
    for line in kernel_lines(kernel):
        here = (cid, code.key, f"{kernel.name}:{line.line}")
        if here in links.kernels:
            continue
        links.code_lines.setdefault(here, line)
        if not kernel.lines:
            links.link(here, (cid, code.key, kernel.name))
        for address in _resolve(links, here, f"{code.phase}.post_grad", "", line.origins, names):
            links.link(here, address)
            if address not in within:
                within[address] = (*_unique_owners(links, address, groups), (cid, code.key, kernel.name))
            for place in within[address]:
                links.place(here, place)
        links.link_constants(merged, here, context)


def _unique_owners(links: Links, origin: Address, groups: Iterable[Address]) -> Iterator[Address]:
    """Yield the kernel's loop and group that compute an origin, each only if it is the only one."""
    loops, fused_groups = set(), set()
    for group in groups:
        above = links.up.get(group, {})
        own = {loop for loop in above if origin in links.up.get(loop, {})}
        loops |= own
        if own or origin in above:
            fused_groups.add(group)
    for hits in (loops, fused_groups):
        if len(hits) == 1:
            yield from hits


def kernel_lines(kernel: Kernel) -> tuple[LineOrigin, ...]:
    """Return the lines of a kernel that have an address.

    These are the lines with known origins. If there are none (templates), these are the lines behind the machine
    code: they have no origins of their own, and are linked to the kernel as a whole.
    """
    if kernel.lines or kernel.machine is None:
        return kernel.lines
    numbers = {line for form in kernel.machine.forms for _, line in form.links if line > 0}
    return tuple(LineOrigin(line) for line in sorted(numbers))


def _resolve(
    links: Links, here: Address, before: str, path: str, origins: Iterable[str], names: dict[str, _Names]
) -> list[Address]:
    """Return the addresses of named origins; for those that are not in the record, store the reason in ``lost``."""
    origins = tuple(origins)
    if not origins:
        return []
    cid = here[0]
    if before not in names:
        reason = links.missing.get((cid, before), "it is not in the record")
        reason_lost = (
            f"the chain stops here: stage {before!r}, which its origins name, was not seen: {reason}"
        )
        links.lost.setdefault(here, reason_lost)
        return []
    addresses: list[Address] = []
    for name in origins:
        hits = names[before].find(path, name)
        if not hits:
            reason_lost = (
                f"the chain stops here: its origin {name!r} is not in stage {before!r} of the record"
            )
            links.lost.setdefault(here, reason_lost)
        addresses += [(cid, before, hit) for hit in hits]
    return addresses


class _Names:
    """Node names of one graph. A name in a subgraph is unique only there."""

    def __init__(self, graph: Graph) -> None:
        self.full: set[str] = set()
        self.inner: dict[str, list[str]] = {}
        for path, node in walk(graph):
            self.full.add(path + node.name)
            if path:
                self.inner.setdefault(node.name, []).append(path + node.name)

    def find(self, path: str, name: str) -> list[str]:
        """Return the full name of ``name`` as seen from the subgraph ``path``: nearest scope outwards, then inwards."""
        scope = path
        while True:
            if scope + name in self.full:
                return [scope + name]
            if not scope:
                break
            scope = scope[:-1].rpartition("/")[0]
            scope = scope + "/" if scope else ""
        inner = self.inner.get(name, [])
        return inner if len(inner) == 1 else []  # ambiguous if several subgraphs have it


_LINEAGE = ("joint", "forward", "backward", "inference", "post_grad")
"""Stages between a node and its Python line: keys of graphs, or their last parts."""


def unknown_node_origins(capture: Record) -> str:
    """Return why the lines of some nodes are not known; ``""`` if all links are there."""
    gaps = (gap for compilation in capture.compilations for gap in compilation.missing)
    lost = next((gap.reason for gap in gaps if gap.stage.rpartition(".")[2] in _LINEAGE), "")
    return lost or capture.lacks(claims.ORIGINS)
