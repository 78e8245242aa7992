"""Results of the program's calls among the nodes of a graph, and their shapes."""

from __future__ import annotations

from compile_lens.record.capture import Record
from compile_lens.record.graph import Graph, Node, Tensor

from .address import Address, walk
from .arithmetic import node_bytes, observed_sizes
from .chain import Chain


class CallResults:
    """Tells the results of the calls of a capture from what the calls compute on their way."""

    def __init__(self, capture: Record, chain: Chain) -> None:
        self._chain = chain
        graphs = {(c.id, graph.key): graph for c in capture.compilations for graph in c.graphs.values()}
        self._nodes = {
            key: {path + node.name: node for path, node in walk(graph)} for key, graph in graphs.items()
        }
        self._readers = {key: _readers(graph) for key, graph in graphs.items()}
        self._sizes = {c.id: observed_sizes(c) for c in capture.compilations}

    def is_part(self, address: Address) -> bool:
        """Return True if another operation of the same call reads the value, so that it is not the call's result, or if
        the operator returns more than the call. Loops run a line several times, by several calls in Dynamo's graph."""
        at, own = address[:2], self._nodes[address[:2]][address[2]]
        calls = self._calls(address)
        names = [own.name]
        for name in names:
            for node in self._readers[at].get(name, ()):
                if node.kind == "view":
                    names.append(node.name)
                elif node.innermost == own.innermost and not node.derivative:
                    if calls.keys() & self._calls((*at, node.name)).keys():
                        return True
        single = all(len(self._nodes[one[:2]][one[2]].outputs) == 1 for one in calls)
        return own.target == "operator.getitem" and bool(calls) and single and not self.shape(address)

    def is_assigned(self, address: Address) -> bool:
        """Return True for the value of a whole tensor after an assignment to a part of it."""
        return any(self._nodes[one[:2]][one[2]].target == "operator.setitem" for one in self._calls(address))

    def _calls(self, address: Address) -> dict[Address, None]:
        return dict.fromkeys(one for one in self._chain.ancestors(address) if one[1] == "dynamo")

    def shape(self, address: Address) -> str:
        """Return dtype and shape of a value as the program's call returns it: a matrix product takes two dimensions,
        and a stack is a concatenation, so the memory may be of another shape. ``""`` if no call returns these bytes."""
        node, sizes = self._nodes[address[:2]][address[2]], self._sizes[address[0]]
        for cid, stage, name in reversed(self._calls(address)):
            call = self._nodes.get((cid, stage), {}).get(name)
            if call is None or len(call.outputs) != 1 or call.dtype != node.dtype:
                continue
            if (size := node_bytes(call, sizes)) is not None and size == node_bytes(node, sizes):
                return tensor_text(call)
        return ""


def _readers(graph: Graph) -> dict[str, list[Node]]:
    """Return the nodes that read each value."""
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    return readers


def tensor_text(node: Node) -> str:
    """Return dtype and shape of a node's only result, ``"float32[8, 64]"``; ``""`` if it has none or several."""
    if len(node.outputs) != 1:
        return ""
    tensor: Tensor = node.outputs[0]
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
