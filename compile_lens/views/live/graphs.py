"""Page parts of graph stages: facts of each node, the stage as text, and its drawings."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from compile_lens.layout.nest import Body, CostWords, Geometry, Nest, nest_all
from compile_lens.measures.chain import walk
from compile_lens.measures.cost import cost
from compile_lens.measures.launch_costs import NodeCost, node_costs
from compile_lens.measures.ledger import MODELLED, Figure
from compile_lens.measures.unfused_pairs import unfused_pairs
from compile_lens.record.capture import Record
from compile_lens.record.graph import Frame, Graph, Literal, Node, Ref, Tensor, Value

from ..findings.cost import amount as cost_amount
from ..words import sentences
from ..words.characters import Strings, block, line
from ..words.quantities import amount, plural
from .core import frame_line
from .index import Path, full_title, modules
from .items import Items, SeenStage
from .texts import Texts, defining_lines


def shown_frames(node: Node) -> list[Frame]:
    """Return the frames of a node, torch's first and the user's innermost last."""
    return sorted(node.frames, key=lambda frame: not frame.of_torch)


class Graphs:
    """The ``GraphData`` of every graph stage. All drawings of a page are placed together."""

    def __init__(self, capture: Record, items: Items, texts: Texts) -> None:
        self._capture = capture
        self._items = items
        self._texts = texts
        self._modules = modules(items)
        self._scenes: dict[int, list[tuple[str, str, int]]] = {}
        graphs: list[Graph] = []
        paths: list[Mapping[str, str]] = []
        costs: list[CostWords] = []
        for seen in items.stages:
            if isinstance(seen.stage, Graph):
                scenes = self._scenes.setdefault(seen.number, [])
                for path, graph in _graphs(seen.stage):
                    scenes.append((line(path[:-1]) or full_title(seen.stage.key), path, len(graphs)))
                    graphs.append(graph)
                    paths.append({n.name: self._module(seen, path + n.name)[0] for n in graph.nodes})
                    costs.append(_cost_words(capture, (seen.id, seen.stage.key), path))
        self._nest: Nest = nest_all(graphs, modules=paths, costs=costs)

    def of(self, seen: SeenStage) -> dict[str, object]:
        """Return the data of one stage."""
        graph = seen.stage
        assert isinstance(graph, Graph)
        nodes: dict[str, Node] = {}
        for path, node in walk(graph):
            nodes.setdefault(path + node.name, node)
        strings, tensors = Strings([""]), _Tensors()
        quoted = functools.cache(frame_line)  # few frames, many nodes
        code = self._texts.graphs[seen.number]
        where = [self._module(seen, name) for name in nodes]
        known = list(enumerate(nodes.values()))
        return {
            "op": [strings.number(node.op) for node in nodes.values()],
            "target": [strings.number(node.target) for node in nodes.values()],
            "module": [strings.number(path) for path, _ in where],
            "moduleType": [strings.number(kind) for _, kind in where],
            "outputs": [[tensors.number(tensor) for tensor in node.outputs] for node in nodes.values()],
            "tensors": tensors.all,
            "frames": [
                [strings.number(quoted(frame)) for frame in shown_frames(node)] for node in nodes.values()
            ],
            "traffic": [
                [local, _bytes(node.reads), _bytes(node.writes)]
                for local, node in known
                if node.reads is not None or node.writes is not None
            ],
            "detail": [[local, text] for local, node in known if (text := _detail(node))],
            "members": [[local, loops] for local, loops in self._members(seen, known)],
            "saved": [seen.locals[name] for name in dict.fromkeys(graph.saved) if name in seen.locals],
            "notFused": list(self._unfused_groups(seen, strings)),
            "code": code,
            "lineOf": [
                [number, seen.locals[name]] for number, name in defining_lines(graph, str(code["text"]))
            ],
            **drawn(self._nest, self._scenes[seen.number], seen.locals),
            "strings": strings.all(),
        }

    def _module(self, seen: SeenStage, name: str) -> Path:
        return self._modules[seen.item(name)]

    def _unfused_groups(self, seen: SeenStage, strings: Strings) -> Iterator[dict[str, object]]:
        """Yield the pairs of groups that are not fused, with the reason."""
        if seen.stage.key != f"{seen.stage.phase}.groups":
            return
        for pair in unfused_pairs(self._capture, seen.id, seen.stage.phase):
            saved = pair.why.saved
            yield {
                "first": seen.locals[pair.first],
                "second": seen.locals[pair.second],
                "how": strings.number(sentences.touching(pair)),
                "reason": strings.number(pair.why.reason),
                "sentence": strings.number(pair.why.sentence),
                "remedy": strings.number(pair.why.remedy),
                "saved": strings.number("" if saved is None else amount(Figure(saved, MODELLED))),
            }

    def _members(self, seen: SeenStage, known: Sequence[tuple[int, Node]]) -> Iterator[tuple[int, list[int]]]:
        """Yield each group with the items of its loops."""
        loops = self._items.seen(seen.compilation, f"{seen.stage.phase}.loops")
        if loops is None:
            return
        for local, node in known:
            if node.members:
                above = self._items.above[seen.start + local]
                yield local, [up for up in above if loops.start <= up < loops.start + len(loops.names)]


def _cost_words(capture: Record, stage: tuple[str, str], path: str) -> CostWords:
    """Return a function from nodes of a graph to their cost in words: ``3 launches, ~12.6 MB``."""
    costs, whole = node_costs(capture), cost(capture, "kernel")

    def words(names: Sequence[str]) -> str:
        own = [one for name in names if (one := costs.get((*stage, path + name))) is not None]
        if not own:
            return ""
        all_of_them = sum(own, NodeCost())
        price = cost_amount(whole, all_of_them.amount, all_of_them.at_least)
        return f"{plural(len(all_of_them.orders), 'launch', 'launches')}, {price}"

    return words


class _Tensors:
    """Facts of tensors, by number."""

    def __init__(self) -> None:
        self.all: list[dict[str, object]] = []
        self._numbers: dict[Tensor, int] = {}

    def number(self, tensor: Tensor) -> int:
        known = self._numbers.setdefault(tensor, len(self.all))
        if known == len(self.all):
            self.all.append(
                {
                    "dtype": line(tensor.dtype),
                    "shape": _sizes(tensor.shape),
                    "stride": "" if tensor.stride is None else _sizes(tensor.stride),
                    "device": line(tensor.device),
                    "bytes": tensor.nbytes,
                    "grad": tensor.requires_grad,
                }
            )
        return known


def _graphs(graph: Graph, path: str = "") -> Iterator[tuple[str, Graph]]:
    """Yield a graph and the bodies of its higher-order operators, each with its path of names."""
    yield path, graph
    for name, body in graph.subgraphs:
        yield from _graphs(body, f"{path}{name}/")


def _sizes(sizes: Sequence[int | str]) -> str:
    return line(f"[{', '.join(map(str, sizes))}]")


def _bytes(value: int | None) -> int:
    return -1 if value is None else value


def _detail(node: Node) -> str:
    """Return details beyond the drawing: the body of a loop, arguments that are not nodes."""
    parts = [block(node.detail)] if node.detail else []
    values = (*node.args, *(value for _, value in node.kwargs))
    if any(map(_is_plain, values)) and node.op != "output":
        arguments = [_text(value) for value in node.args]
        arguments += [f"{name}={_text(value)}" for name, value in node.kwargs]
        parts.append(line(f"arguments: {', '.join(arguments)}"))
    return "\n".join(parts)


def _is_plain(value: Value) -> bool:
    return any(map(_is_plain, value)) if isinstance(value, tuple) else not isinstance(value, Ref)


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, Ref):
        return value.name
    return value.text if isinstance(value, Literal) else repr(value)


def drawn(nest: Nest, scenes: Sequence[tuple[str, str, int]], locals: Mapping[str, int]) -> dict[str, object]:
    """Return ``scenes``, ``bodies`` and ``layouts`` of a stage.

    Args:
        scenes: title, path of names and number in ``nest`` of each graph of the stage.
        locals: numbers of the stage's nodes by full name.
    """
    taken = _Taken(nest, locals)
    drawings = []
    for title, path, number in scenes:
        drawing = nest.drawings[number]
        drawings.append(
            {
                "name": title,
                "whole": taken.body(drawing.whole, path),
                "folded": taken.body(drawing.folded, path),
                "note": line(drawing.note),
            }
        )
    return {"scenes": drawings, "bodies": taken.bodies, "layouts": taken.layouts}


class _Taken:
    def __init__(self, nest: Nest, locals: Mapping[str, int]) -> None:
        self.bodies: list[dict[str, object]] = []
        self.layouts: list[dict[str, object]] = []
        self._nest = nest
        self._locals = locals
        self._layouts: dict[int, int] = {}

    def body(self, number: int, path: str) -> int:
        """Return the number of a body among those of the stage, after adding it and all bodies that can be opened in
        it."""
        if number < 0:
            return -1
        start = len(self.bodies)
        queue = [number]
        for taken in queue:  # grows during the loop
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
    """Return a coordinate rounded to one decimal, as an int if that is 0."""
    near = round(value, 1)
    return int(near) if near == int(near) else near
