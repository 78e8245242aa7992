"""What a link leads from and to: the address of a node, a kernel, a line of one, a Python line."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.record.graph import Graph, Node

Address = tuple[str, str, str]
"""Where something stands: ``(compile id, stage key, node name)``.

A Python line is ``("", "python", "file:line")``, a kernel ``(compile id, "forward.code", kernel name)``, one
of its lines ``(compile id, "forward.code", "kernel name:7")``, counted from 1 in its own source, and a node of
a subgraph ``(compile id, stage key, "true_graph_0/sin")``.
"""

PYTHON = "python"
"""The stage key of Python lines."""


def python(file: str, line: int) -> Address:
    """The address of a Python line."""
    return ("", PYTHON, f"{file}:{line}")


def walk(graph: Graph, path: str = "") -> Iterator[tuple[str, Node]]:
    """The nodes of a graph and of its subgraphs, each with the path of its subgraph (``"true_graph_0/"``)."""
    for node in graph.nodes:
        yield path, node
    for name, body in graph.subgraphs:
        yield from walk(body, f"{path}{name}/")
