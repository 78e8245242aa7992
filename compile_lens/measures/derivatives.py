"""Forward operators whose derivative a node or a line of the backward serves.

Autograd made a node of the joint graph for the operators that it came from (``Node.derivative``). The program's own
backward of an ``autograd.Function`` serves the derivative of its call. Values that the backward recomputes, since the
forward did not save them, serve whatever reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compile_lens.measures.address import PYTHON, Address, walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Node, Ref

Links = Mapping[Address, Collection[Address]]
"""For an address, the addresses that it directly came from."""


class Derivatives:
    """Forward operators whose derivatives the parts of a backward serve, in one capture."""

    def __init__(self, capture: Record, up: Links) -> None:
        self._compilations = {c.id: c for c in capture.compilations}
        self._up = up
        self._known: dict[str, dict[str, dict[Address, None]]] = {}
        self._marked: dict[str, tuple[set[str], dict[str, str]]] = {}

    def of(self, address: Address) -> tuple[Address, ...]:
        """Return nodes before the joint graph; empty for an address outside a backward, or without such nodes."""
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
        """Return the operators whose derivative a node of the joint graph itself computes."""
        derivatives, backwards = self._marks(address[0])
        addresses: dict[Address, None] = {}
        for cid, key, name in self._up.get(address, ()):
            if key == PYTHON:
                continue  # the node's own line is no operator
            call = next((call for body, call in backwards.items() if name.startswith(body)), None)
            if call is not None:
                addresses[cid, key, call] = None
            elif address[2] in derivatives:
                addresses[cid, key, name] = None
        return addresses

    def _marks(self, cid: str) -> tuple[set[str], dict[str, str]]:
        """Return the joint-graph nodes made by autograd, and the program's own backwards with their calls."""
        if cid not in self._marked:
            compilation = self._compilations[cid]
            derivatives = {path + n.name for path, n in walk(compilation.graphs["joint"]) if n.derivative}
            self._marked[cid] = derivatives, _backward_calls(compilation)
        return self._marked[cid]

    def _nodes(self, cid: str) -> dict[str, dict[Address, None]]:
        """Return the operators by node of the handed backward graph."""
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
        """Add the operators of a node. Readers are visited first, so a recomputed value inherits theirs."""
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


def _backward_calls(compilation: Compilation) -> dict[str, str]:
    """Return the call of each backward that the program defines, by the name prefix of its nodes."""
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
