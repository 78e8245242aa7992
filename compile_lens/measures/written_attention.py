"""Attention written out as two matrix products with a softmax between, which one call could compute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compile_lens.record.capture import Record
from compile_lens.record.graph import Frame, Graph, Literal, Node, Ref, Value

from .chain import Chain
from .memo import memoized

_PRODUCTS = ("matmul", "bmm")
_SCALES = ("mul", "imul", "mul_", "truediv", "itruediv", "div", "div_")
_MASKS = ("add", "iadd", "add_", "masked_fill", "masked_fill_", "where")
_CASTS = ("float", "half", "bfloat16", "to", "type_as")
_DROPOUTS = ("dropout", "dropout_")
_ACCESSES = 4
"""Accesses of scores and weights: the first product writes the scores, the softmax reads them and writes the weights,
the second product reads these."""


@dataclass(frozen=True)
class WrittenAttention:
    """One attention, ``softmax(q @ k.mT * scale + mask) @ v``, in the graph that Dynamo traced.

    Attributes:
        compilation: its compile id.
        nodes: the nodes from the first product over the softmax to the second product.
        frames: the program's lines of these, in order.
        scores: bytes of the scores.
        masked: True if a mask is applied.
        dropout: True if dropout is applied to the weights.
        scale: the factor of the scores if it is not the default of ``scaled_dot_product_attention``.
        kernels: addresses of the forward's kernels that compute a part of it.
    """

    compilation: str
    nodes: tuple[str, ...]
    frames: tuple[Frame, ...]
    scores: int
    masked: bool
    dropout: bool
    scale: float | None
    kernels: tuple[tuple[str, str, str], ...]

    @property
    def moved(self) -> int:
        """Modelled bytes that scores and weights move in the forward: each is written once and read once."""
        return _ACCESSES * self.scores

    @property
    def call(self) -> str:
        """The call that would compute it."""
        options = ["attn_mask=…"] * self.masked + ["dropout_p=…"] * self.dropout
        options += [f"scale={self.scale:.6g}"] if self.scale is not None else []
        return f"F.scaled_dot_product_attention({', '.join(['q', 'k', 'v', *options])})"


@memoized
def written_attention(capture: Record) -> tuple[WrittenAttention, ...]:
    """Return the attentions that one call could compute, without those whose scores or weights are also used elsewhere
    and those that Inductor already replaced by such a call."""
    chain = Chain(capture)
    return tuple(
        one
        for compilation in capture.compilations
        if isinstance(graph := compilation.graphs.get("dynamo"), Graph)
        for one in _in_graph(chain, compilation.id, graph, capture)
    )


def _in_graph(chain: Chain, cid: str, graph: Graph, capture: Record) -> Iterator[WrittenAttention]:
    nodes = {node.name: node for node in graph.nodes}
    users: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            users.setdefault(name, []).append(node)
    targets = {
        c.id: {key: {n.name: n.target for n in g.nodes} for key, g in c.graphs.items()}
        for c in capture.compilations
    }
    for softmax in graph.nodes:
        if _operator(softmax) != "softmax" or not _over_last(softmax):
            continue
        above = _scores(softmax, nodes, users)
        below = _weights(softmax, users)
        if above is None or below is None:
            continue
        path, scale, masked = above
        product, last, dropout = path[0], below[-1], any(_operator(node) in _DROPOUTS for node in below)
        nbytes = product.outputs[0].nbytes if product.outputs else None
        width = nodes[product.inputs[0]].shape if product.inputs[0] in nodes else None
        if not nbytes or not width or not isinstance(width[-1], int):
            continue
        own = [*path, softmax, *below]
        reached = {
            address
            for node in (product, softmax, last)
            for address in chain.descendants((cid, "dynamo", node.name))
            if (cid, "dynamo", node.name) in chain
        }
        if any("scaled_dot_product" in targets[c].get(key, {}).get(name, "") for c, key, name in reached):
            continue
        kernels = sorted(
            address
            for address in reached
            if address[1] in ("forward.code", "inference.code") and ":" not in address[2]
        )
        frames = [next((f for f in reversed(node.frames) if not f.of_torch), None) for node in own]
        usual = abs(scale * math.sqrt(width[-1]) - 1) < 1e-3
        yield WrittenAttention(
            cid,
            tuple(node.name for node in own),
            tuple(frame for frame in frames if frame is not None),
            nbytes,
            masked,
            dropout,
            None if usual else scale,
            tuple(kernels),
        )


def _operator(node: Node) -> str:
    return node.target.rpartition(".")[2] if node.op in ("call_function", "call_method") else ""


def _over_last(softmax: Node) -> bool:
    dim = dict(softmax.kwargs).get("dim", softmax.args[1] if len(softmax.args) > 1 else None)
    rank = len(softmax.shape or ())
    return rank >= 3 and dim in (-1, rank - 1)


_Scores = tuple[list[Node], float, bool]
"""Nodes from the first product on, the factor of the scores, and whether they are masked."""


def _scores(softmax: Node, nodes: Mapping[str, Node], users: Mapping[str, list[Node]]) -> _Scores | None:
    """Return the nodes from the first product to the softmax's input; None if they are not scores of attention."""
    path: list[Node] = []
    scale, masked, name = 1.0, False, _first(softmax)
    while name in nodes and len(users[name]) == 1:
        node = nodes[name]
        path.insert(0, node)
        kind = _operator(node)
        if kind in _PRODUCTS:
            return (path, scale, masked) if len(node.inputs) == 2 else None
        if kind in _SCALES:
            factor = _number(node.args[1] if isinstance(node.args[0], Ref) else node.args[0])
            if not factor:
                return None
            scale *= 1 / factor if "div" in kind else factor
        elif kind in _MASKS:
            if masked or len(node.inputs) != 2:
                return None
            masked = True
            if kind == "where":
                scored = [one for one in node.inputs if _leads_to_product(one, nodes)]
                name = scored[0] if scored else ""
                continue
            if scale != 1.0 and kind.strip("_i") == "add":
                return None  # the mask is scaled as well
        elif kind not in _CASTS:
            return None
        name = _first(node)
    return None


def _leads_to_product(name: str, nodes: Mapping[str, Node]) -> bool:
    while name in nodes and _operator(nodes[name]) in (*_SCALES, *_CASTS):
        name = _first(nodes[name])
    return name in nodes and _operator(nodes[name]) in _PRODUCTS


def _weights(softmax: Node, users: Mapping[str, list[Node]]) -> list[Node] | None:
    """Return the nodes from the weights to the second product; None if the weights have other uses."""
    path: list[Node] = []
    node = softmax
    while len(users.get(node.name, ())) == 1:
        (user,) = users[node.name]
        if _first(user) != node.name or len(path) > 3:
            return None
        path.append(user)
        if _operator(user) in _PRODUCTS:
            return path if len(user.inputs) == 2 else None
        if _operator(user) not in (*_DROPOUTS, *_CASTS):
            return None
        node = user
    return None


def _first(node: Node) -> str:
    return next((value.name for value in node.args if isinstance(value, Ref)), "")


def _number(value: Value) -> float | None:
    if isinstance(value, Literal) or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
