"""Origins of rewritten nodes: each new node gets the names of the nodes that it replaces.

This covers pattern rewrites, random operators of a checkpoint, constant folding, and equal nodes that torch merges when
the partitioner or freezing rebuilds a graph (``fx_graph_cse``). The node into which another was merged is observed: a
reader of the old node reads it in the new graph.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import torch.fx

from ...record import claims
from ...record.divergence import PASS, Transformation
from ...record.lowering import Pass, Rewrite
from ..ground.hooks import current, hook, in_slot, slot_hook
from ..ground.recorder import Draft
from ..ground.transformations import LIMIT, of_nodes
from . import graph_chain, node_changes, partitioner, patterns
from .fx_values import MADE, ran, target_text
from .graph_chain import CHAIN, GraphChain
from .passes import PASSES
from .provenance import MERGED, TAG, Lineage, modules


@hook("torch._functorch.partitioners:fx_graph_cse", claims.REWRITES, claims.ORIGINS, claims.SAVED)
def partitioner_cse(draft: Draft, real: Any, graph: torch.fx.Graph, *args: Any, **kwargs: Any) -> Any:
    """Record the nodes that the partitioner merges when it rebuilds the joint graph."""
    result = real(graph, *args, **kwargs)
    lineage = graph_chain.joint_of(draft)
    if lineage is not None:
        partitioner.query_default(draft, lineage, graph)
    limit = in_slot(LIMIT)
    if limit is not None and not limit.allows(PASS, lambda: _merging(draft, real, graph, result)):
        return graph
    if lineage is None or not lineage.follows(graph):  # a body's graph
        return result
    where = patterns.place_of(real)
    rewrites = tuple(
        _rewrite(lineage, where, stays, kept, gone) for stays, kept, gone in merges(graph, result)
    )
    sizes = len(graph.nodes), len(result.nodes)
    draft.passes.append(Pass("forward", inspect.unwrap(real).__name__, *sizes, rewrites))
    return result


def _merging(draft: Draft, real: Any, graph: torch.fx.Graph, result: torch.fx.Graph) -> Transformation:
    """Return the description of a merge: of nodes that wrongly compute something else in the new graph, or, if there
    are none, of all merged nodes."""
    new = {node.name: node for node in result.nodes}
    other = [
        node for node in graph.nodes if node.name in new and _constants(node) != _constants(new[node.name])
    ]
    merged = [node for _, kept, gone in merges(graph, result) for node in (kept, *gone)]
    return of_nodes(PASS, inspect.unwrap(real).__name__, other or merged, draft)


def _constants(node: torch.fx.Node) -> Any:
    """Return a text with a node's operator and all arguments that are not nodes."""
    return str(torch.fx.node.map_arg((node.target, node.args, node.kwargs), lambda one: "node"))


@hook("torch._inductor.freezing:fx_graph_cse", claims.REWRITES, claims.ORIGINS)
def freezing_cse(draft: Draft, real: Any, graph: torch.fx.Graph, *args: Any, **kwargs: Any) -> Any:
    """Record the nodes that freezing merges; a copy gets the origins of its node and of all nodes merged with it."""
    result = real(graph, *args, **kwargs)
    lineage = graph_chain.chain_of(draft).current
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
    draft.passes.append(
        Pass("inference", inspect.unwrap(real).__name__, len(graph.nodes), len(result.nodes), rewrites)
    )
    return result


def _fold_constant(
    draft: Draft, real: Any, gm: torch.fx.GraphModule, node: torch.fx.Node, *args: Any, **kwargs: Any
) -> None:
    """Give a folded constant the origins of the node that it replaces and of all nodes from which that is computed,
    which depend on no input."""
    lineage = graph_chain.chain_of(draft).current
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
    hook(f"torch._inductor.{_place}:replace_node_with_constant", claims.ORIGINS)(_fold_constant)


@hook("torch._inductor.freezing:convert_conv_weights_to_channels_last", claims.ORIGINS)
def convert_layouts(draft: Draft, real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> None:
    """Give layout copies the origins of their readers, or of the copied value for a result of the graph. Weights are
    copied to the layout of a convolution, results to the program's layout."""
    lineage = graph_chain.chain_of(draft).current
    before = set(gm.graph.nodes)
    real(gm, *args, **kwargs)
    for node in gm.graph.nodes:
        if lineage is not None and node not in before:
            readers = [user for user in node.users if user.op != "output"]
            node.meta[TAG] = lineage.names_of(readers or node.all_input_nodes)


def clear_tags(gm: torch.fx.GraphModule) -> None:
    """Remove the tags after the graph was recorded as a stage, from which its nodes are followed under their own
    names."""
    for _, module in modules(gm):
        for node in module.graph.nodes:
            node.meta.pop(TAG, None)
            node.meta.pop(MERGED, None)


def _rewrite(
    lineage: Lineage, where: str, stays: torch.fx.Node, kept: torch.fx.Node, gone: list[torch.fx.Node]
) -> Rewrite:
    """Give the remaining node the origins of all nodes that it replaces, and return the rewrite."""
    origins = tuple(dict.fromkeys(name for node in (kept, *gone) for name in lineage.origins(node)[0]))
    stays.meta[MERGED] = origins
    before = [(node.name, node_changes.line(node_changes.state_of(node))) for node in gone]
    after = [(stays.name, node_changes.line(node_changes.state_of(stays)))]
    names = tuple(name for name, _ in before)
    return Rewrite(
        "", names, (stays.name,), node_changes.text(before), node_changes.text(after), origins, where
    )


def merges(
    old: torch.fx.Graph, new: torch.fx.Graph
) -> list[tuple[torch.fx.Node, torch.fx.Node, list[torch.fx.Node]]]:
    """Return the nodes of ``new`` that replace several of ``old``, each with its own original and the merged others.

    ``new`` is a copy of ``old`` with the same names, without some nodes.
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
            for was, now in zip(_inputs(node), _inputs(stays)):
                became.setdefault(was, now)
    order = {stays: place for place, stays in enumerate(new.nodes)}
    return [
        (stays, originals[stays], merged[::-1])
        for stays, merged in sorted(gone.items(), key=lambda item: order[item[0]])
    ]


def _inputs(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the nodes in a node's arguments, with repetitions."""
    nodes: list[torch.fx.Node] = []

    def read(arg: torch.fx.Node) -> torch.fx.Node:
        nodes.append(arg)
        return arg

    torch.fx.node.map_arg((node.args, node.kwargs), read)
    return nodes


@slot_hook("torch._functorch.partitioners:functionalize_rng_ops", CHAIN, claims.ORIGINS)
def _run_with_state(
    chain: GraphChain, real: Any, joint: Any, forward: Any, backward: Any, *args: Any, **kwargs: Any
) -> Any:
    """Tag the operators with which a checkpoint reruns random operators.

    The partitioner replaces each by a higher-order operator that runs it and saves or sets the generator's state. Names
    cannot be used: torch numbers new nodes separately in each half, where ``getitem_2`` differs from that in the joint
    graph.
    """
    before = [(half.graph, [*half.graph.nodes]) for half in (forward, backward)]
    values = {node: node.meta.get("val") for _, nodes in before for node in nodes}
    result = real(joint, forward, backward, *args, **kwargs)
    for graph, nodes in before:
        _tag(graph, nodes, values)
    return result


def _tag(graph: torch.fx.Graph, before: list[torch.fx.Node], values: dict[torch.fx.Node, Any]) -> None:
    left, known = set(graph.nodes), set(before)
    gone = [node for node in before if node not in left]
    runners = [node for node in graph.nodes if node not in known and ran(node) is not None]
    if [ran(node) for node in runners] != [node.target for node in gone if node.op != "output"]:
        return  # they correspond by order only; otherwise the pairs are unknown
    for node, old in zip(runners, gone):
        node.meta[TAG] = (old.name,)
        saves = target_text(node.target) == "run_and_save_rng_state"
        outs = [user for user in node.users if user not in known]
        states = [user.meta.get("val") for user in outs if user.args[1] == 0]
        node.meta[MADE] = (*states, values[old]) if saves else values[old]
        for user in outs:
            user.meta[TAG] = (old.name,)


def _apply_pattern(
    chain: GraphChain, real: Any, entry: Any, match: Any, graph: torch.fx.Graph, *args: Any, **kwargs: Any
) -> Any:
    """Tag every node that the pattern matcher creates with the names of the matched nodes."""
    limit, passes = in_slot(LIMIT), in_slot(PASSES)
    needed = passes is not None and passes.needed
    if limit is not None and not needed and not limit.allows(PASS, lambda: _described(entry, match)):
        return None
    lineage = chain.current
    if lineage is None:
        return real(entry, match, graph, *args, **kwargs)
    names = lineage.names_of(match.nodes)
    before = set(graph.nodes)
    with passes.applying(entry, match, graph) if passes is not None else contextlib.nullcontext():
        result = real(entry, match, graph, *args, **kwargs)
    for node in graph.nodes:
        if node not in before:
            node.meta[TAG] = names
    return result


def _described(entry: Any, match: Any) -> Transformation:
    """Return the description of a pattern that has matched."""
    return of_nodes(PASS, patterns.name(entry), match.nodes, current(), pattern=patterns.name(entry))


for _entry in ("ReplacementPatternEntry", "GraphPatternEntry", "LoweringPatternEntry"):
    slot_hook(f"torch._inductor.pattern_matcher:{_entry}.apply", CHAIN, claims.REWRITES, claims.ORIGINS)(
        _apply_pattern
    )


def _decompose_write(
    chain: GraphChain, real: Any, graph: torch.fx.Graph, node: Any, *args: Any, **kwargs: Any
) -> Any:
    """Tag the nodes into which a write to a view is decomposed with its origins."""
    lineage = chain.current
    if lineage is None:
        return real(graph, node, *args, **kwargs)
    names = lineage.origins(node)[0]
    before = set(graph.nodes)
    result = real(graph, node, *args, **kwargs)
    for new in graph.nodes:
        if new not in before and names:
            new.meta[TAG] = names
    return result


for _way in ("mutating", "functional"):
    slot_hook(f"torch._inductor.fx_passes.reinplace:_decompose_scatter_{_way}", CHAIN, claims.ORIGINS)(
        _decompose_write
    )


@slot_hook("torch._inductor.fx_passes.pre_grad:sink_cat_after_pointwise", CHAIN, claims.ORIGINS)
def _sink_cat(chain: GraphChain, real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Tag the operators on the parts of a ``cat`` with the operator on the whole that they replace."""
    lineage = chain.current
    if lineage is None:
        return real(gm, *args, **kwargs)
    before = set(gm.graph.nodes)
    readers = {node.name: _reader(node) for node in before if node.target is torch.cat}
    names = {cat: lineage.names_of([reader]) for cat, reader in readers.items() if reader is not None}
    result = real(gm, *args, **kwargs)
    for cat in (node for node in gm.graph.nodes if node not in before and node.target is torch.cat):
        for whole in lineage.origins(cat)[0]:
            for part in cat.all_input_nodes if whole in names else ():
                if part not in before:
                    part.meta[TAG] = names[whole]
    return result


def _reader(node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the only reader of a node, behind views; None if there are several or none."""
    while len(node.users) == 1:
        (node,) = node.users
        if node.target != "view":
            return node
    return None
