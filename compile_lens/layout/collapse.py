"""Collapsing of large graphs: runs of nodes of one ``nn.Module``, else runs of neighbours, become one box.

A box always contains a contiguous part of the execution order (and the inputs that it uses first), so boxes form no
cycle, and the forward and backward part of one module stay two boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.record.graph import Node

Group = tuple[str, tuple[Node, ...]]
"""A future box: its label and its nodes in order. A group of one is just that node."""


def collapse(nodes: Sequence[Node], limit: int) -> tuple[list[Group], str]:
    """Group ``nodes`` into at most ``limit`` boxes (of one node each if possible); return these and a note on how."""
    singles: list[Group] = [(n.name, (n,)) for n in nodes]
    if len(nodes) <= limit:
        return singles, ""
    deepest = max((n.module.count(".") + 1 for n in nodes if n.module), default=0)
    for depth in range(deepest, 0, -1):
        groups = _by_module(nodes, depth)
        if len(groups) <= limit:
            return groups, _note(nodes, groups, f"by module (the first {depth} {_parts(depth)} of the path)")
    workers: list[Group] = [(n.name, (n,)) for n in separate(nodes)[0]]
    start = _by_module(nodes, 1) if deepest else _with_inputs(nodes, workers)
    how = "by module and neighbourhood" if deepest else "in runs of neighbours, as there are no modules"
    groups = _chunks(start, limit)
    return groups, _note(nodes, groups, how)


def _parts(depth: int) -> str:
    return "part" if depth == 1 else "parts"


def _note(nodes: Sequence[Node], groups: list[Group], how: str) -> str:
    folded = sum(len(members) for _, members in groups if len(members) > 1)
    holders = sum(1 for _, members in groups if len(members) > 1)
    return (
        f"{len(nodes)} nodes are too many to draw: {folded} of them are collapsed {how} into {holders} "
        f"{'box' if holders == 1 else 'boxes'}, and what flows inside a box is not shown"
    )


def _by_module(nodes: Sequence[Node], depth: int) -> list[Group]:
    runs: list[tuple[str, list[Node]]] = []
    for node in separate(nodes)[0]:
        path = ".".join(node.module.split(".")[:depth])
        if path and runs and runs[-1][0] == path:
            runs[-1][1].append(node)
        else:
            runs.append((path, [node]))
    groups = [(path or members[0].name, tuple(members)) for path, members in runs]
    return _with_inputs(nodes, groups)


def separate(nodes: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Return the nodes that compute, and the inputs and constants, which read nothing and can be placed anywhere."""
    sources = ("placeholder", "get_attr")
    return [n for n in nodes if n.op not in sources], [n for n in nodes if n.op in sources]


def _with_inputs(nodes: Sequence[Node], groups: list[Group]) -> list[Group]:
    """Return ``groups`` with each input or constant in the box that first uses it, or alone before a single node."""
    placed = {n.name for _, members in groups for n in members}
    unplaced = [n for n in separate(nodes)[1] if n.name not in placed]
    user: dict[str, int] = {}
    for index, (_, members) in enumerate(groups):
        for node in members:
            for name in node.inputs:
                user.setdefault(name, index)
    joined: dict[int, list[Node]] = {}
    alone: dict[int, list[Node]] = {}
    for node in unplaced:
        index = user.get(node.name, 0)
        several = index < len(groups) and len(groups[index][1]) > 1 and node.name in user
        (joined if several else alone).setdefault(index, []).append(node)
    result: list[Group] = []
    for index, (label, members) in enumerate(groups):
        result += [(n.name, (n,)) for n in alone.get(index, [])]
        result.append((label, (*joined.get(index, []), *members)))
    if not groups:
        result += [(n.name, (n,)) for n in alone.get(0, [])]
    return result


def _chunks(groups: list[Group], limit: int) -> list[Group]:
    """Merge neighbouring groups, as evenly as whole groups allow, until at most ``limit`` are left."""
    total = sum(len(members) for _, members in groups)
    result: list[Group] = []
    labels: list[str] = []
    current: list[Node] = []
    done = 0
    for label, members in groups:
        labels.append(label)
        current += members
        done += len(members)
        if done * limit >= (len(result) + 1) * total:
            result.append((_span_label(labels), tuple(current)))
            labels, current = [], []
    if current:
        result.append((_span_label(labels), tuple(current)))
    return result


def _span_label(labels: list[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} … {labels[-1]}"
