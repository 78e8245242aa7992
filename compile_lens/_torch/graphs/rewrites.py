"""What a rewrite makes stands in for what it replaces: each new node keeps the names of the nodes that it came from."""

from __future__ import annotations

import contextlib
from typing import Any

import torch.fx

from ..ground.hooks import kept, kept_hook
from .followed import FOLLOWED, Followed
from .passes import PASSES
from .provenance import TAG


def _apply(
    followed: Followed, real: Any, entry: Any, match: Any, graph: torch.fx.Graph, *args: Any, **kwargs: Any
) -> Any:
    """The pattern matcher rewrites a match: every node it makes stands in for the nodes that it matched."""
    lineage = followed.now
    if lineage is None:
        return real(entry, match, graph, *args, **kwargs)
    names = lineage.names_of(match.nodes)
    before = set(graph.nodes)
    passes = kept(PASSES)
    with passes.applying(entry, match, graph) if passes is not None else contextlib.nullcontext():
        result = real(entry, match, graph, *args, **kwargs)
    for node in graph.nodes:
        if node not in before:
            node.meta[TAG] = names
    return result


for _entry in ("ReplacementPatternEntry", "GraphPatternEntry", "LoweringPatternEntry"):
    kept_hook(f"torch._inductor.pattern_matcher:{_entry}.apply", FOLLOWED)(_apply)


def _written_out(
    followed: Followed, real: Any, graph: torch.fx.Graph, node: Any, *args: Any, **kwargs: Any
) -> Any:
    """A write into a view is spelt out: the view and the copy stand in for the write."""
    lineage = followed.now
    if lineage is None:
        return real(graph, node, *args, **kwargs)
    names = lineage.origins(node)[0]
    before = set(graph.nodes)
    result = real(graph, node, *args, **kwargs)
    for made in graph.nodes:
        if made not in before and names:
            made.meta[TAG] = names
    return result


for _way in ("mutating", "functional"):
    kept_hook(f"torch._inductor.fx_passes.reinplace:_decompose_scatter_{_way}", FOLLOWED)(_written_out)
