"""Drawings that open box by box: each graph whole, and folded by module with a separate drawing for the inside of every
box.

The inside of a box is a drawing of its own (a body): it is small, quickly placed, and equal boxes share one layout: the
twelve layers of a transformer are one layout with twelve sets of names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from compile_lens.errors import LayoutError, UsageError
from compile_lens.record.graph import Graph, Node

from .fold import Fold, Level, Part, fold
from .plan import (
    MAX_LABELLED,
    MAX_SPAN,
    BoxContent,
    Pair,
    Plan,
    PlannedBox,
    PlannedEdge,
    Side,
    far_ends,
    flow_label,
    group_box,
    make_plan,
    make_stubs,
    node_box,
    split,
)
from .shape import Curve, Geometry, Rectangle, Tail, place_shapes

__all__ = [
    "Body",
    "Curve",
    "Drawing",
    "Geometry",
    "Nest",
    "NestedBox",
    "NestedStub",
    "Rectangle",
    "Tail",
    "nest_all",
]

MIN_FOLDED = 9
"""Fewest nodes of a graph that is folded."""

MAX_TYPED = 5000
"""Most nodes of a graph with types on edges in the folded form; larger ones have types in the boxes."""

MAX_SPAN_INSIDE = 16
"""Most ranks that an edge may span in the folded form, where boxes are tall and have many edges."""

_MAX_SPAN_RETRY = 6
"""The same for the second attempt, after Graphviz exceeded its time."""


CostWords = Callable[[Sequence[str]], str]
"""Function from the names of nodes to their cost in words; ``""`` if not known."""


def _no_cost(names: Sequence[str]) -> str:
    return ""


@dataclass(frozen=True)
class NestedBox(BoxContent):
    """Content of a box that may contain others: ``inside`` is the number of its body; -1 for a plain node, and for a
    box whose inside could not be placed."""

    inside: int


@dataclass(frozen=True)
class NestedStub:
    """Texts of a stub: ``others`` are the names at its far ends, ``lines`` the text to draw.

    A far end in the same body is a box; one outside it is a node.
    """

    others: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Body:
    """Texts of one drawing; boxes, labels and stubs are in the order of its layout."""

    layout: int
    boxes: tuple[NestedBox, ...]
    labels: tuple[str, ...]
    stubs: tuple[NestedStub, ...]


@dataclass(frozen=True)
class Drawing:
    """One graph in two forms, as numbers of bodies; -1 if a form does not exist.

    Attributes:
        whole: every node, nothing collapsed.
        folded: by module, else by spans of neighbours; its boxes can be opened.
        note: why there is no whole form, and what could not be drawn, in words.
    """

    whole: int
    folded: int
    note: str


@dataclass(frozen=True)
class Nest:
    """Drawings of several graphs, their bodies, and the layouts of the bodies."""

    drawings: tuple[Drawing, ...]
    bodies: tuple[Body, ...]
    layouts: tuple[Geometry, ...]


def nest_all(
    graphs: Sequence[Graph],
    *,
    modules: Sequence[Mapping[str, str] | None] | None = None,
    costs: Sequence[CostWords] | None = None,
    whole_limit: int = 200,
    opened: int = 60,
    timeout: float = 20.0,
) -> Nest:
    """Place graphs whole and folded, with one run of Graphviz for each distinct shape.

    Args:
        graphs: any stages, with the subgraphs of higher-order operators as separate graphs.
        modules: for each graph the ``nn.Module`` paths by node name, or ``None`` for those of its nodes.
        costs: for each graph a function from the names of nodes to their cost in words, shown in their boxes.
        whole_limit: the most nodes of a graph that is also drawn whole.
        opened: the most boxes in a body of the folded form.
        timeout: seconds for Graphviz for each layout. After that, it is tried once more with shorter edges; a body
            that still cannot be placed is left out, and the note says so.

    Raises:
        UsageError: if an argument is invalid.
    """
    if modules is not None and len(modules) != len(graphs):
        raise UsageError(f"there are {len(modules)} maps of modules for {len(graphs)} graphs")
    if whole_limit < 0:
        raise UsageError(f"whole_limit is {whole_limit!r}; it must be at least 0 nodes")
    if opened < 2:
        raise UsageError(f"opened is {opened!r}; it must be at least 2 boxes")
    if not timeout > 0:
        raise UsageError(f"timeout is {timeout!r}; it must be more than 0 seconds")
    types = _types(graphs)
    entries: list[tuple[_Whole | None, _Inside | None]] = []
    for index, graph in enumerate(graphs):
        whole = _Whole(graph) if 0 < len(graph.nodes) <= whole_limit else None
        folds = fold(graph.nodes, None if modules is None else modules[index], opened)
        is_folded = folds.folds and len(graph.nodes) >= MIN_FOLDED
        cost_words = costs[index] if costs else _no_cost
        folded = (
            _Inside(_Flow(folds, types, cost_words), 0)
            if graph.nodes and (is_folded or whole is None)
            else None
        )
        entries.append((whole, folded))
    placed = _Placed(timeout)
    # Outermost bodies come first: if they cannot be placed, the others cannot be reached.
    placed.add([sketch for pair in entries for sketch in pair if sketch])
    placed.add([i for _, folded in entries if folded and placed.has(folded) for i in folded.flow.insides[1:]])
    bodies = _Bodies(placed)
    drawings = tuple(bodies.drawing(g, *pair, whole_limit) for g, pair in zip(graphs, entries, strict=True))
    return Nest(drawings, tuple(bodies.bodies), tuple(bodies.layouts))


def _types(graphs: Sequence[Graph]) -> dict[str, str]:
    """Return the class of each module on which all nodes of all graphs agree: late stages only know the path."""
    kinds_by_path: dict[str, set[str]] = {}
    for node in chain.from_iterable(g.nodes for g in graphs):
        if node.module and node.module_type:
            kinds_by_path.setdefault(node.module, set()).add(node.module_type)
    return {path: kinds.pop() for path, kinds in kinds_by_path.items() if len(kinds) == 1}


class _Whole:
    """A future flat drawing of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.inner: list[_Inside] = []

    def plan(self, simpler: bool) -> Plan:
        return make_plan(self.graph, len(self.graph.nodes), _MAX_SPAN_RETRY if simpler else MAX_SPAN)


class _Flow:
    """Inputs and users of each node in a folded graph, by place in its line."""

    def __init__(self, folds: Fold, types: Mapping[str, str], cost: CostWords) -> None:
        self.folds = folds
        self.types = types
        self.cost = cost
        at = {node.name: i for i, node in enumerate(folds.line)}
        self.inputs = [[at[name] for name in node.inputs if name in at] for node in folds.line]
        self.users: list[list[int]] = [[] for _ in folds.line]
        for user, inputs in enumerate(self.inputs):
            for source in inputs:
                self.users[source].append(user)

    @cached_property
    def insides(self) -> list[_Inside]:
        return [_Inside(self, i) for i in range(len(self.folds.levels))]


class _Inside:
    """A future drawing of one level of a folded graph."""

    def __init__(self, flow: _Flow, number: int) -> None:
        self.flow = flow
        self.number = number

    @property
    def level(self) -> Level:
        return self.flow.folds.levels[self.number]

    @property
    def inner(self) -> list[_Inside | None]:
        return [self.flow.insides[p.inside] if p.inside >= 0 else None for p in self.level.parts]

    def plan(self, simpler: bool) -> Plan:
        level, line = self.level, self.flow.folds.line
        labelled = len(level.parts) <= MAX_LABELLED and len(line) <= MAX_TYPED
        boxes = tuple(self._box(part, labelled) for part in level.parts)
        flows, outside = self._flows()
        kept, cut, _ = split(len(boxes), list(flows), _MAX_SPAN_RETRY if simpler else MAX_SPAN_INSIDE)
        edges = tuple(
            PlannedEdge(a, b, flow_label([line[i] for i in flows[a, b]]) if labelled else "") for a, b in kept
        )
        ends = far_ends(boxes, cut)
        for side, others in outside.items():
            ends.setdefault(side, []).extend(line[i].name for i in others)
        return Plan(boxes, edges, make_stubs(ends))

    def _box(self, part: Part, labelled: bool) -> PlannedBox:
        folds = self.flow.folds
        if part.inside < 0:
            module = _below(folds.modules[part.start], self.level.module)
            return node_box(folds.line[part.start], labelled, module)
        members = folds.line[part.start : part.stop]
        cost = self.flow.cost([node.name for node in members])
        return group_box(part.name, members, part.text, self.flow.types.get(part.module, ""), cost)

    def _flows(self) -> tuple[dict[Pair, list[int]], dict[Side, list[int]]]:
        """Return the values that go from box to box, and for each side of a box the far nodes outside this level."""
        level = self.level
        start, stop = level.start, level.stop
        owner = [i for i, part in enumerate(level.parts) for _ in range(part.start, part.stop)]
        flows: dict[Pair, dict[int, None]] = {}
        outside: dict[Side, set[int]] = {}
        for node in range(start, stop):
            box = owner[node - start]
            for source in self.flow.inputs[node]:
                if not start <= source < stop:
                    outside.setdefault((box, False), set()).add(source)
                elif owner[source - start] != box or source == node:
                    flows.setdefault((owner[source - start], box), {})[source] = None
            for user in self.flow.users[node]:
                if not start <= user < stop:
                    outside.setdefault((box, True), set()).add(user)
        return {pair: list(f) for pair, f in flows.items()}, {side: sorted(o) for side, o in outside.items()}


def _below(module: str, path: str) -> str:
    """Return ``module`` relative to ``path``; ``""`` for that module itself."""
    if module == path:
        return ""
    return module[len(path) + 1 :] if path and module.startswith(f"{path}.") else module


_Figure = _Whole | _Inside


class _Placed:
    """Drawings with their plans and geometry."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.plans: dict[_Figure, Plan] = {}
        self.answers: dict[_Figure, Geometry | LayoutError] = {}
        self.simpler: set[_Figure] = set()

    def has(self, sketch: _Figure) -> bool:
        return isinstance(self.answers.get(sketch), Geometry)

    def add(self, sketches: Sequence[_Figure]) -> None:
        self._try(sketches, simpler=False)
        late = [s for s in sketches if not self.has(s)]
        if late:
            self._try(late, simpler=True)
            self.simpler.update(s for s in late if self.has(s))

    def _try(self, sketches: Sequence[_Figure], simpler: bool) -> None:
        plans = [s.plan(simpler) for s in sketches]
        for sketch, plan, answer in zip(sketches, plans, place_shapes(plans, self.timeout), strict=True):
            self.plans[sketch] = plan
            self.answers[sketch] = answer


class _Bodies:
    """Numbered bodies and layouts, only those that can be reached."""

    def __init__(self, placed: _Placed) -> None:
        self.placed = placed
        self.bodies: list[Body] = []
        self.layouts: list[Geometry] = []
        self._numbers: dict[Geometry, int] = {}

    def drawing(
        self, graph: Graph, whole: _Whole | None, folded: _Inside | None, whole_limit: int
    ) -> Drawing:
        notes = []
        if not graph.nodes:
            notes.append("there is no node to draw")
        elif whole is None:
            count = len(graph.nodes)
            notes.append(f"{count:,} nodes are more than the {whole_limit:,} that are drawn at once")
        unknown = _unknown(graph.nodes)
        if unknown:
            these = "an argument names a node" if unknown == 1 else f"{unknown} arguments name nodes"
            notes.append(f"{these} outside of this graph: not drawn")
        numbers = []
        for form, what in ((whole, "the whole graph"), (folded, "the folded graph")):
            if form is None:
                numbers.append(-1)
            elif self.placed.has(form):
                numbers.append(self._tree(form, notes))
            else:
                numbers.append(-1)
                notes.append(f"{what} could not be placed: {self.placed.answers[form]}")
        return Drawing(numbers[0], numbers[1], "; ".join(notes))

    def _tree(self, root: _Figure, notes: list[str]) -> int:
        """Add the bodies of ``root`` and of everything inside it; return the number of ``root``."""
        start = len(self.bodies)
        queue = [root]
        lost: list[str] = []
        for sketch in queue:  # grows during the loop
            plan, geometry = self.placed.plans[sketch], self.placed.answers[sketch]
            assert isinstance(geometry, Geometry)
            boxes = []
            for box, inner in zip(plan.boxes, sketch.inner or [None] * len(plan.boxes), strict=True):
                inside = -1
                if inner is not None and self.placed.has(inner):
                    inside = start + len(queue)
                    queue.append(inner)
                elif inner is not None:
                    lost.append(f"the inside of {box.name} could not be placed: {self.placed.answers[inner]}")
                boxes.append(NestedBox(box.name, box.kind, box.lines, box.members, inside))
            self.bodies.append(
                Body(
                    self._layout(geometry),
                    tuple(boxes),
                    tuple(e.label for e in plan.edges),
                    tuple(NestedStub(s.others, s.lines) for s in plan.stubs),
                )
            )
        if any(sketch in self.placed.simpler for sketch in queue):
            notes.append("edges are cut short where the drawing with more detail could not be placed")
        notes += lost[:1]
        if len(lost) > 1:
            notes.append(f"and {len(lost) - 1} more like it")
        return start

    def _layout(self, geometry: Geometry) -> int:
        number = self._numbers.setdefault(geometry, len(self.layouts))
        if number == len(self.layouts):
            self.layouts.append(geometry)
        return number


def _unknown(nodes: Sequence[Node]) -> int:
    names = {n.name for n in nodes}
    return sum(name not in names for n in nodes for name in n.inputs)
