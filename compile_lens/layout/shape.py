"""Shared layouts: drawings of the same shape are placed once, with room for the texts of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compile_lens.errors import LayoutError

from .placement import Layout, Point, place_plans
from .plan import LABEL_SIZE, Plan
from .text import columns, width

TOLERANCE = 40.0
"""Largest difference of text widths, in pixels, between drawings that share a layout: about six characters."""

Rectangle = tuple[float, float, float, float]
"""x and y of the top left corner, width and height, in pixels."""


@dataclass(frozen=True)
class Curve:
    """A placed edge between two boxes, as in ``placement.Edge``; the boxes are numbers."""

    source: int
    target: int
    points: tuple[Point, ...]
    label_at: Point | None


@dataclass(frozen=True)
class Tail:
    """A placed stub at one side of a box, as in ``placement.Stub``."""

    box: int
    outgoing: bool
    at: Rectangle
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Geometry:
    """Coordinates without texts, for all bodies of one shape."""

    width: float
    height: float
    boxes: tuple[Rectangle, ...]
    curves: tuple[Curve, ...]
    tails: tuple[Tail, ...]


def place_shapes(plans: Sequence[Plan], timeout: float) -> list[Geometry | LayoutError]:
    """Return the layout of each plan, the same object for those of one shape, or its error.

    ``timeout`` is in seconds for each layout. One child process places them all.
    """
    shapes, numbers = _shapes(plans)
    widest_plans = [shape.widest_plan() for shape in shapes]
    answers = [
        layout if isinstance(layout, LayoutError) else _geometry(plan, layout)
        for plan, layout in zip(widest_plans, place_plans(widest_plans, timeout), strict=True)
    ]
    return [answers[number] for number in numbers]


class _Shape:
    """Plans that differ only in similar widths: they share one layout with room for each."""

    def __init__(self, plan: Plan, widths: Sequence[float]) -> None:
        self.plan = plan
        self.narrowest = list(widths)
        self.widest = list(widths)
        self.labels = [e.label for e in plan.edges]

    def take(self, plan: Plan, widths: Sequence[float]) -> bool:
        """Add a plan if its widths are close to all others; return True if it was added."""
        if any(
            w - low > TOLERANCE or high - w > TOLERANCE
            for w, low, high in zip(widths, self.narrowest, self.widest, strict=True)
        ):
            return False
        self.narrowest = [min(pair) for pair in zip(widths, self.narrowest, strict=True)]
        self.widest = [max(pair) for pair in zip(widths, self.widest, strict=True)]
        self.labels = [
            max(e.label, text, key=columns) for e, text in zip(plan.edges, self.labels, strict=True)
        ]
        return True

    def widest_plan(self) -> Plan:
        """Return the plan to place, with the largest widths."""
        widest = iter(self.widest)
        boxes = tuple(replace(b, width=next(widest)) for b in self.plan.boxes)
        stubs = tuple(replace(s, width=next(widest)) for s in self.plan.stubs)
        edges = tuple(replace(e, label=text) for e, text in zip(self.plan.edges, self.labels, strict=True))
        return Plan(boxes, edges, stubs)


_Key = tuple[tuple[float, ...], tuple[tuple[int, int, bool], ...], tuple[tuple[int, bool, float], ...]]


def _shapes(plans: Sequence[Plan]) -> tuple[list[_Shape], list[int]]:
    """Return the distinct shapes, and for each plan the number of its shape."""
    shapes: list[_Shape] = []
    known: dict[_Key, list[int]] = {}
    numbers = []
    for plan in plans:
        key = (
            tuple(b.height for b in plan.boxes),
            tuple((e.source, e.target, bool(e.label)) for e in plan.edges),
            tuple((s.box, s.outgoing, s.height) for s in plan.stubs),
        )
        widths = [b.width for b in plan.boxes] + [s.width for s in plan.stubs]
        widths += [width(e.label, LABEL_SIZE) for e in plan.edges]
        same = known.setdefault(key, [])
        number = next((i for i in same if shapes[i].take(plan, widths)), len(shapes))
        if number == len(shapes):
            shapes.append(_Shape(plan, widths))
            same.append(number)
        numbers.append(number)
    return shapes, numbers


def _geometry(plan: Plan, layout: Layout) -> Geometry:
    return Geometry(
        layout.width,
        layout.height,
        tuple((b.x, b.y, b.width, b.height) for b in layout.boxes),
        tuple(
            Curve(planned.source, planned.target, e.points, e.label_at)
            for planned, e in zip(plan.edges, layout.edges, strict=True)
        ),
        tuple(
            Tail(planned.box, s.outgoing, (s.x, s.y, s.width, s.height), s.points)
            for planned, s in zip(plan.stubs, layout.stubs, strict=True)
        ),
    )
