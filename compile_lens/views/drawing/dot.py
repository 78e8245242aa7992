"""Conversion of a graph to DOT, Graphviz's language, for users' own drawing and processing tools.

Node ids are generated (``n0``, ``n1``, …); names and other texts of a user's program are in quoted attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compile_lens.errors import LensError
from compile_lens.layout.text import clean, outputs_text, shorten
from compile_lens.record.graph import Graph, Node

from ..words.palette import COLOURS, LIGHT, known_kind

if TYPE_CHECKING:
    import graphviz
    import pydot

_GRAPH = {"fontname": "monospace", "rankdir": "TB"}
_NODE = {
    "shape": "box",
    "style": "rounded,filled",
    "fontname": "monospace",
    "fontsize": "11",
    "fontcolor": LIGHT.ink,
}
_EDGE = {"fontname": "monospace", "fontsize": "9", "color": LIGHT.edge, "fontcolor": LIGHT.label}

_PIECE = 3000
"""Maximum characters in one quoted string: Graphviz reads 16,384 bytes, and one character may take five."""


def dot_text(graph: Graph) -> str:
    """Return ``graph`` as DOT text; the subgraphs of higher-order operators are clusters.

    Long labels are shortened in the middle; ``tooltip`` has the full name and target.
    """
    root = _Cluster("", graph.key, graph, 0)
    lines = ["digraph {", f"    graph [label={quote(graph.key)} {_attributes(_GRAPH)}]"]
    lines += [f"    node [{_attributes(_NODE)}]", f"    edge [{_attributes(_EDGE)}]"]
    lines += [*_body(root, "    "), "}"]
    return "\n".join(lines) + "\n"


def to_dot(graph: Graph) -> graphviz.Source:
    """Return ``graph`` as a ``graphviz.Source``: text only; rendering it needs Graphviz's ``dot``.

    Raises:
        LensError: the Python package graphviz is not installed.
    """
    # Imported here, since records can be read, measured and drawn without it.
    try:
        import graphviz
    except ImportError as error:
        raise LensError(
            "to_dot needs the Python package graphviz, which is not installed: pip install graphviz"
        ) from error
    return graphviz.Source(dot_text(graph))


def to_pydot(graph: Graph) -> pydot.Dot:
    """Return ``graph`` as a ``pydot.Dot``, with the same ids, attributes and clusters as ``dot_text``.

    Raises:
        LensError: pydot is not installed.
    """
    try:
        import pydot
    except ImportError as error:
        raise LensError("to_pydot needs pydot, which is not installed: pip install pydot") from error
    # Built piece by piece, so that pydot's parser need not read arbitrary names.
    root = _Cluster("", graph.key, graph, 0)
    dot = pydot.Dot("G", graph_type="digraph", label=quote(graph.key), **_quoted(_GRAPH))
    dot.set_node_defaults(**_quoted(_NODE))
    dot.set_edge_defaults(**_quoted(_EDGE))
    pending = [(root, dot)]
    while pending:
        cluster, into = pending.pop()
        for name, attributes in cluster.nodes():
            into.add_node(pydot.Node(name, **_quoted(attributes)))
        for source, target, label in cluster.edges():
            into.add_edge(pydot.Edge(source, target, **_quoted({"label": label} if label else {})))
        for inner in cluster.clusters():
            part = pydot.Cluster(inner.id, label=quote(inner.label))
            into.add_subgraph(part)
            pending.append((inner, part))
    return dot


def quote(text: str) -> str:
    """Return ``text`` as a quoted DOT string that a label shows unchanged.

    Backslashes are doubled, since ``\\N`` and others have a meaning in labels, and ``&`` becomes an entity, since
    labels interpret HTML's. Line breaks become ``\\n``. Long texts become ``"…" + "…"``.
    """
    text = clean(text).replace("\r\n", "\n").replace("\r", "\n")
    pieces = [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)] or [""]
    return " + ".join(f'"{_escaped(piece)}"' for piece in pieces)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@dataclass(frozen=True)
class _Cluster:
    """A graph whose node ids start at ``first``; ``id`` is empty for the outermost."""

    id: str
    label: str
    graph: Graph
    first: int

    def nodes(self) -> Iterator[tuple[str, dict[str, str]]]:
        for index, node in enumerate(self.graph.nodes):
            yield f"n{self.first + index}", _look(node, node.name in self.graph.saved)

    def edges(self) -> Iterator[tuple[str, str, str]]:
        """Yield source and target ids, and a label with the types of the passed values."""
        ids = {node.name: self.first + index for index, node in enumerate(self.graph.nodes)}
        by_name = {node.name: node for node in self.graph.nodes}
        for index, node in enumerate(self.graph.nodes):
            for name in node.inputs:
                if name in ids:
                    yield f"n{ids[name]}", f"n{self.first + index}", outputs_text(by_name[name])

    def clusters(self) -> Iterator[_Cluster]:
        first = self.first + max(1, len(self.graph.nodes))
        for name, inner in self.graph.subgraphs:
            yield _Cluster(f"s{first}", name, inner, first)
            first += _size(inner)


def _size(graph: Graph) -> int:
    """Return the number of ids that a graph and its subgraphs take; an empty one takes one for its cluster."""
    return max(1, len(graph.nodes)) + sum(_size(inner) for _, inner in graph.subgraphs)


def _look(node: Node, saved: bool) -> dict[str, str]:
    colour = COLOURS[known_kind(node.kind)]
    lines = [shorten(node.name, 60)]
    if node.target and node.target != node.name:
        lines.append(shorten(node.target, 60))
    if node.module:
        lines.append(shorten(node.module, 60))
    look = {
        "label": "\n".join(lines),
        "tooltip": f"{node.name}\n{node.op} {node.target}",
        "fillcolor": colour.fill,
        "color": colour.line,
    }
    return {**look, "color": LIGHT.saved, "penwidth": "2"} if saved else look


def _body(cluster: _Cluster, indent: str) -> Iterator[str]:
    for name, attributes in cluster.nodes():
        yield f"{indent}{name} [{_attributes(attributes)}]"
    for source, target, label in cluster.edges():
        yield f"{indent}{source} -> {target}" + (f" [label={quote(label)}]" if label else "")
    for inner in cluster.clusters():
        yield f"{indent}subgraph cluster_{inner.id} {{"
        yield f"{indent}    label={quote(inner.label)}"
        yield from _body(inner, indent + "    ")
        yield f"{indent}}}"


def _quoted(attributes: dict[str, str]) -> dict[str, str]:
    return {key: quote(value) for key, value in attributes.items()}


def _attributes(attributes: dict[str, str]) -> str:
    return " ".join(f"{key}={quote(value)}" for key, value in attributes.items())
