"""Transformations of a compile that it can leave out one by one: decompositions, passes, fusions, lowerings.

A search for the one that changes a result compiles the same call again and again, each time with the first so many of
one kind. Torch does the same work in the same order each time, so that their numbers are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import torch.fx

from ...record.divergence import Transformation
from ...record.graph import Frame
from .recorder import Draft, Slot
from .source_places import frames

Describe = Callable[[], Transformation]


class Limit:
    """The number of transformations of one ``kind`` that a compile applies: the first ``most``, and none after.

    Without a kind it applies all of them.

    Attributes:
        counts: by kind, how many there were, applied or not.
        last: by kind, the last one that was applied; of kinds that are not limited, the last of all.
    """

    def __init__(self, kind: str = "", most: int = 0) -> None:
        self.kind, self.most = kind, most
        self.counts: Counter[str] = Counter()
        self.last: dict[str, Transformation] = {}

    def allows(self, kind: str, describe: Describe) -> bool:
        """Count one transformation; return True if it is to be applied."""
        self.counts[kind] += 1
        if kind != self.kind:
            if not self.kind:
                self.last[kind] = describe()
            return True
        if self.counts[kind] == self.most:
            self.last[kind] = describe()
        return self.counts[kind] <= self.most


LIMIT: Slot[Limit] = Slot()
"""The limit of the compile in progress; empty in an ordinary capture."""


def of_nodes(
    kind: str, name: str, nodes: Iterable[torch.fx.Node], draft: Draft | None, pattern: str = ""
) -> Transformation:
    """Return the description of a transformation of nodes of a graph."""
    ordered = list(dict.fromkeys(nodes))
    traces = [node.meta.get("stack_trace") for node in ordered]
    operators = [str(node.target) for node in ordered if node.op.startswith("call_")]
    return described(kind, name, traces, [node.name for node in ordered], operators, draft, pattern)


def described(
    kind: str,
    name: str,
    traces: Iterable[str | None],
    nodes: Iterable[str],
    operators: Iterable[str],
    draft: Draft | None,
    pattern: str = "",
) -> Transformation:
    """Return the description of a transformation; ``traces`` are torch's stack traces of what it takes."""
    lines: dict[Frame, None] = {}
    for trace in traces:
        own = [f for f in frames(trace) if not f.of_torch]
        if own:
            lines[own[-1]] = None
    return Transformation(
        kind,
        name,
        "" if draft is None else draft.id,
        "" if draft is None else draft.phase,
        tuple(nodes),
        tuple(sorted(lines, key=lambda f: (f.file, f.line, f.column or 0))),
        tuple(dict.fromkeys(operators)),
        pattern,
    )
