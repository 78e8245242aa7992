"""The drawings of one stage, taken out of those of the whole page, as plain numbers and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compile_lens.layout.nest import Body, Geometry, Nest

from .words import line


def drawn(nest: Nest, scenes: Sequence[tuple[str, str, int]], locals: Mapping[str, int]) -> dict[str, object]:
    """``scenes``, ``bodies`` and ``layouts`` of a stage.

    Args:
        scenes: for each graph of the stage its title, the path of its names, and its number in ``nest``.
        locals: numbers of the stage's nodes by full name.
    """
    taken = _Taken(nest, locals)
    made = []
    for title, path, number in scenes:
        drawing = nest.drawings[number]
        made.append(
            {
                "name": title,
                "whole": taken.body(drawing.whole, path),
                "folded": taken.body(drawing.folded, path),
                "note": line(drawing.note),
            }
        )
    return {"scenes": made, "bodies": taken.bodies, "layouts": taken.layouts}


class _Taken:
    def __init__(self, nest: Nest, locals: Mapping[str, int]) -> None:
        self.bodies: list[dict[str, object]] = []
        self.layouts: list[dict[str, object]] = []
        self._nest = nest
        self._locals = locals
        self._layouts: dict[int, int] = {}

    def body(self, number: int, path: str) -> int:
        """The number of a body among those of the stage; all that can be opened in it comes along."""
        if number < 0:
            return -1
        start = len(self.bodies)
        queue = [number]
        for taken in queue:  # it grows as it goes
            body = self._nest.bodies[taken]
            inside = []
            for box in body.boxes:
                inside.append(start + len(queue) if box.inside >= 0 else -1)
                queue += [box.inside] if box.inside >= 0 else []
            self.bodies.append(self._body(body, inside, path))
        return start

    def _body(self, body: Body, inside: Sequence[int], path: str) -> dict[str, object]:
        boxes = [
            {
                "name": line(box.name),
                "kind": line(box.kind),
                "lines": [[line(text.text), text.role] for text in box.lines],
                "members": [self._locals[path + name] for name in box.members],
                "body": number,
            }
            for box, number in zip(body.boxes, inside, strict=True)
        ]
        return {
            "layout": self._layout(body.layout),
            "boxes": boxes,
            "labels": [line(label) for label in body.labels],
            "stubs": [
                {"others": [line(name) for name in stub.others], "lines": [line(text) for text in stub.lines]}
                for stub in body.stubs
            ],
        }

    def _layout(self, number: int) -> int:
        known = self._layouts.setdefault(number, len(self.layouts))
        if known == len(self.layouts):
            self.layouts.append(_geometry(self._nest.layouts[number]))
        return known


def _geometry(layout: Geometry) -> dict[str, object]:
    return {
        "width": _short(layout.width),
        "height": _short(layout.height),
        "boxes": [_all(box) for box in layout.boxes],
        "edges": [
            {
                "ends": [curve.source, curve.target],
                "points": _flat(curve.points),
                "label": None if curve.label_at is None else _all(curve.label_at),
            }
            for curve in layout.curves
        ],
        "stubs": [
            {"box": tail.box, "outgoing": tail.outgoing, "at": _all(tail.at), "points": _flat(tail.points)}
            for tail in layout.tails
        ],
    }


def _flat(points: Sequence[tuple[float, float]]) -> list[float]:
    return [_short(value) for point in points for value in point]


def _all(values: Sequence[float]) -> list[float]:
    return [_short(value) for value in values]


def _short(value: float) -> float:
    """A coordinate with one decimal, and without where that is 0."""
    near = round(value, 1)
    return int(near) if near == int(near) else near
