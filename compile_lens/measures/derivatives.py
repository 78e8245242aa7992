"""For whose derivative a node or a line of the backward is there.

Autograd made a node of the joint graph for the operators that it came from (``Node.derivative``). What the backward
only computes again, since the forward did not keep it, is there for whatever reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compile_lens.measures.address import Address, walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Node

Links = Mapping[Address, Collection[Address]]
"""For an address what it directly came from."""


class Derivatives:
    """The operators for whose derivative the parts of a backward are there, in one capture."""

    def __init__(self, capture: Record, up: Links) -> None:
        self._compilations = {c.id: c for c in capture.compilations}
        self._up = up
        self._known: dict[str, dict[str, dict[Address, None]]] = {}

    def of(self, address: Address) -> tuple[Address, ...]:
        """The nodes before the joint graph; empty for what is not of a backward or has no such node."""
        cid, key, _ = address
        if key == "joint":
            return tuple(self._joint(address))
        if key.partition(".")[0] != "backward":
            return ()
        nodes = self._nodes(cid)
        pending, seen = [address], {address}
        found: dict[Address, None] = {}
        for item in pending:
            if item[1] == "backward":
                found.update(nodes.get(item[2], {}))
            else:
                above = [a for a in self._up.get(item, ()) if a not in seen]
                seen.update(above)
                pending += above
        return tuple(found)

    def _joint(self, address: Address) -> dict[Address, None]:
        graph = self._compilations[address[0]].graphs["joint"]
        flagged = {path + n.name for path, n in walk(graph) if n.derivative}
        return dict.fromkeys(self._up.get(address, ()) if address[2] in flagged else ())

    def _nodes(self, cid: str) -> dict[str, dict[Address, None]]:
        """For each node of the backward as it was handed over."""
        if cid not in self._known:
            self._known[cid] = self._read(self._compilations[cid])
        return self._known[cid]

    def _read(self, compilation: Compilation) -> dict[str, dict[Address, None]]:
        graphs = compilation.graphs
        if "joint" not in graphs or "backward" not in graphs:
            return {}
        made = {path + n.name for path, n in walk(graphs["joint"]) if n.derivative}
        found: dict[str, dict[Address, None]] = {}
        for path, node in reversed(list(walk(graphs["backward"]))):
            self._node(compilation.id, path, node, made, found)
        return found

    def _node(
        self, cid: str, path: str, node: Node, made: set[str], found: dict[str, dict[Address, None]]
    ) -> None:
        """Readers come before what they read: what is computed again has by now what they have."""
        name = path + node.name
        joint = [a for a in self._up.get((cid, "backward", name), ()) if a[1] == "joint"]
        own = [a for a in joint if a[2] in made]
        mine = {up: None for a in own for up in self._up.get(a, ())}
        again = found.pop(name, {})
        found[name] = {**mine, **(again if len(own) < len(joint) or not joint else {})}
        if node.op != "output":
            for source in node.inputs:
                found.setdefault(path + source, {}).update(found[name])
