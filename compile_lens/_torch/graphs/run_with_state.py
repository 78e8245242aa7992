"""Random operators that are computed again from a checkpoint: the partitioner puts a higher-order operator in the place
of each, that runs it and keeps the state of the generator, or sets it."""

from __future__ import annotations

from typing import Any

import torch.fx

from ..ground.hooks import kept_hook
from .followed import FOLLOWED, Followed
from .fx_values import MADE, ran, target_text
from .provenance import TAG


@kept_hook("torch._functorch.partitioners:functionalize_rng_ops", FOLLOWED)
def _run_with_state(
    followed: Followed, real: Any, joint: Any, forward: Any, backward: Any, *args: Any, **kwargs: Any
) -> Any:
    """What is new stands in for the operator that it runs. Names say nothing: torch numbers new ones from what is free
    in the half, where ``getitem_2`` is another than in the joint graph."""
    before = [(half.graph, [*half.graph.nodes]) for half in (forward, backward)]
    values = {node: node.meta.get("val") for _, nodes in before for node in nodes}
    result = real(joint, forward, backward, *args, **kwargs)
    for graph, nodes in before:
        _tag(graph, nodes, values)
    return result


def _tag(graph: torch.fx.Graph, before: list[torch.fx.Node], values: dict[torch.fx.Node, Any]) -> None:
    left, known = set(graph.nodes), set(before)
    gone = [node for node in before if node not in left]
    made = [node for node in graph.nodes if node not in known and ran(node) is not None]
    if [ran(node) for node in made] != [node.target for node in gone if node.op != "output"]:
        return  # each stands where its operator stood: else it is not known which is which
    for node, old in zip(made, gone):
        node.meta[TAG] = (old.name,)
        saves = target_text(node.target) == "run_and_save_rng_state"
        outs = [user for user in node.users if user not in known]
        states = [user.meta.get("val") for user in outs if user.args[1] == 0]
        node.meta[MADE] = (*states, values[old]) if saves else values[old]
        for user in outs:
            user.meta[TAG] = (old.name,)
