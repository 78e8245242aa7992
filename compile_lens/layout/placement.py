"""Coordinates for a plan: DOT text to Graphviz, its ``plain`` format back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compile_lens.errors import LayoutError, UsageError
from compile_lens.record.graph import Graph

from . import engine
from .plan import LABEL_SIZE, LINE_HEIGHT, Plan, PlannedBox, PlannedStub, make_plan
from .text import width

Point = tuple[float, float]
"""x and y in pixels."""


@dataclass(frozen=True)
class Box(PlannedBox):
    """A placed box; ``x`` and ``y`` are its top left corner."""

    x: float
    y: float


@dataclass(frozen=True)
class Edge:
    """A placed edge as a chain of cubic Bézier curves: 1 + 3k points from source to target.

    ``label_at`` is the middle of the label, ``None`` without one.
    """

    source: str
    target: str
    points: tuple[Point, ...]
    label: str = ""
    label_at: Point | None = None


@dataclass(frozen=True)
class Stub:
    """All cut edges on one side of ``box``: outgoing or incoming.

    ``others`` are the names of the boxes at the far ends; ``lines`` is the text to draw in the rectangle, and
    ``points`` the short curve between the rectangle and the box, in the direction of the data.
    """

    box: str
    outgoing: bool
    others: tuple[str, ...]
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Layout:
    """A graph with coordinates. ``notes`` are sentences on simplifications.

    Attributes:
        left_out: names of the nodes without a box of their own.
    """

    width: float
    height: float
    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    stubs: tuple[Stub, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """All notes as one text; ``""`` if everything is shown."""
        return "; ".join(self.notes)


class OverBudget(LayoutError):
    """Error for a drawing larger than the limit; Graphviz was not run."""


def place(graph: Graph, *, limit: int = 1500, timeout: float = 20.0) -> Layout:
    """Place one graph.

    Args:
        graph: any stage.
        limit: the most boxes to draw; a larger graph is collapsed by ``nn.Module`` path, else by runs.
        timeout: seconds for Graphviz. After that, the graph is tried once more with fewer boxes and shorter edges,
            and the notes say so.

    Raises:
        LayoutError: if Graphviz is missing, failed, or exceeded its time limit twice.
        UsageError: if ``limit`` is below 1 or ``timeout`` is not above 0.
    """
    layout = place_all([graph], limit=limit, timeout=timeout)[0]
    if isinstance(layout, LayoutError):
        raise layout
    return layout


def place_all(
    graphs: Sequence[Graph], *, limit: int = 1500, timeout: float = 20.0, most: int | None = None
) -> list[Layout | LayoutError]:
    """Place several graphs in one child process; return a ``LayoutError`` for each that cannot be placed.

    ``limit`` and ``timeout`` are those of ``place``, for each graph. ``most`` limits the boxes, edges and stubs of all
    drawings together: a graph that exceeds the rest of this budget gives ``OverBudget``.

    Raises:
        UsageError: like ``place``, and if ``most`` is below 0.
    """
    if limit < 1:
        raise UsageError(f"limit is {limit!r}; it must be at least 1 box")
    if not timeout > 0:
        raise UsageError(f"timeout is {timeout!r}; it must be more than 0 seconds")
    if most is not None and most < 0:
        raise UsageError(f"most is {most!r}; it must be at least 0 boxes, edges and stubs")
    plans = [make_plan(g, limit) for g in graphs]
    if most is None:
        return _placed(graphs, plans, limit, timeout)
    answers: list[Layout | LayoutError] = []
    taken, left = [], most
    for number, plan in enumerate(plans):
        wanted = len(plan.boxes) + len(plan.edges) + len(plan.stubs)
        if wanted <= left:
            left -= wanted
            taken.append(number)
        answers.append(OverBudget(f"{wanted} boxes and lines are more than the {left} that are left to draw"))
    placed = _placed([graphs[i] for i in taken], [plans[i] for i in taken], limit, timeout)
    for number, layout in zip(taken, placed, strict=True):
        answers[number] = layout
    return answers


def _placed(
    graphs: Sequence[Graph], plans: Sequence[Plan], limit: int, timeout: float
) -> list[Layout | LayoutError]:
    layouts = place_plans(plans, timeout)
    late = [i for i, a in enumerate(layouts) if isinstance(a, engine.TimeLimit) and len(plans[i].boxes) > 1]
    if late:
        smaller = [make_plan(graphs[i], max(1, min(limit, len(plans[i].boxes) // 4)), 8) for i in late]
        note = f"the drawing with more detail did not finish within {timeout:g} s"
        for i, retried in zip(late, place_plans(smaller, timeout), strict=True):
            if isinstance(retried, Layout):
                retried = Layout(
                    retried.width,
                    retried.height,
                    retried.boxes,
                    retried.edges,
                    retried.stubs,
                    retried.left_out,
                    (*retried.notes, note),
                )
            layouts[i] = retried
    return layouts


def place_plans(plans: Sequence[Plan], timeout: float) -> list[Layout | LayoutError]:
    """Return a layout for each plan, or its error. Graphviz is not started for plans without boxes.

    One child process places them all; plans that differ only in names are placed once.
    """
    drawn = [i for i, plan in enumerate(plans) if plan.boxes]
    layouts: list[Layout | LayoutError] = [Layout(0.0, 0.0, notes=plan.notes) for plan in plans]
    if not drawn:
        return layouts
    texts = {i: _dot(plans[i]) for i in drawn}
    # A stage often differs from the one before in names only, which are not in the DOT text.
    different = list(dict.fromkeys(texts.values()))
    try:
        answers = dict(zip(different, engine.run(different, timeout), strict=True))
    except LayoutError as error:  # no Graphviz: the same reason for every graph
        answers = dict.fromkeys(different, error)
    for i in drawn:
        answer = answers[texts[i]]
        layouts[i] = answer if isinstance(answer, LayoutError) else _read(plans[i], answer)
    return layouts


def _dot(plan: Plan) -> str:
    """Return the plan as DOT with generated names only: no user text is passed to Graphviz."""
    lines = [
        "digraph {",
        "nodesep=0.25 ranksep=0.3",
        'node [shape=box fixedsize=true label=""]',
        "edge [dir=none]",
    ]
    for i, box in enumerate(plan.boxes):
        lines.append(f"n{i} [width={_inches(box.width)} height={_inches(box.height)}]")
    for i, stub in enumerate(plan.stubs):
        lines.append(f"s{i} [width={_inches(stub.width)} height={_inches(stub.height)}]")
    for edge in plan.edges:
        label = f" label=<{_label_table(edge.label)}>" if edge.label else ""
        # Consecutive boxes in execution order form a straight spine; without the weight, a bundle of long edges
        # next to them pushes each one a step to the side, and the drawing becomes a staircase.
        weight = 5 if edge.target == edge.source + 1 else 1
        lines.append(f"n{edge.source} -> n{edge.target} [weight={weight}{label}]")
    for i, stub in enumerate(plan.stubs):
        ends = f"n{stub.box} -> s{i}" if stub.outgoing else f"s{i} -> n{stub.box}"
        lines.append(f"{ends}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _inches(pixels: float) -> str:
    return f"{pixels / 72:.4f}"


def _label_table(label: str) -> str:
    # An empty table of fixed size: a text label would be measured with whatever fonts the machine has.
    across = round(width(label, LABEL_SIZE) + 10)
    down = round(LABEL_SIZE * LINE_HEIGHT)
    size = f'FIXEDSIZE="TRUE" WIDTH="{across}" HEIGHT="{down}"'
    return f'<TABLE BORDER="0" CELLPADDING="0" CELLSPACING="0" {size}><TR><TD></TD></TR></TABLE>'


def _read(plan: Plan, plain: str) -> Layout | LayoutError:
    """Return the layout from Graphviz' ``plain`` output (https://graphviz.org/docs/outputs/plain/)."""
    size: Point | None = None
    centres: dict[str, Point] = {}
    splines: dict[tuple[str, str], tuple[tuple[Point, ...], Point | None]] = {}

    def point(x: str, y: str) -> Point:
        assert size is not None
        return round(float(x) * 72, 1), round(size[1] - float(y) * 72, 1)

    try:
        for line in plain.splitlines():
            words = line.split()
            if words[:1] == ["graph"]:
                size = (float(words[2]) * 72, float(words[3]) * 72)
            elif words[:1] == ["node"]:
                centres[words[1]] = point(words[2], words[3])
            elif words[:1] == ["edge"]:
                end = 4 + 2 * int(words[3])
                points = tuple(point(x, y) for x, y in zip(words[4:end:2], words[5:end:2], strict=True))
                # A label is between the points and "style color", its own text first.
                labelled = len(words) > end + 2
                splines[words[1], words[2]] = (points, point(words[-4], words[-3]) if labelled else None)
        if size is None:
            raise ValueError("no size")
        boxes = tuple(_box(b, centres[f"n{i}"]) for i, b in enumerate(plan.boxes))
        edges = []
        for e in plan.edges:
            points, at = splines[f"n{e.source}", f"n{e.target}"]
            points = _snap(points, boxes[e.source], boxes[e.target])
            edges.append(Edge(boxes[e.source].name, boxes[e.target].name, points, e.label, at))
        stubs = tuple(_stub(s, i, boxes[s.box], centres, splines) for i, s in enumerate(plan.stubs))
    except (ValueError, KeyError, IndexError) as error:
        return LayoutError(f"Graphviz answered in a form that is not its plain format: {error!r}")
    hidden = tuple(name for b in plan.boxes if len(b.members) > 1 for name in b.members)
    return Layout(round(size[0], 1), round(size[1], 1), boxes, tuple(edges), stubs, hidden, plan.notes)


def _box(box: PlannedBox, centre: Point) -> Box:
    x, y = round(centre[0] - box.width / 2, 1), round(centre[1] - box.height / 2, 1)
    return Box(**vars(box), x=x, y=y)


def _stub(
    stub: PlannedStub,
    index: int,
    box: Box,
    centres: dict[str, Point],
    splines: dict[tuple[str, str], tuple[tuple[Point, ...], Point | None]],
) -> Stub:
    x, y = centres[f"s{index}"]
    key = (f"n{stub.box}", f"s{index}") if stub.outgoing else (f"s{index}", f"n{stub.box}")
    place_x, place_y = round(x - stub.width / 2, 1), round(y - stub.height / 2, 1)
    return Stub(
        box.name,
        stub.outgoing,
        stub.others,
        stub.lines,
        place_x,
        place_y,
        stub.width,
        stub.height,
        splines[key][0],
    )


def _snap(points: tuple[Point, ...], source: Box, target: Box) -> tuple[Point, ...]:
    """Move the ends exactly onto the boxes: ``plain`` has five digits, too few for a tall drawing."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    bottom = round(source.y + source.height, 1)
    if abs(y0 - bottom) <= 6:
        y0 = bottom
    if abs(y1 - target.y) <= 6:
        y1 = target.y
    return ((x0, y0), *points[1:-1], (x1, y1))
