"""Changes of a torch.fx graph since the last comparison: removed, new and changed nodes.

The graph is compared with a copy of each node's call, so passes need not report changes. A change that only follows
from another (a node that reads the replacement of its old input) is not counted.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch.fx

from . import fx_values

MAX_LINES = 40
"""Limit on the lines of a text; one more line has the number of the rest."""


class NodeState(NamedTuple):
    """A node's state at the last comparison; torch clears a node's arguments when it erases the node."""

    name: str
    op: str
    target: Any
    args: Any
    kwargs: Any


class Group(NamedTuple):
    """Nodes that changed together, with the lines before and after, each with its node's name."""

    nodes: tuple[torch.fx.Node, ...]
    before: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...]


class Changes:
    """Changes of nodes.

    Attributes:
        gone: old states of nodes that were erased, or replaced for all readers.
        made: new nodes.
        old: old states of nodes with another target or other arguments.
        stand_ins: replacements of nodes that are gone.
    """

    def __init__(self) -> None:
        self.gone: dict[torch.fx.Node, NodeState] = {}
        self.made: dict[torch.fx.Node, None] = {}
        self.old: dict[torch.fx.Node, NodeState] = {}
        self.stand_ins: dict[torch.fx.Node, torch.fx.Node] = {}

    def __bool__(self) -> bool:
        return bool(self.gone or self.made or self.old)

    def groups(self) -> Iterator[Group]:
        """Yield the changes in groups connected by arguments."""
        # The same change of operators with unchanged arguments, as for every view of the graph, is one group.
        renamed: dict[tuple[str, str], list[torch.fx.Node]] = {}
        leader: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in (*self.gone, *self.old, *self.made):
            operators = self._only_operator(node)
            if operators is None:
                leader[node] = node
            else:
                renamed.setdefault(operators, []).append(node)

        def find(node: torch.fx.Node) -> torch.fx.Node:
            while leader[node] is not node:
                leader[node] = leader[leader[node]]
                node = leader[node]
            return node

        def link(a: torch.fx.Node, b: torch.fx.Node) -> None:
            if a in leader and b in leader:
                leader[find(b)] = find(a)

        for node in leader:
            forms = [self.gone.get(node) or self.old.get(node), None if node in self.gone else state_of(node)]
            for seen in filter(None, forms):
                for arg in arguments(seen):
                    link(arg, node)
        for old, new in self.stand_ins.items():
            link(old, new)
        together: dict[torch.fx.Node, list[torch.fx.Node]] = {}
        for node in leader:
            together.setdefault(find(node), []).append(node)
        for nodes in (*together.values(), *renamed.values()):
            yield self.group(nodes)

    def _only_operator(self, node: torch.fx.Node) -> tuple[str, str] | None:
        """Return a node's operators before and after if nothing else changed, else None."""
        old = self.old.get(node)
        if old is None:
            return None
        same = old.args is node._args and old.kwargs is node._kwargs and old.op == node.op
        if not same and line(old._replace(target="")) != line(state_of(node)._replace(target="")):
            return None
        return fx_values.target_text(old.target), fx_values.target_text(node.target)

    def group(self, nodes: Iterable[torch.fx.Node], matched: Iterable[torch.fx.Node] = ()) -> Group:
        """Return these nodes as one group; ``matched`` nodes come first, changed or not."""
        chosen = set(nodes)
        before: dict[torch.fx.Node, NodeState] = {}
        for node in matched:
            before[node] = self.gone.get(node) or self.old.get(node) or state_of(node)
        before.update((n, f) for n, f in (*self.gone.items(), *self.old.items()) if n in chosen)
        after = {n for n in (*self.made, *self.old) if n in chosen}
        after |= {self.stand_ins[n] for n in before if n in self.stand_ins}
        return Group(
            tuple(before),
            tuple((seen.name, line(seen)) for seen in before.values()),
            tuple((n.name, line(state_of(n))) for n in sorted(after)),
        )


class Tracked:
    """A graph and its nodes' states at the last comparison."""

    def __init__(self, gm: torch.fx.GraphModule, body: str) -> None:
        self.graph: torch.fx.Graph = gm.graph
        self.body = body
        self._seen: dict[torch.fx.Node, NodeState] = {n: state_of(n) for n in self.graph.nodes}
        self._order = list(self._seen)
        self.touched: dict[torch.fx.Node, None] = {}

    @property
    def count(self) -> int:
        """Number of nodes at the last comparison."""
        return len(self._seen)

    def touch(self, node: torch.fx.Node) -> None:
        """Record a node that is being created or erased; torch calls this."""
        if node.graph is self.graph:
            self.touched[node] = None

    def forget(self) -> None:
        """Release the nodes, since copies of the graph module by torch may keep our hooks alive."""
        self._seen.clear()
        self._order.clear()
        self.touched.clear()
        self.graph = torch.fx.Graph()

    def settle(self, nodes: Iterable[torch.fx.Node] | None = None) -> tuple[Changes, int]:
        """Return the changes since the last comparison, in ``nodes`` or everywhere, and the number of moved nodes."""
        moved = 0
        if nodes is None:
            here = list(self.graph.nodes)
            if here == self._order:
                changes = self._compare(here)
            else:
                changes = self._compare(dict.fromkeys((*self._order, *self._seen, *here)))
                place = {n: i for i, n in enumerate(self._order)}
                moved = _moved_count([place[n] for n in here if n in place])
                self._seen = {n: self._seen[n] for n in here}
                self._order = here
        else:
            changes = self._compare(dict.fromkeys((*nodes, *self.touched)))
        self.touched.clear()
        return changes, moved

    def _compare(self, nodes: Iterable[torch.fx.Node]) -> Changes:
        changes = Changes()
        replaced: list[tuple[torch.fx.Node, NodeState, list[tuple[Any, Any]]]] = []
        seen = self._seen
        for node in nodes:  # often the whole graph with few changes, so no call for an unchanged node
            old = seen[node] if node in seen else None
            if node._erased or node.graph is not self.graph:
                if old is not None:
                    changes.gone[node] = old
                    del self._seen[node]
            elif old is None:
                changes.made[node] = None
                self._seen[node] = state_of(node)
            elif (
                old.args is not node._args or old.kwargs is not node._kwargs or old.target is not node.target
            ):
                self._seen[node] = new = state_of(node)
                if line(old) != line(new):
                    swapped = list(_changed_arguments((old.args, old.kwargs), (new.args, new.kwargs)))
                    if old.target is not new.target:
                        swapped.append((None, None))
                    replaced.append((node, old, swapped))
        for node, old, swapped in replaced:
            self._explain(changes, node, old, swapped)
        return changes

    def _explain(
        self, changes: Changes, node: torch.fx.Node, old: NodeState, swapped: list[tuple[Any, Any]]
    ) -> None:
        """Record changed inputs as replacements of nodes that are gone or unused; if that is impossible, the node
        itself changed."""
        followed = {}
        for was, now in swapped:
            if not isinstance(was, torch.fx.Node) or not isinstance(now, torch.fx.Node):
                break
            if was not in changes.gone and was.users:
                break
            followed[was] = now
        else:
            for was, now in followed.items():
                changes.stand_ins[was] = now
                changes.gone.setdefault(was, self._seen.get(was) or state_of(was))
            return
        changes.old[node] = old


def state_of(node: torch.fx.Node) -> NodeState:
    """Return the present state of a node."""
    return NodeState(node.name, node.op, node.target, node._args, node._kwargs)


def arguments(seen: NodeState) -> Iterator[torch.fx.Node]:
    """Yield the nodes among a state's arguments."""
    stack = [seen.args, seen.kwargs]
    while stack:
        arg = stack.pop()
        if isinstance(arg, torch.fx.Node):
            yield arg
        elif isinstance(arg, (tuple, list)):
            stack.extend(arg)
        elif isinstance(arg, dict):
            stack.extend(arg.values())
        elif isinstance(arg, slice):
            stack.extend((arg.start, arg.stop, arg.step))


def line(seen: NodeState) -> str:
    """Return a node's state as text: ``%add = aten.add.Tensor(%x, 1)``."""
    if seen.op == "placeholder":
        return f"%{seen.name} = {seen.op}"
    called = fx_values.target_text(seen.target)
    if seen.op in ("get_attr", "call_module"):
        called = f"{seen.op}[{called}]"
    if seen.op == "get_attr":
        return f"%{seen.name} = {called}"
    texts = [argument_text(a) for a in seen.args] + [
        f"{k}={argument_text(v)}" for k, v in seen.kwargs.items()
    ]
    start = "" if seen.op == "output" else f"%{seen.name} = "
    return f"{start}{called}({', '.join(texts)})"


def argument_text(arg: Any) -> str:
    """Return an argument as text."""
    if isinstance(arg, torch.fx.Node):
        return f"%{arg.name}"
    if isinstance(arg, (tuple, list)):
        return f"[{', '.join(map(argument_text, arg))}]"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {argument_text(v)}" for k, v in arg.items()) + "}"
    if isinstance(arg, slice):
        return f"slice({argument_text(arg.start)}, {argument_text(arg.stop)}, {argument_text(arg.step)})"
    plain = fx_values.value(arg)
    return str(getattr(plain, "text", None) or repr(plain))


def text(lines: Iterable[tuple[str, str]]) -> str:
    """Return the lines of a group as one text, limited to ``MAX_LINES`` lines and one with the number of the rest."""
    contents = [content for _, content in lines]
    if len(contents) > MAX_LINES:
        contents = [*contents[:MAX_LINES], f"… and {len(contents) - MAX_LINES} more"]
    return "\n".join(contents)


def _changed_arguments(old: Any, new: Any) -> Iterator[tuple[Any, Any]]:
    """Yield ``(old, new)`` for each position in the arguments that changed, the whole values if their structure
    differs."""
    if old is new:
        return
    if isinstance(old, (tuple, list)) and isinstance(new, (tuple, list)) and len(old) == len(new):
        for a, b in zip(old, new):
            yield from _changed_arguments(a, b)
    elif isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for key in old:
            yield from _changed_arguments(old[key], new[key])
    elif (
        isinstance(old, torch.fx.Node)
        or isinstance(new, torch.fx.Node)
        or argument_text(old) != argument_text(new)
    ):
        yield old, new


def _moved_count(places: list[int]) -> int:
    """Return the smallest number of nodes whose removal leaves the rest in their old order."""
    tails: list[int] = []
    for place in places:
        at = bisect.bisect_left(tails, place)
        tails[at : at + 1] = [place]
    return len(places) - len(tails)
