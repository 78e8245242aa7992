"""Descriptions of the transformations of a compile, and the slot of the limit on them."""

from __future__ import annotations

from collections.abc import Iterable

import torch.fx

from ...record.divergence import Transformation
from ...record.graph import Frame
from .limit import Limit
from .recorder import Draft, Slot
from .source_places import frames

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
    """Return the description of a transformation; ``traces`` are torch's stack traces of its nodes."""
    lines: dict[Frame, None] = {}
    for trace in traces:
        line = own_line(trace)
        if line is not None:
            lines[line] = None
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


def own_line(trace: str | None) -> Frame | None:
    """Return the innermost frame of a stack trace that is not torch's own."""
    own = [frame for frame in frames(trace) if not frame.of_torch]
    return own[-1] if own else None
