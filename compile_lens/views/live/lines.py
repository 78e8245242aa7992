"""Which line of a graph's text defines which node. A name that is not exactly a node's counts for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from compile_lens.measures.chain import walk
from compile_lens.record.graph import Graph

_NAME = r"[A-Za-z_]\w*"
_CLASS = re.compile(r"( *)class (.+?)\(torch\.nn\.Module\):")
_HEAD = re.compile(r"\s*def forward\(self\b(.*)\)[^()]*:")
_QUOTED = re.compile(r'"[^"]*"' + "|'[^']*'")
_PARAMETER = re.compile(rf"(?:^|,)\s*({_NAME})\s*(?=[,:=]|$)")
_ASSIGNED = re.compile(rf"\s*({_NAME})\s*(?::[^=]*)?=(?!=)")
_UNPACKED = re.compile(rf"\s*((?:{_NAME}\s*,\s*)+(?:{_NAME}\s*)?)=(?!=)")
_DECLARED = re.compile(rf"\s*(?:{_NAME}\s*:\s*;?\s*)+")
_RETURN = re.compile(r"\s*return\b")
_HEADING = re.compile(rf"({_NAME}): ")

_INPUTS = frozenset(("placeholder",))
_OUTPUT = frozenset(("output",))


def defining_lines(graph: Graph, text: str) -> list[tuple[int, str]]:
    """Lines counted from 1, each with the full name of a node that it defines (``"true_graph_0/sin"``).

    A node has at most one line, the first that defines it; a line may define several nodes.
    """
    ops: dict[str, str] = {}
    for path, node in walk(graph):
        ops.setdefault(path + node.name, node.op)
    found: dict[str, int] = {}
    of = _headings if graph.stage in ("loops", "groups") else _fx
    for number, name in of(text, ops):
        found.setdefault(name, number)
    return sorted(((number, name) for name, number in found.items()), key=lambda pair: pair[0])


def _headings(text: str, ops: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Loops and groups: a heading for each, ``op0: Pointwise 1000``."""
    for number, line in enumerate(text.split("\n"), 1):
        heading = _HEADING.match(line)
        if heading and heading[1] in ops and ops[heading[1]] not in _INPUTS:
            yield number, heading[1]


def _fx(text: str, ops: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """FX code: inputs in the signature, a statement for each node, the bodies of operators as inner classes."""
    outputs: dict[str, list[str]] = {}
    for name, op in ops.items():
        if op in _OUTPUT:
            outputs.setdefault(name.rpartition("/")[0], []).append(name)
    scopes: list[tuple[int, str]] = []  # indentation and name of each class around the line
    path = ""
    for number, line in enumerate(text.split("\n"), 1):
        inner = _CLASS.match(line)
        if inner:
            depth = len(inner[1])
            while scopes and scopes[-1][0] >= depth:
                scopes.pop()
            scopes.append((depth, inner[2]))
            path = "".join(f"{name}/" for _, name in scopes[1:])  # the first is the graph itself
        elif line.lstrip().startswith("#"):
            continue
        elif _RETURN.match(line):
            for name in outputs.get(path.removesuffix("/"), ()):
                yield number, name
        else:
            for name, only in _names(line):
                full = path + name
                if full in ops and (only is None or ops[full] in only):
                    yield number, full


def _names(line: str) -> Iterator[tuple[str, frozenset[str] | None]]:
    """The names that a statement defines, and what they must be."""
    bare = _QUOTED.sub("", line)
    head = _HEAD.match(bare)
    unpacked = _UNPACKED.match(bare)
    assigned = _ASSIGNED.match(bare)
    if head:
        yield from ((name, _INPUTS) for name in _PARAMETER.findall(head[1]))
    elif unpacked:
        yield from ((name, _INPUTS) for name in re.findall(_NAME, unpacked[1]))
    elif assigned:
        yield assigned[1], None
    elif _DECLARED.fullmatch(bare):
        yield from ((name, _INPUTS) for name in re.findall(_NAME, bare))
