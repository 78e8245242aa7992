"""For whose derivative a node or a line of the backward is there.

Autograd made a node of the joint graph for the operators that it came from (``Node.derivative``). What the program's
own backward of an ``autograd.Function`` computes is the derivative of the call of that. What the backward only computes
again, since the forward did not keep it, is there for whatever reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compile_lens.measures.address import PYTHON, Address, walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Node, Ref

Links = Mapping[Address, Collection[Address]]
"""For an address what it directly came from."""


class Derivatives:
    """The operators for whose derivative the parts of a backward are there, in one capture."""

    def __init__(self, capture: Record, up: Links) -> None:
        self._compilations = {c.id: c for c in capture.compilations}
        self._up = up
        self._known: dict[str, dict[str, dict[Address, None]]] = {}
        self._marked: dict[str, tuple[set[str], dict[str, str]]] = {}

    def of(self, address: Address) -> tuple[Address, ...]:
        """The nodes before the joint graph; empty for what is not of a backward or has no such node."""
        cid, key, _ = address
        if key == "joint":
            return tuple(self._joint(address))
        if key.partition(".")[0] != "backward":
            return ()
        nodes = self._nodes(cid)
        pending, seen = [address], {address}
        addresses: dict[Address, None] = {}
        for item in pending:
            if item[1] == "backward":
                addresses.update(nodes.get(item[2], {}))
            else:
                above = [a for a in self._up.get(item, ()) if a not in seen]
                seen.update(above)
                pending += above
        return tuple(addresses)

    def _joint(self, address: Address) -> dict[Address, None]:
        """The operators for whose derivative a node of the joint graph is itself there."""
        derivatives, backwards = self._marks(address[0])
        addresses: dict[Address, None] = {}
        for cid, key, name in self._up.get(address, ()):
            if key == PYTHON:
                continue  # a line of its own is none of an operator's
            call = next((call for body, call in backwards.items() if name.startswith(body)), None)
            if call is not None:
                addresses[cid, key, call] = None
            elif address[2] in derivatives:
                addresses[cid, key, name] = None
        return addresses

    def _marks(self, cid: str) -> tuple[set[str], dict[str, str]]:
        """The nodes of the joint graph that autograd made, and the program's own backwards with their calls."""
        if cid not in self._marked:
            compilation = self._compilations[cid]
            derivatives = {path + n.name for path, n in walk(compilation.graphs["joint"]) if n.derivative}
            self._marked[cid] = derivatives, _backwards(compilation)
        return self._marked[cid]

    def _nodes(self, cid: str) -> dict[str, dict[Address, None]]:
        """For each node of the backward as it was handed over."""
        if cid not in self._known:
            self._known[cid] = self._read(self._compilations[cid])
        return self._known[cid]

    def _read(self, compilation: Compilation) -> dict[str, dict[Address, None]]:
        graphs = compilation.graphs
        if "joint" not in graphs or "backward" not in graphs:
            return {}
        by_node: dict[str, dict[Address, None]] = {}
        for path, node in reversed(list(walk(graphs["backward"]))):
            self._node(compilation.id, path, node, by_node)
        return by_node

    def _node(self, cid: str, path: str, node: Node, found: dict[str, dict[Address, None]]) -> None:
        """Readers come before what they read: what is computed again has by now what they have."""
        name = path + node.name
        joint = [a for a in self._up.get((cid, "backward", name), ()) if a[1] == "joint"]
        derivatives, _ = self._marks(cid)
        served = {a: self._joint(a) for a in joint}
        own = [a for a in joint if a[2] in derivatives or served[a]]
        mine = {up: None for a in own for up in served[a]}
        again = found.pop(name, {})
        found[name] = {**mine, **(again if len(own) < len(joint) or not joint else {})}
        if node.op != "output":
            for source in node.inputs:
                found.setdefault(path + source, {}).update(found[name])


def _backwards(compilation: Compilation) -> dict[str, str]:
    """For each backward that the program wrote, as names in it begin, the call that it is the derivative of."""
    before = compilation.graphs.get(compilation.graphs["joint"].before)
    if before is None:
        return {}
    return {
        f"{path}{body.name}/": path + node.name
        for path, node in walk(before)
        if node.target.rpartition(".")[2] == "autograd_function_apply"
        for body in node.args[1:2]
        if isinstance(body, Ref)
    }
