"""Changes that Inductor's passes make to a graph: the pass, the pattern, the nodes before and after."""

from __future__ import annotations

from dataclasses import dataclass

UNNAMED = "between named passes"
"""Name of a ``Pass`` for what changed where no pass of torch's that has a name was running."""

MERGING = "fx_graph_cse"
"""Name of the ``Pass`` in which AOTAutograd's partitioner makes calls one that compute the same
(``torch/_functorch/partitioners.py``)."""


@dataclass(frozen=True)
class Rewrite:
    """One place where a pass changed the graph.

    Attributes:
        pattern: the pattern that matched, by its own name or as text; ``""`` where the pass uses none.
        before: names of the nodes that were matched, removed or changed, as they were called then.
        after: names of the nodes that stand in their place: new ones, changed ones, and those that were there
            already (``x`` for ``x + 0``); empty if the nodes were only removed.
        before_text, after_text: the same nodes as text, one line each (``%name = op(args)``); a last line
            says how many were left out of a long one.
        origins: names of the nodes of the recorded stage before that those of ``before`` came from.
        where: the place in torch of the pattern or the pass (``torch/…/file.py:12 in name``).
    """

    pattern: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before_text: str = ""
    after_text: str = ""
    origins: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Pass:
    """One pass over a graph, in the order in which they ran.

    Attributes:
        stage: the stage that the passes lead to: ``"pre_grad"``, ``"forward"`` (for those over the joint
            graph; ``"inference"`` without a backward) or ``"<phase>.post_grad"``.
        name: the pass, by torch's own name; ``UNNAMED`` for changes that no named pass made.
        nodes_before, nodes_after: how many nodes the graph had.
        rewrites: what it changed, in order; empty if it looked and changed nothing.
        near_misses: of patterns that came close: which, and what did not fit, seen in the graph that the pass left.
        nodes_reordered: how many nodes have another place in the order of execution.
        body: the body of a higher-order operator that the pass ran over, ``""`` for the graph itself.
    """

    stage: str
    name: str
    nodes_before: int
    nodes_after: int
    rewrites: tuple[Rewrite, ...] = ()
    near_misses: tuple[str, ...] = ()
    nodes_reordered: int = 0
    body: str = ""
