"""Equal nodes that torch merges into one when it makes a graph anew, as the partitioner does (``fx_graph_cse``).

Into which one a node was merged is seen, not worked out: what read it reads the other in the new graph.
"""

from __future__ import annotations

from typing import Any

import torch.fx

from ...record.rewrite import Pass, Rewrite
from ..ground.hooks import hook
from ..ground.recorder import Draft
from . import changes, followed, patterns, saved_for_backward
from .provenance import MERGED, TAG, Lineage, modules


@hook("torch._functorch.partitioners:fx_graph_cse")
def partitioners(draft: Draft, real: Any, graph: torch.fx.Graph, *args: Any, **kwargs: Any) -> Any:
    """The partitioner makes the joint graph anew, with one node for all that compute the same."""
    result = real(graph, *args, **kwargs)
    lineage = followed.joint(draft)
    if lineage is not None:
        saved_for_backward.let_go(draft, lineage, graph)
    if lineage is None or not lineage.follows(graph):  # the graph of a body
        return result
    where = patterns.place_of(real)
    rewrites = tuple(
        _rewrite(lineage, where, stays, kept, gone) for stays, kept, gone in merges(graph, result)
    )
    sizes = len(graph.nodes), len(result.nodes)
    draft.passes.append(Pass("forward", str(real.__name__), *sizes, rewrites))
    return result


def settled(gm: torch.fx.GraphModule) -> None:
    """The graph is a stage of the record: from here on its nodes are followed under their own names."""
    for _, module in modules(gm):
        for node in module.graph.nodes:
            node.meta.pop(TAG, None)
            node.meta.pop(MERGED, None)


def _rewrite(
    lineage: Lineage, where: str, stays: torch.fx.Node, kept: torch.fx.Node, gone: list[torch.fx.Node]
) -> Rewrite:
    """Give the node that stays the origins of all that it stands for, and tell of it."""
    origins = tuple(dict.fromkeys(name for node in (kept, *gone) for name in lineage.origins(node)[0]))
    stays.meta[MERGED] = origins
    before = [(node.name, changes.line(changes.form(node))) for node in gone]
    after = [(stays.name, changes.line(changes.form(stays)))]
    names = tuple(name for name, _ in before)
    return Rewrite("", names, (stays.name,), changes.text(before), changes.text(after), origins, where)


def merges(
    old: torch.fx.Graph, new: torch.fx.Graph
) -> list[tuple[torch.fx.Node, torch.fx.Node, list[torch.fx.Node]]]:
    """Nodes of ``new`` that stand for several of ``old``, each with its own original and with the others.

    ``new`` is a copy of ``old``, its nodes under their own names, in which some nodes were left out.
    """
    if len(new.nodes) == len(old.nodes):
        return []
    copies = {node.name: node for node in new.nodes}
    became = {node: copies[node.name] for node in old.nodes if node.name in copies}
    originals = {copy: node for node, copy in became.items()}
    without = {node for node in old.nodes if node not in became}
    gone: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for node in reversed(old.nodes):
        stays = became.get(node)
        if stays is None:  # nothing read it
            continue
        if node.name not in copies:
            gone.setdefault(stays, []).append(node)
        if not without.isdisjoint(node._input_nodes):
            for was, now in zip(_read(node), _read(stays)):
                became.setdefault(was, now)
    order = {stays: place for place, stays in enumerate(new.nodes)}
    return [
        (stays, originals[stays], found[::-1])
        for stays, found in sorted(gone.items(), key=lambda item: order[item[0]])
    ]


def _read(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes in its arguments, as often as they stand there."""
    found: list[torch.fx.Node] = []

    def read(arg: torch.fx.Node) -> torch.fx.Node:
        found.append(arg)
        return arg

    torch.fx.node.map_arg((node.args, node.kwargs), read)
    return found
