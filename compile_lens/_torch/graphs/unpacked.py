"""Tensors that a program unpacks (``q, k, v = t``, ``for row in t``): Dynamo writes one index after the other.

Eager PyTorch asks for the rows in one ``unbind``, whose derivative is one ``stack``; each index has a derivative of its
own. That it was one is taken from the line: only where it can be nothing else.
"""

from __future__ import annotations

import operator
import re
import sys
from typing import Any

import torch.fx

from ...record.graph import Frame
from ..ground.traces import frames

_NAMES = re.compile(r"\(?[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)+\s*\)?\s*=(?!=)")
"""``q, k, v =`` at the beginning of a line."""
_LOOP = re.compile(r"for\s+[\w\s,()]+\s+in\s+(?:enumerate\()?[A-Za-z_][\w.]*\)?\s*:\s*(?:#.*)?$")
"""``for row in rows:``"""


def unpacked(graph: torch.fx.Graph) -> dict[torch.fx.Node, int]:
    """The nodes that are a row of a tensor that was unpacked, each with how many rows the tensor must have for it."""
    if sys.version_info < (3, 11):
        return {}  # its traces do not tell one expression of a line from another
    runs: dict[tuple[torch.fx.Node, Frame], list[list[torch.fx.Node]]] = {}
    broken = set()
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        source, index = node.args
        at = frames(node.meta.get("stack_trace"))
        if type(index) is not int or not isinstance(source, torch.fx.Node) or not at or not _unpacks(at[-1]):
            continue
        known = runs.setdefault((source, at[-1]), [])
        if index == 0:
            known.append([node])
        elif known and index == len(known[-1]):
            known[-1].append(node)
        else:
            broken.add((source, at[-1]))
    whole = (run for key, found in runs.items() if key not in broken for run in found)
    return {node: len(run) for run in whole for node in run}


def _unpacks(frame: Frame) -> bool:
    """Whether what stands at the beginning of a line takes a tensor apart: an index that is written out begins later,
    or is at the beginning and no target."""
    text = frame.text.strip()
    begins = frame.column is None or (frame.call != "" and text.startswith(frame.call))
    return bool(_LOOP.match(text)) or (begins and bool(_NAMES.match(text)))


class Rows:
    """The rows of the tensors that a graph unpacks, each tensor unbound once."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self._known = unpacked(graph)
        self._rows: dict[tuple[torch.fx.Node, int], tuple[torch.Tensor, ...]] = {}

    def __contains__(self, node: torch.fx.Node) -> bool:
        return node in self._known

    def of(self, node: torch.fx.Node, source: Any) -> torch.Tensor | None:
        """The row that a node takes of a tensor; ``None`` where it is no row of one that was unpacked."""
        count = self._known.get(node)
        if count is None or not isinstance(source, torch.Tensor) or source.dim() == 0 or len(source) != count:
            return None
        at, index = node.args
        if index == 0:
            self._rows[at, count] = source.unbind(0)
        return self._rows[at, count][index]
