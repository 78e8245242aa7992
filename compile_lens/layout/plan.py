"""Plan of a drawing before it has coordinates: boxes, edges, and edges cut into stubs.

Graphviz' time grows with the length of edges, counted in ranks, far more than with the number of nodes: each edge gets
a dummy node on every rank that it crosses. Saved activations run from the start of a training graph to its output, so a
few hundred of them are a few hundred thousand dummies. Edges over many ranks are therefore cut, and each end names the
other one, which also helps a reader to find it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compile_lens.record.graph import Graph, Node

from .collapse import Group, collapse
from .text import columns, outputs_text, shorten, width

NAME_SIZE = 13.0
TARGET_SIZE = 12.0
SMALL_SIZE = 12.0
LABEL_SIZE = 12.0
"""Font sizes in pixels: first, second and other lines of a box, and labels of edges and stubs."""

LINE_HEIGHT = 1.32
"""Height of a line in ems."""

MAX_SPAN = 40
"""Most ranks that an edge may span; longer ones are cut."""

CROSSINGS, CROSSINGS_PER_BOX = 150, 2
"""Most ranks that all edges together may cross: a constant plus a number for each box.

Above this, the longest edges are cut. Each edge that passes a rank takes a column of its own there: a drawing much
above this is a bundle of parallel lines with a staircase of boxes in it.
"""

MAX_LABELLED = 300
"""Most boxes of a drawing with types on its edges, not in its boxes: labels make Graphviz four times slower."""

_STEPS = (40, 30, 22, 16, 12, 9, 7, 5, 4)
_STUB_NAMES = 3

Pair = tuple[int, int]
"""Source and target of an edge as numbers of boxes."""

Side = tuple[int, bool]
"""The outgoing (``True``) or the incoming side of a box."""


@dataclass(frozen=True)
class Line:
    """One line of text in a box: its ``role`` is ``name``, ``target``, ``cost`` or ``small``."""

    text: str
    role: str

    @property
    def size(self) -> float:
        """Font size in pixels."""
        return {"name": NAME_SIZE, "target": TARGET_SIZE}.get(self.role, SMALL_SIZE)


@dataclass(frozen=True)
class BoxContent:
    """Content of a box.

    Attributes:
        name: unique in its graph: the node's name, or the module path or span of its nodes.
        kind: the node's kind; ``collapsed`` for a box of several nodes.
        lines: the text to draw, already short enough to fit.
        members: names of its nodes; just its own name for a plain node.
    """

    name: str
    kind: str
    lines: tuple[Line, ...]
    members: tuple[str, ...]


@dataclass(frozen=True)
class PlannedBox(BoxContent):
    """A box to place."""

    width: float
    height: float


@dataclass(frozen=True)
class PlannedEdge:
    """An edge from box ``source`` to box ``target`` (indices)."""

    source: int
    target: int
    label: str


@dataclass(frozen=True)
class PlannedStub:
    """The cut edges on one side of box ``box``; ``others`` are the names of the boxes at their other ends."""

    box: int
    outgoing: bool
    others: tuple[str, ...]
    lines: tuple[str, ...]
    width: float
    height: float


@dataclass(frozen=True)
class Plan:
    """Everything to be drawn. ``notes`` describe in words what is left out."""

    boxes: tuple[PlannedBox, ...]
    edges: tuple[PlannedEdge, ...]
    stubs: tuple[PlannedStub, ...] = ()
    notes: tuple[str, ...] = ()


def make_plan(graph: Graph, limit: int, longest: int = MAX_SPAN) -> Plan:
    """Return a plan of ``graph`` with at most ``limit`` boxes and no edge over ``longest`` ranks."""
    notes: list[str] = []
    groups, collapse_note = collapse(graph.nodes, limit)
    if collapse_note:
        notes.append(collapse_note)
    labelled = len(groups) <= MAX_LABELLED
    boxes = _boxes(graph, groups, labelled)
    if not labelled:
        where = "types are in the boxes: " if any(len(members) == 1 for _, members in groups) else ""
        notes.append(f"{where}there are too many edges to label")
    owner = {name: i for i, box in enumerate(boxes) for name in box.members}
    flows, unknown = _flows(graph.nodes, owner)
    if unknown:
        these = "an argument names a node" if unknown == 1 else f"{unknown} arguments name nodes"
        notes.append(f"{these} outside of this graph: not drawn")
    kept, cut, longest = split(len(boxes), list(flows), longest)
    if cut:
        these = "1 edge is" if len(cut) == 1 else f"{len(cut)} edges are"
        notes.append(f"{these} cut for spanning over {longest} ranks: each end names the other")
    by_name = {n.name: n for n in graph.nodes}
    edges = tuple(
        PlannedEdge(a, b, flow_label([by_name[name] for name in flows[a, b]]) if labelled else "")
        for a, b in kept
    )
    return Plan(boxes, edges, make_stubs(far_ends(boxes, cut)), tuple(notes))


def _boxes(graph: Graph, groups: Sequence[Group], labelled: bool) -> tuple[PlannedBox, ...]:
    taken = {n.name for n in graph.nodes}
    boxes = []
    for label, members in groups:
        if len(members) == 1:
            boxes.append(node_box(members[0], labelled))
            continue
        name, count = label, 1
        while name in taken:
            count += 1
            name = f"{label} ({count})"
        taken.add(name)
        boxes.append(group_box(name, members))
    return tuple(boxes)


def node_box(node: Node, labelled: bool, module: str | None = None) -> PlannedBox:
    """Return the box of one node. ``module`` is the path to show in it; by default its own."""
    module = node.module if module is None else module
    lines = [Line(shorten(node.name, 30) or "(no name)", "name")]
    target = shorten(node.target, 36)
    if target and target != node.name and node.op != "output":
        lines.append(Line(target, "target"))
    if node.outputs and not labelled:
        lines.append(Line(shorten(outputs_text(node), 40), "small"))
    if node.members:
        shown = ", ".join(shorten(m, 18) for m in node.members[:3])
        more = f" +{len(node.members) - 3}" if len(node.members) > 3 else ""
        loops = "1 loop" if len(node.members) == 1 else f"{len(node.members)} loops"
        lines.append(Line(f"{loops}: {shown}{more}", "small"))
    if module:
        kind = f" ({shorten(node.module_type, 20)})" if node.module_type else ""
        lines.append(Line(shorten(module, 40) + kind, "small"))
    return _sized(node.name, node.kind, lines, (node.name,))


def group_box(
    name: str, members: tuple[Node, ...], text: str = "", module_type: str | None = None, cost: str = ""
) -> PlannedBox:
    """Return the box of several nodes.

    ``text`` replaces its name as label, ``module_type`` is its class if the caller knows it, ``cost`` the cost of the
    nodes in words.
    """
    lines = [Line(shorten(text or name, 36), "name")]
    if module_type is None:
        types = {n.module_type for n in members if n.module and n.module == name} - {""}
        module_type = types.pop() if len(types) == 1 else ""
    if module_type:
        lines.append(Line(shorten(module_type, 36), "target"))
    lines.append(Line(f"holds {len(members):,} nodes", "target"))
    if cost:
        lines.append(Line(shorten(cost, 36), "cost"))
    kinds = Counter(n.kind for n in members)
    common = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))[:3]
    rest = len(members) - sum(count for _, count in common)
    parts = [f"{count} {shorten(kind, 12)}" for kind, count in common] + ([f"{rest} more"] if rest else [])
    lines.append(Line(", ".join(parts), "small"))
    return _sized(name, "collapsed", lines, tuple(n.name for n in members))


def _sized(name: str, kind: str, lines: list[Line], members: tuple[str, ...]) -> PlannedBox:
    across = max(width(line.text, line.size) for line in lines) + 20
    down = sum(line.size * LINE_HEIGHT for line in lines) + 11
    return PlannedBox(name, kind, tuple(lines), members, max(round(across, 1), 56.0), round(down, 1))


def _flows(nodes: Sequence[Node], owner: dict[str, int]) -> tuple[dict[Pair, list[str]], int]:
    """Return the values that go from box to box, in order, and the number of references to unknown nodes."""
    flows: dict[Pair, list[str]] = {}
    unknown = 0
    for node in nodes:
        for name in node.inputs:
            if name not in owner:
                unknown += 1
                continue
            pair = (owner[name], owner[node.name])
            if pair[0] == pair[1] and name != node.name:
                continue
            flow = flows.setdefault(pair, [])
            if name not in flow:
                flow.append(name)
    return flows, unknown


def split(count: int, pairs: Sequence[Pair], longest: int = MAX_SPAN) -> tuple[list[Pair], list[Pair], int]:
    """Return the edges between ``count`` boxes to draw whole, those to cut, and the most ranks that one may span."""
    spans = _spans(count, pairs)
    longest = _threshold(spans, longest, CROSSINGS + CROSSINGS_PER_BOX * count)
    kept = [pair for pair in pairs if spans[pair] <= longest]
    return kept, [pair for pair in pairs if spans[pair] > longest], longest


def _spans(count: int, pairs: Sequence[Pair]) -> dict[Pair, int]:
    """Return the number of ranks that each edge spans: ranks by longest path, sources next to their first use.

    Boxes are in execution order. An edge against it, which no well-formed graph has, does not affect the ranks.
    """
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs:
        if a < b:
            into[b].append(a)
            out[a].append(b)
    ranks = [0] * count
    for box in range(count):
        ranks[box] = max((ranks[a] + 1 for a in into[box]), default=0)
    for box in range(count):
        if not into[box] and out[box]:
            ranks[box] = min(ranks[b] for b in out[box]) - 1
    return {(a, b): abs(ranks[b] - ranks[a]) for a, b in pairs}


def _threshold(spans: dict[Pair, int], longest: int, crossings: int) -> int:
    """Return the longest span to keep so that all kept edges together cross at most ``crossings`` ranks."""
    for step in _STEPS:
        if step > longest:
            continue
        if sum(span - 1 for span in spans.values() if 1 < span <= step) <= crossings:
            return step
    return min(longest, _STEPS[-1])


def flow_label(sources: Sequence[Node]) -> str:
    """Return the label of an edge: a description of its values."""
    texts = [outputs_text(n) for n in sources]
    if len(texts) == 1:
        outputs = len(sources[0].outputs)
        return f"{outputs} tensors" if outputs > 1 and columns(texts[0]) > 34 else shorten(texts[0], 34)
    known = sum(1 for t in texts if t)
    return f"{len(texts)} values" if known < len(texts) else f"{known} tensors"


def far_ends(boxes: Sequence[PlannedBox], cut: Sequence[Pair]) -> dict[Side, list[str]]:
    """Return for each side of a box with cut edges the names of the boxes at their other ends."""
    ends: dict[Side, list[str]] = {}
    for a, b in cut:
        ends.setdefault((a, True), []).append(boxes[b].name)
        ends.setdefault((b, False), []).append(boxes[a].name)
    return ends


def make_stubs(ends: Mapping[Side, Sequence[str]]) -> tuple[PlannedStub, ...]:
    """Return one stub for each box and side: an output with hundreds of cut edges has one of a few lines."""
    stubs = []
    for (box, outgoing), names in sorted(ends.items()):
        arrow = "→ to" if outgoing else "← from"
        lines = [f"{arrow} {shorten(names[0], 24)}"]
        indent = " " * (columns(arrow) + 1)
        lines += [indent + shorten(n, 24) for n in names[1:_STUB_NAMES]]
        if len(names) > _STUB_NAMES:
            lines.append(f"{indent}and {len(names) - _STUB_NAMES} more")
        across = max(width(line, LABEL_SIZE) for line in lines) + 14
        down = len(lines) * LABEL_SIZE * LINE_HEIGHT + 6
        stubs.append(PlannedStub(box, outgoing, tuple(names), tuple(lines), round(across, 1), round(down, 1)))
    return tuple(stubs)
