"""Merged constants: which of the original constants each loop, kernel and line uses.

The compiler merges equal constants of different lines into one node (``full_default``), which has all their origins. A
kernel that reads this node uses only the constants that its own operators read, not the lines of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compile_lens.measures.address import Address, walk
from compile_lens.record.graph import Graph, Node


@dataclass
class _Stage:
    """One graph: its nodes, the readers of each, and those that depend on no input."""

    nodes: dict[str, Node] = field(default_factory=dict)
    readers: dict[str, list[str]] = field(default_factory=dict)
    constant: set[str] = field(default_factory=set)


class MergedConstants:
    """Merged constants of one compilation. ``up`` gives the addresses that a node directly came from."""

    def __init__(
        self, cid: str, graphs: Mapping[str, Graph], up: Mapping[Address, Mapping[Address, None]]
    ) -> None:
        self._cid, self._graphs, self._up = cid, graphs, up
        self._stages: dict[str, _Stage] = {}
        self._merged: dict[Address, tuple[Address, ...]] = {}

    def split(self, above: Iterable[Address], context: Iterable[Address]) -> dict[Address, list[Address]]:
        """Return for each merged constant in ``above`` the parts that ``context`` reads, if it reads some but not all:
        the rest belongs to other loops."""
        parts = {address: address_parts for address in above if (address_parts := self.parts(address))}
        if not parts:
            return {}
        reached = self._reached(address for address in context if not self.parts(address))
        used: dict[Address, list[Address]] = {}
        for constant, each in parts.items():
            own = [part for part in each if not reached.isdisjoint(self._uses(part))]
            if own and len(own) < len(each):
                used[constant] = own
        return used

    def parts(self, address: Address) -> tuple[Address, ...]:
        """Return the constants that were merged into a node; empty for any other node."""
        if address not in self._merged:
            self._merged[address] = self._parts(address)
        return self._merged[address]

    def _parts(self, address: Address) -> tuple[Address, ...]:
        above: tuple[Address, ...] = (address,)
        while len(above) == 1 and self._is_constant(above[0]):
            above = tuple(self._up.get(above[0], ()))
        return above if len(above) > 1 and all(map(self._is_constant, above)) else ()

    def _is_constant(self, address: Address) -> bool:
        cid, key, name = address
        return cid == self._cid and key in self._graphs and name in self._stage(key).constant

    def _uses(self, constant: Address) -> set[Address]:
        """Return the nodes that read a constant, also through nodes computed from constants only."""
        cid, key, name = constant
        stage = self._stage(key)
        readers: set[str] = set()
        pending = [name]
        while pending:
            for reader in stage.readers.get(pending.pop(), ()):
                if reader not in readers:
                    readers.add(reader)
                    pending += [reader] if reader in stage.constant else []
        return {(cid, key, reader) for reader in readers}

    def _reached(self, start: Iterable[Address]) -> set[Address]:
        reached = set(start)
        pending = list(reached)
        while pending:
            for above in self._up.get(pending.pop(), ()):
                if above not in reached:
                    reached.add(above)
                    pending.append(above)
        return reached

    def _stage(self, key: str) -> _Stage:
        if key not in self._stages:
            stage = self._stages[key] = _Stage()
            for path, node in walk(self._graphs[key]):
                name = path + node.name
                stage.nodes[name] = node
                inputs = [path + one for one in node.inputs]
                for one in inputs:
                    stage.readers.setdefault(one, []).append(name)
                called = node.op in ("call_function", "call_method")
                called = called and node.kind not in ("random", "mutation", "control")
                if called and stage.constant.issuperset(inputs):
                    stage.constant.add(name)
        return self._stages[key]
