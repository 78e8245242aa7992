"""Dead ends of the chain on its way down: nodes that became nothing in the next stage, and why.

The reason comes from the record: a pass removed the node, nothing reads its result, or the next stage was not observed.
A node without such a reason is *silent*: the record does not say what became of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from compile_lens.measures.address import PYTHON, Address, function, walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import Code
from compile_lens.record.lowering import UNNAMED
from compile_lens.record.missing import AbsentStage

SILENT = "the record does not say what became of it"
"""Reason for a node without a recorded one."""

NO_WORK = {
    "input": "an input: it computes nothing",
    "output": "the result of the graph: it computes nothing",
    "constant": "a constant: it computes nothing",
    "symbol": "a size: the code around the kernels computes it",
    "view": "a view: it moves no data",
    "allocation": "it only sets memory aside",
    "nop": "a nop: it runs nothing",
}
"""Reasons why a node that does no work needs no counterpart in the next stage, by kind."""


MAX_NAMES = 4
"""Most node names in a reason."""


NOT_LEFT = {
    "dynamo": "no operator that was traced from it is left",
    "pre_grad": "no operator that was traced from it is left",
    "post_grad": "Inductor reports no loop that computes it",
    "groups": "no kernel or call in the code is linked to it",
}
"""Reason for a node that has readers with counterparts but none itself, by stage."""


class DeadEnd(NamedTuple):
    """Reason why a chain ends: ``words`` shared by many nodes, and ``more`` about this one (may be ``""``)."""

    words: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.words}: {self.more}" if self.more else self.words


@dataclass
class _Stage:
    """One graph: its nodes and their readers, by full name."""

    graph: Graph
    nodes: dict[str, Node] = field(default_factory=dict)
    readers: dict[str, list[str]] = field(default_factory=dict)
    rewritten: dict[str, DeadEnd] = field(default_factory=dict)
    """Nodes that a pass reported as rewritten."""


class DeadEnds:
    """Dead ends of the chains of one capture. ``down`` gives the addresses that a node directly became."""

    def __init__(self, capture: Record, down: Mapping[Address, Collection[Address]]) -> None:
        self._compilations = {c.id: c for c in capture.compilations}
        self._down = down
        self._stages: dict[tuple[str, str], _Stage] = {}

    def why(self, address: Address) -> DeadEnd:
        """Return why nothing came of a Python line or a node."""
        cid, key, name = address
        if key == PYTHON:
            return DeadEnd("no tensor operation of the capture is on this line")
        return self._node(cid, self._stage(cid, key), name)

    def _node(self, cid: str, stage: _Stage, name: str) -> DeadEnd:
        node = stage.nodes[name]
        if missing_reason := self._missing_stage(cid, stage.graph, node):
            return DeadEnd("there is no stage after it", missing_reason)
        if stage.graph.stage == "groups" and node.target in ("Conditional", "Switch", "WhileLoop"):
            return DeadEnd("control flow: the code around the kernels does it")
        if name in stage.rewritten:
            return stage.rewritten[name]
        if _copies_to_itself(node):
            return DeadEnd("it writes a value to where it already is")
        if _writes(node):
            is_unread = self._writes_unread(cid, stage, name)
            return DeadEnd("nothing reads what it computes" if is_unread else SILENT)
        if node.kind == "constant" and self._folded(cid, stage, name):
            return DeadEnd("a constant: its value was computed while the graph was compiled")
        if not node.compute:
            return DeadEnd(NO_WORK.get(node.kind, "it does no work"))
        readers = stage.readers.get(name, [])
        if not readers:
            return DeadEnd("nothing reads what it computes")
        if stage.graph.stage != "groups" and not any(
            self._down.get((cid, stage.graph.key, reader)) for reader in readers
        ):
            return DeadEnd("what reads it is gone too", ", ".join(readers))
        return DeadEnd(NOT_LEFT.get(stage.graph.stage, SILENT))

    def _writes_unread(self, cid: str, stage: _Stage, name: str) -> bool:
        """Return True if a node writes to memory that the graph owns, and no remaining node reads that memory later.
        False also if the memory may belong to another tensor, such as an input."""
        base = next(iter(stage.nodes[name].inputs), "")
        path = name.rpartition("/")[0]
        while (one := stage.nodes.get(f"{path}/{base}" if path else base)) is not None and one.kind == "view":
            base = next(iter(one.inputs), "")
        if one is None or not _has_own_memory(one):
            return False
        order = {each: place for place, each in enumerate(stage.nodes)}
        pending, aliases = [f"{path}/{base}" if path else base], {name}
        while pending:
            alias = pending.pop()
            aliases.add(alias)
            readers = [r for r in stage.readers.get(alias, ()) if r not in aliases]
            pending += [r for r in readers if stage.nodes[r].kind == "view" or _writes(stage.nodes[r])]
            later = (r for r in readers if order[r] > order[name])
            if any(self._down.get((cid, stage.graph.key, r)) or stage.nodes[r].op == "output" for r in later):
                return False
        return not any(
            self._down.get((cid, stage.graph.key, r)) for r in stage.readers.get(name, ()) if r not in aliases
        )

    def _folded(self, cid: str, stage: _Stage, name: str) -> bool:
        """Return True if a constant replaces operators of the program."""
        node, graphs = stage.nodes[name], self._compilations[cid].graphs
        if stage.graph.before not in graphs or node.target in dict(stage.graph.subgraphs):
            return False
        before = self._stage(cid, stage.graph.before)
        origins = [(one, before.nodes[one]) for one in node.origins if one in before.nodes]
        return any(
            origin_node.op.startswith("call_")
            or (origin_node.kind == "constant" and self._folded(cid, before, one))
            for one, origin_node in origins
        )

    def _missing_stage(self, cid: str, graph: Graph, node: Node) -> str:
        """Return why the stage after this node is missing; ``""`` if it is not."""
        stages = {s.key: s for s in self._compilations[cid].stages}
        after = AFTER.get(graph.stage, ())
        keys = [f"{graph.phase or graph.key}.{after}"] if isinstance(after, str) else list(after)
        if graph.stage == "joint":
            keys = ["backward" if node.derivative else "forward"]
        if any(isinstance(stages.get(key), (Graph, Code)) for key in keys):
            return ""
        absent = [s for key in keys if isinstance(s := stages.get(key), AbsentStage)]
        return absent[-1].message if absent else ""

    def _stage(self, cid: str, key: str) -> _Stage:
        if (cid, key) not in self._stages:
            compilation = self._compilations[cid]
            graph = compilation.graphs[key]
            stage = self._stages[cid, key] = _Stage(graph)
            for path, node in walk(graph):
                stage.nodes[path + node.name] = node
                for name in node.inputs:
                    stage.readers.setdefault(path + name, []).append(path + node.name)
            stage.rewritten = _rewritten(compilation, key)
        return self._stages[cid, key]


def _has_own_memory(node: Node) -> bool:
    """Return True for an operator whose result certainly shares no memory with an argument."""
    own = node.kind in ("allocation", "pointwise", "reduction", "scan", "matmul")
    may_alias = function(node.target) in ("float", "positive", "pos") or ".i" in node.target
    return (
        own
        and not may_alias
        and node.op.startswith("call_")
        and not {"out", "inplace"} & dict(node.kwargs).keys()
    )


def _writes(node: Node) -> bool:
    """Return True for a node that writes to one of its arguments."""
    return node.kind == "mutation" or node.target in ("operator.setitem", "_operator.setitem")


def _copies_to_itself(node: Node) -> bool:
    """Return True for a node that copies a tensor to itself."""
    return function(node.target) == "copy_" and len(node.args) > 1 and node.args[0] == node.args[1]


AFTER: dict[str, str | tuple[str, ...]] = {
    "dynamo": ("pre_grad", "joint", "inference"),
    "pre_grad": ("joint", "inference"),
    **dict.fromkeys(PHASES, "post_grad"),
    "post_grad": "loops",
    "loops": "groups",
    "groups": "code",
}
"""Stages that follow a stage: one of the same phase, or one of several keys."""


def _rewritten(compilation: Compilation, key: str) -> dict[str, DeadEnd]:
    """Return the nodes of a stage that a pass reported as rewritten, with their replacements in the reason."""
    graphs = compilation.graphs
    dead_ends: dict[str, DeadEnd] = {}
    for done in compilation.passes:
        after = graphs[done.stage] if done.stage in graphs else None
        if after is None or after.before != key:
            continue
        by = "a pass without a name" if done.name == UNNAMED else f"the pass {done.name}"
        for rewrite in done.rewrites:
            stands = ", ".join(f"%{name}" for name in rewrite.after[:MAX_NAMES])
            more = (
                f"{stands} {'stand' if len(rewrite.after) > 1 else 'stands'} in its place" if stands else ""
            )
            for name in rewrite.origins:
                dead_ends[name] = DeadEnd(f"taken away by {by}", more)
    return dead_ends
