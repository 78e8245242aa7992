"""Equal nodes that torch merges into one when it makes a graph anew, as the partitioner and freezing do
(``fx_graph_cse``).

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


@hook("torch._inductor.freezing:fx_graph_cse")
def freezings(draft: Draft, real: Any, graph: torch.fx.Graph, *args: Any, **kwargs: Any) -> Any:
    """Freezing makes the graph anew: a copy keeps the origins of its node and of all that were merged with it."""
    result = real(graph, *args, **kwargs)
    lineage = followed.of(draft).now
    if lineage is None or not lineage.follows(graph):
        return result
    copies = {node.name: node for node in result.nodes}
    for node in graph.nodes:
        names = lineage.origins(node)[0]
        if names and node.name in copies:
            copies[node.name].meta[MERGED] = names
    where = patterns.place_of(real)
    rewrites = tuple(
        _rewrite(lineage, where, stays, kept, gone) for stays, kept, gone in merges(graph, result)
    )
    draft.passes.append(Pass("inference", str(real.__name__), len(graph.nodes), len(result.nodes), rewrites))
    return result


def _folded(
    draft: Draft, real: Any, gm: torch.fx.GraphModule, node: torch.fx.Node, *args: Any, **kwargs: Any
) -> None:
    """What a node computes does not depend on an input: a constant takes its place, and that of all it was made of."""
    lineage = followed.of(draft).now
    before = node.prev
    names: tuple[str, ...] = ()
    if lineage is not None:
        made_of = [node]
        for one in made_of:
            made_of += [n for n in one.all_input_nodes if n.name not in lineage.inputs and n not in made_of]
        names = lineage.names_of(made_of[::-1])
    real(gm, node, *args, **kwargs)
    if names:
        before.next.meta[MERGED] = names


for _place in ("freezing", "constant_folding"):
    hook(f"torch._inductor.{_place}:replace_node_with_constant")(_folded)


@hook("torch._inductor.freezing:convert_conv_weights_to_channels_last")
def laid_out(draft: Draft, real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> None:
    """Weights are copied into the layout that a convolution wants, and results into that of the program: a copy is
    there for what reads it, or for what the graph returns."""
    lineage = followed.of(draft).now
    before = set(gm.graph.nodes)
    real(gm, *args, **kwargs)
    for node in gm.graph.nodes:
        if lineage is not None and node not in before:
            readers = [user for user in node.users if user.op != "output"]
            node.meta[TAG] = lineage.names_of(readers or node.all_input_nodes)


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
