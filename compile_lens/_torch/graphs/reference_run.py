"""Runs of AOTAutograd's traced graph, before Inductor's passes, as far as requested values need."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.fx

from . import operator_kinds
from .double_precision import DoublePrecision
from .packed_values import pack, unpacked
from .provenance import view_path

CONSTRUCTED = frozenset(
    "clone copy full full_like zeros zeros_like ones ones_like arange iota lift_fresh_copy scalar_tensor".split()
)
"""Operators that copy or construct, whose results are not compared."""


class NotRunError(RuntimeError):
    """Raised if a value was not computed, with the reason."""


class ReferenceGraph:
    """A copy of the graph before Inductor's passes.

    Attributes:
        index: position of each node in program order, by name.
        differentiates: True if the graph includes a backward.
        values: names of the nodes that compute a tensor, in program order, without views, copies and constants.
        reasons: reasons for nodes that are not computed, by name: the node or an input is random or the program's own
            operator.
    """

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        graph = torch.fx.Graph()
        copies: dict[torch.fx.Node, torch.fx.Node] = {}
        graph.graph_copy(gm.graph, copies)
        self.gm = torch.fx.GraphModule(gm, graph)
        self.nodes = {node.name: copies[node] for node in gm.graph.nodes if node.op != "output"}
        self.names = {copy: name for name, copy in self.nodes.items()}
        self.index = {name: place for place, name in enumerate(self.nodes)}
        self.reasons: dict[str, str] = {}
        for name, node in self.nodes.items():
            of_inputs = (self.reasons.get(self.names[one], "") for one in node.all_input_nodes)
            reason = _reason(node) or next(filter(None, of_inputs), "")
            if reason:
                self.reasons[name] = reason
        self.values = [name for name, node in self.nodes.items() if _is_value(node)]
        self.differentiates = any(name.startswith("tangents") for name in self.nodes)

    def value_of(self, name: str) -> str:
        """Return the node of which a view has all elements; for other nodes the name itself."""
        path = view_path(self.nodes[name])
        end = path[-1].all_input_nodes[0] if path and path[-1].all_input_nodes else None
        if end is None or end.op != "call_function":
            return name
        sizes = [getattr(one.meta.get("val"), "shape", None) for one in (self.nodes[name], end)]
        same = None not in sizes and sizes[0].numel() == sizes[1].numel()  # type: ignore[union-attr]
        return self.names[end] if same else name

    def above(self, name: str) -> set[str]:
        """Return the names of all nodes from which a node is computed."""
        names: dict[str, None] = {name: None}
        pending = [self.nodes[name]]
        for node in pending:
            for one in node.all_input_nodes:
                if self.names[one] not in names:
                    names[self.names[one]] = None
                    pending.append(one)
        return {*names} - {name}

    def of_targets(self, name: str, targets: frozenset[Any]) -> bool:
        """Return True if a node, or one from which it is computed, calls one of ``targets``."""
        return any(self.nodes[one].target in targets for one in (name, *self.above(name)))


class ReferenceRun:
    """One run of a reference graph, node by node as far as the taken values need, which frees each value after its last
    use. With ``wide`` it runs in float64.

    ``wanted`` is the number of times that each value will be taken.
    """

    def __init__(self, graph: ReferenceGraph, wanted: Counter[str], wide: bool = False) -> None:
        self.graph, self.wide = graph, wide
        self._env: dict[torch.fx.Node, Any] = {}
        self._left: Counter[torch.fx.Node] = Counter()
        needed = [graph.nodes[name] for name in wanted if name not in graph.reasons]
        self._left.update({graph.nodes[name]: count for name, count in wanted.items()})
        reached = set(needed)
        for node in needed:
            for one in node.all_input_nodes:
                self._left[one] += 1
                if one not in reached:
                    reached.add(one)
                    needed.append(one)

    def give(self, inputs: dict[str, Any]) -> None:
        """Set the values of placeholders by name."""
        nodes = self.graph.nodes
        self._env.update(
            {nodes[n]: v for n, v in inputs.items() if n in nodes and nodes[n].op == "placeholder"}
        )

    def take(self, name: str) -> Any:
        """Return a value, and free it here if nothing else needs it.

        Raises NotRunError if the value cannot be computed.
        """
        if name in self.graph.reasons:
            raise NotRunError(self.graph.reasons[name])
        node = self.graph.nodes[name]
        with self._modes():
            for one in self._missing(node):
                self._run(one)
        value = self._value(node)
        self._read(node)
        return value

    def pack(self, own: ReferenceRun) -> None:
        """Store the values still needed as differences from ``own``'s values in their own dtypes, in half the
        memory."""
        pack(self._env, own._env)

    def release(self) -> None:
        """Free all values but the placeholders'; they would be recomputed."""
        self._env = {node: value for node, value in self._env.items() if node.op == "placeholder"}

    def _value(self, node: torch.fx.Node) -> Any:
        return unpacked(self._env[node])

    def _missing(self, node: torch.fx.Node) -> list[torch.fx.Node]:
        missing: dict[torch.fx.Node, None] = {}
        pending = [node]
        while pending:
            one = pending.pop()
            if one in missing or one in self._env:
                continue
            missing[one] = None
            pending += one.all_input_nodes
        names, index = self.graph.names, self.graph.index
        return sorted(missing, key=lambda one: index[names[one]])

    def _run(self, node: torch.fx.Node) -> None:
        if node.op == "placeholder":
            raise NotRunError("an input of the graph is not known")
        try:
            if node.op == "get_attr":
                result: Any = torch.fx.graph_module._get_attr(self.graph.gm, str(node.target))
            else:
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self._value)
                assert callable(node.target)
                result = node.target(*args, **kwargs)
        except Exception as error:  # an operator may raise anything
            lines = (str(error).strip() or type(error).__name__).splitlines()
            where = "in float64" if self.wide else "in its own types"
            raise NotRunError(f"{node.target} does not run {where}: {lines[0][:200]}") from error
        self._env[node] = result
        for one in node.all_input_nodes:
            self._read(one)

    def _read(self, node: torch.fx.Node) -> None:
        self._left[node] -= 1
        if self._left[node] <= 0 and node.op != "placeholder":
            self._env.pop(node, None)

    @contextlib.contextmanager
    def _modes(self) -> Iterator[None]:
        wide = DoublePrecision() if self.wide else contextlib.nullcontext()
        with torch.no_grad(), torch._C._DisableAutocast(), wide:
            yield


def nodes_needed(graph: ReferenceGraph, names: Iterable[str]) -> Counter[str]:
    """Return the number of times that each value in ``names`` is taken, for those that can be computed."""
    return Counter(name for name in names if name in graph.nodes and name not in graph.reasons)


def _reason(node: torch.fx.Node) -> str:
    if node.op != "call_function":
        return ""
    target, name = node.target, operator_kinds.base_name(node.target)
    kind = operator_kinds.kind_of(target)
    if kind == "random":
        return "it depends on random numbers"
    if name in operator_kinds.UNINITIALIZED:
        return "it depends on memory that nothing wrote"
    if not isinstance(target, torch._ops.OpOverload):
        return f"{name} is a higher-order operator" if kind == "control" else ""
    if target.namespace not in ("aten", "prims", "prim"):
        return f"{name} is not one of PyTorch's own operators"
    return f"{name} writes in place" if target._schema.is_mutable else ""


def _is_value(node: torch.fx.Node) -> bool:
    if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    kind = operator_kinds.kind_of(node.target)
    if node.target is torch.ops.aten.copy_.default:
        return False
    if getattr(node.target, "__name__", "") == "getitem":
        return True  # one result of several
    return operator_kinds.is_work(kind) and operator_kinds.base_name(node.target) not in CONSTRUCTED
