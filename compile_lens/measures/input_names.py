"""Names of a graph's inputs: parameters and buffers as in ``named_parameters()``, others as in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph, Node
from compile_lens.record.messages import without_stack_names

from .memo import memoized

PARAMETER, BUFFER, INPUT = "parameter", "buffer", "input"
"""Values of ``InputName.kind``."""

_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9]+")
_MEMBER = re.compile(r"\._(?P<table>modules|parameters|buffers)\[(['\"])(?P<name>[^'\"]*)\2\]")
_ROOT = re.compile(r"^[LG]\[(['\"])([^'\"]*)\1\]")
OWN = ("self", "fn")
"""Names of the module itself in guards: in its ``forward``, or in torch's wrapper of it."""


@dataclass(frozen=True)
class InputName:
    """Name of one input of a graph.

    Attributes:
        name: the qualified name of a parameter or buffer, with the module if the program passes several modules; for
            other inputs the Python expression (``x``, ``cache.keys``).
        kind: ``parameter``, ``buffer`` or ``input``.
    """

    name: str
    kind: str = INPUT


def sources(compilation: Compilation) -> dict[str, str]:
    """Return the source of each input of a compilation, ``L['x']``, by Dynamo's name, leaving out ambiguous names."""
    by_name: dict[str, dict[str, None]] = {}
    for guard in compilation.guards:
        by_name.setdefault(_NOT_A_NAME.sub("_", guard.source), {})[guard.source] = None
    return {name: next(iter(every)) for name, every in by_name.items() if len(every) == 1}


def readable(source: str) -> str:
    """Return a guard's source as Python: ``L['self']._modules['fc']._parameters['weight']`` is ``fc.weight``."""
    path = _IMPORTED.sub("", _MEMBER.sub(r".\g<name>", source))
    root = _ROOT.match(path)
    if root is None:
        return path
    rest = path[root.end() :]
    return rest[1:] if root[2] in OWN and rest.startswith(".") else _root_name(root[2]) + rest


def _root_name(name: str) -> str:
    return without_stack_names(name).removeprefix("___")


_IMPORTED = re.compile(r"^G\[(['\"])__import_\w+\1\]\.")
"""Dynamo's prefix for a global of another module than that of the compiled function."""


class InputNames:
    """Names of the inputs of the graphs of a capture."""

    def __init__(self, capture: Record) -> None:
        self._graphs = {(c.id, g.key): g for c in capture.compilations for g in c.graphs.values()}
        self._nodes = {key: {node.name: node for node in graph.nodes} for key, graph in self._graphs.items()}
        self._parameters = {c.id: dict(c.parameters) for c in capture.compilations}
        self._sources = {c.id: sources(c) for c in capture.compilations}
        named = {source for known in self._sources.values() for source in known.values()}
        self._roots = {_root(source) for source in named if _tensor_kind(source) != INPUT}

    def of(self, compilation: str, stage: str, name: str) -> InputName | None:
        """Return the name of a stage's input; ``None`` if the node is no input or cannot be traced to one."""
        node = self._nodes.get((compilation, stage), {}).get(name)
        while node is not None:
            graph = self._graphs[compilation, stage]
            if node.op not in ("placeholder", "get_attr"):
                return None
            if node.target in self._sources[compilation]:
                return self._named(self._sources[compilation][node.target], self._parameters[compilation])
            before = self._nodes.get((compilation, graph.before), {})
            origins = [before[origin] for origin in node.origins if origin in before]
            if not origins:
                return _unguarded(node, graph)
            node, stage = origins[0], graph.before
        return None

    def _named(self, source: str, parameters: Mapping[str, str]) -> InputName:
        kind = _tensor_kind(source)
        if kind == INPUT:
            root = next((one for one in parameters if source.startswith(one)), "")
            return InputName(parameters[root] + source[len(root) :] if root else readable(source))
        if len(self._roots) == 1:
            first = _MEMBER.search(source)
            assert first is not None
            return InputName(_MEMBER.sub(r".\g<name>", source[first.start() :]).lstrip("."), kind)
        return InputName(readable(source), kind)


def _tensor_kind(source: str) -> str:
    """Return the kind of a source's tensor, from the module table in its last part."""
    tables = [match["table"] for match in _MEMBER.finditer(source) if match.end() == len(source)]
    return {"parameters": PARAMETER, "buffers": BUFFER}.get(tables[0], INPUT) if tables else INPUT


def _root(source: str) -> str:
    first = _MEMBER.search(source)
    return source[: first.start()] if first is not None else source


def _unguarded(node: Node, graph: Graph) -> InputName:
    """Return the name of an input without a guard: its target, or its number in the first graph that has it."""
    if node.op == "get_attr":
        return InputName(node.target)
    if node.target.startswith("L_"):
        return InputName(node.target.removeprefix("L_").strip("_"))
    placeholders = [one.name for one in graph.nodes if one.op == "placeholder"]
    return InputName(f"input {placeholders.index(node.name) + 1}")


@memoized
def input_names(capture: Record) -> InputNames:
    """Return the names of the inputs of a capture's graphs."""
    return InputNames(capture)
