"""Origins of each node in the stage before, from facts recorded by torch, never by guess.

Four facts are used, in this order: the node *is* a node of the stage before (no pass changed it); a pass reported that
it replaces one (pattern matcher, ``replace_all_uses_with``); tracing recorded the node that it ran
(``meta["from_node"]``); autograd gave the backward node the sequence number and the stack trace of its forward
operator. If these differ, the trace is right: an in-place operator takes two numbers, and a view regenerated after it
takes the next. A node with none of these has no origin, but a reason.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch.fx
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from compile_lens.record.graph import UNSAID_DERIVATIVE, UNSAID_ORIGIN

from ...record import claims
from ..ground import hook_points
from ..ground.hooks import failed, hook
from ..ground.recorder import Draft
from . import fx_values, inner_derivatives, operand_reads, operator_kinds
from .fx import NO_LINE, Origins

TAG = "compile_lens_from"
"""Key in ``node.meta`` of a replacement with the names of the nodes that it replaces."""

MERGED = "compile_lens_merged"
"""Key in ``node.meta`` of a node into which others were merged, with the origins of all of them."""

REPLACED = hook_points.declare(
    "torch.fx.graph_module:GraphModule._register_replace_node_hook", claims.ORIGINS
)
"""The method of a graph module that registers a function to be called for each replaced node."""

SEEDS = "inductor_seeds"
"""The operator with which Inductor replaces the separate seeds of random operators."""


class Lineage:
    """The history of one graph's nodes through passes that rewrite it in place."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        self._names: dict[torch.fx.Node, str] = {}
        self._known: set[str] = set()
        self._graphs: dict[int, str] = {}  # prefix of names, by the graph's ``id``
        for prefix, module in modules(gm):
            self._graphs[id(module.graph)] = prefix
            for node in module.graph.nodes:
                self._names[node] = prefix + node.name
                self._known.add(prefix + node.name)
        self._replaced: dict[str, dict[str, None]] = {}
        self._stand_ins: dict[str, str] = {}  # in the graph itself: the node that each new name replaces
        self._paths: dict[torch.fx.Graph, str] = {}
        self._inputs = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
        self._attributes = {str(n.target): n.name for n in gm.graph.nodes if n.op == "get_attr"}
        self._results = fx_values.results(gm.graph)

    @contextlib.contextmanager
    def watching(self, gm: torch.fx.GraphModule) -> Iterator[None]:
        """Record every ``replace_all_uses_with`` in ``gm`` and its bodies for the duration."""
        with contextlib.ExitStack() as watched:
            for prefix, module in modules(gm):
                watched.enter_context(self._watched(module, prefix))
            yield

    @contextlib.contextmanager
    def _watched(self, gm: torch.fx.GraphModule, prefix: str) -> Iterator[None]:
        replaced = self._replaced

        def on_replace(*, old: torch.fx.Node, new: Any, user: torch.fx.Node) -> None:
            try:
                keep(old, new)
            except Exception as error:
                failed(REPLACED, error)

        def keep(old: torch.fx.Node, new: Any) -> None:
            if not prefix and sys._getframe(2).f_code.co_name == "replace_all_uses_with":
                self._stand_ins.setdefault(
                    str(new), old.name
                )  # torch also calls the hook for one reader's input
            names = replaced.setdefault(f"{prefix}{new}", {})
            if prefix + old.name not in names:  # torch calls this for every reader
                names[prefix + old.name] = None
                names.update(dict.fromkeys(self._folded(old, str(new))))

        if hook_points.find(REPLACED) is None:
            yield
            return
        gm._register_replace_node_hook(on_replace)
        try:
            yield
        finally:
            with contextlib.suppress(AssertionError, ValueError):  # the whole graph module was replaced
                gm._unregister_replace_node_hook(on_replace)

    def _folded(self, old: torch.fx.Node, new: str) -> list[str]:
        """Return the origins of all inputs, direct or not, of a node replaced by ``full``; none if it reads a
        placeholder."""
        full = old.graph.find_nodes(op="call_function", target=torch.ops.aten.full.default, sort=False)
        if all(node.name != new for node in full):
            return []
        computed = [old]
        for node in computed:
            if node.op == "placeholder":
                return []
            computed += [one for one in operand_reads.looked_at(node) if one not in computed]
        return [name for node in computed[1:] for name in self.origins(node)[0]]

    def origins(self, node: torch.fx.Node) -> tuple[tuple[str, ...], str]:
        """Return a node's origins in the followed graph, and the reason if there are none."""
        name = self._names.get(node)
        if name is not None:
            return (name,), ""
        if MERGED in node.meta:
            return node.meta[MERGED], ""
        names = self._trail(node, set())
        if names:
            return names, ""
        if node.op == "output" and "output" in self._known:
            return ("output",), ""
        if SEEDS in str(node.target):
            # One call creates the seeds of all random operators, and so belongs to all of them.
            served = dict.fromkeys(name for user in node.users for name in self.origins(user)[0])
            if served:
                return tuple(served), ""
        return (), _no_origin_reason(node)

    def by_name(self, node: torch.fx.Node) -> tuple[tuple[str, ...], str]:
        """Return the same as ``origins`` for a graph whose nodes were copied with their names, as by the
        partitioner."""
        name = self._paths.get(node.graph, "") + node.name
        if name in self._known and not {TAG, MERGED} & node.meta.keys() and node not in self._names:
            return (name,), ""
        return self.origins(node)

    def copied(self, gm: torch.fx.GraphModule) -> Origins:
        """Return ``by_name`` for the nodes of ``gm`` and its bodies, which have the same paths."""
        self._paths = {module.graph: prefix for prefix, module in modules(gm)}
        return self.by_name

    def own(self, node: torch.fx.Node) -> tuple[str, ...]:
        """Return a node's own name, as a tuple, if the followed graph has it, even if the copy also replaces others."""
        return (node.name,) if node.name in self._known else ()

    def _trail(self, node: torch.fx.Node, seen: set[str]) -> tuple[str, ...]:
        names: dict[str, None] = {}
        place = self._graphs.get(id(node.graph)) or self._paths.get(node.graph, "")
        for old in (*node.meta.get(TAG, ()), *self._replaced.get(place + node.name, ())):
            if old in self._known:
                names[old] = None
            elif old not in seen:
                seen.add(old)
                names.update({n: None for n in self._replaced.get(old, ()) if n in self._known})
        return tuple(names) or self.traced(node)

    def traced(self, node: torch.fx.Node) -> tuple[str, ...]:
        """Return the names in the followed graph that tracing recorded for ``node``; an inlined body (of a user's
        ``autograd.Function``) has separate names."""
        graph, name = node.meta.get(BODY, (0, ""))
        if graph in self._graphs and self._graphs[graph] + name in self._known:
            return (self._graphs[graph] + name,)
        return self.named(node.meta.get("from_node", ()))

    def named(self, trail: Iterable[Any]) -> tuple[str, ...]:
        """Return the names in the followed graph of a ``from_node`` trail."""
        each = (self._graphs[s.graph_id] + s.name for s in sources(trail) if s.graph_id in self._graphs)
        return tuple(dict.fromkeys(name for name in each if name in self._known))

    def names_of(self, nodes: Iterable[torch.fx.Node]) -> tuple[str, ...]:
        """Return the names in the followed graph of nodes in it, or of those that the nodes replace."""
        names: dict[str, None] = {}
        for node in nodes:
            if node in self._names:
                names[self._names[node]] = None
            else:
                names.update(dict.fromkeys(node.meta.get(MERGED) or node.meta.get(TAG, ())))
        return tuple(names)

    def follows(self, graph: torch.fx.Graph) -> bool:
        """Return True if ``graph`` has any followed node; if not, it was rebuilt."""
        return any(node in self._names for node in graph.nodes)

    def value_of(self, node: torch.fx.Node, left: Collection[str]) -> str:
        """Return the name in the followed graph of the node with the same value: its own, or that of a node that it
        replaced everywhere and that is not ``left`` in the graph; ``""`` if none."""
        return self._names.get(node) or self.value_of_new(node.name, left)

    def value_of_new(self, name: str, left: Collection[str]) -> str:
        """Return the same as ``value_of`` for the name of a node that a pass added."""
        for _ in self._stand_ins:
            name = self._stand_ins.get(name, "")
            if not name or name in left:
                return ""
            if name in self._known:
                return name
        return ""

    @property
    def names(self) -> Collection[str]:
        """The names in the followed graph."""
        return self._known

    @property
    def inputs(self) -> list[str]:
        """Names of the placeholders of the followed graph."""
        return self._inputs

    def views_of_result(self, place: Any) -> list[str]:
        """Return the names of the chain of views that ends in the result at a position, the last view first."""
        at_place = isinstance(place, int) and place < len(self._results)
        return [node.name for node in view_path(self._results[place])] if at_place else []

    @property
    def attributes(self) -> dict[str, str]:
        """Names of the nodes that read a tensor of the followed graph's module, by the tensor's path."""
        return self._attributes


def modules(gm: torch.fx.GraphModule, prefix: str = "") -> Iterator[tuple[str, torch.fx.GraphModule]]:
    """Yield a graph module and the bodies of its higher-order operators, each with the prefix of its names."""
    yield prefix, gm
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            inner = getattr(gm, str(node.target), None)
            if isinstance(inner, torch.fx.GraphModule):
                yield from modules(inner, f"{prefix}{node.target}/")


def view_path(node: Any) -> list[torch.fx.Node]:
    """Return a chain of views: a node if it is a view, then its base if that is a view, and so on."""
    views: list[torch.fx.Node] = []
    while (
        isinstance(node, torch.fx.Node)
        and node.op.startswith("call_")
        and operator_kinds.kind_of(node.target) == "view"
    ):
        views.append(node)
        node = node.all_input_nodes[0] if node.all_input_nodes else None
    return views


def _described_results(graph: torch.fx.Graph) -> list[tuple[Any, Any]]:
    """Return AOTAutograd's description of each result of a graph, with the result; empty without descriptions."""
    end = fx_values.output(graph)
    descriptions = end.meta.get("desc") if end is not None else None
    return (
        list(zip(descriptions, fx_values.results(graph))) if isinstance(descriptions, (tuple, list)) else []
    )


def sources(trail: Iterable[Any]) -> Iterator[Any]:
    """Yield every ``NodeSource`` of a trail, nearest first."""
    for source in trail:
        yield source
        yield from sources(source.from_node)


def _no_origin_reason(node: torch.fx.Node) -> str:
    if node.op == "output":
        return "the result of the graph"
    if node.op == "placeholder":
        return "an input that the compiler added"
    if node.op == "get_attr":
        return "a constant that the compiler stores"
    return UNSAID_ORIGIN


class JointOrigins:
    """Origins of joint (or inference) nodes in the graph that AOTAutograd traced."""

    def __init__(self, lineage: Lineage, gm: torch.fx.GraphModule) -> None:
        self._lineage = lineage
        self._traced: dict[torch.fx.Node, tuple[str, ...]] = {}
        self._first: dict[int, tuple[str, ...]] = {}
        self._at: dict[str, set[tuple[str, ...]]] = {}  # operators by stack trace
        self._cache: dict[torch.fx.Node, tuple[str, ...]] = {}
        placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        primals = [n for n in placeholders if not _is_tangent(n)]
        self._inputs = dict(zip(primals, lineage.inputs)) if len(primals) == len(lineage.inputs) else {}
        for node in gm.graph.nodes:
            number = node.meta.get("seq_nr")
            traced = self._traced[node] = lineage.traced(node)
            # The first operator with a number is the one for which autograd assigned it; later ones with the same
            # number are not differentiable.
            if traced and number is not None and not node.meta.get("autograd_backward"):
                if number >= 0:  # negative for all operators if nothing needs a gradient
                    self._first.setdefault(number, traced)
                if node.meta.get("stack_trace"):
                    self._at.setdefault(node.meta["stack_trace"], set()).add(traced)
        self._results = _described_results(gm.graph)
        self._traced.update(self._regenerated_views())

    def __call__(self, node: torch.fx.Node) -> tuple[tuple[str, ...], str]:
        names = self._names(node)
        if names:
            return names, ""
        if _is_tangent(node):
            return (), "a gradient that comes in from after the graph"
        if self.derivative(node):
            # Torch gives a hook's nodes the stack trace of gradients added there.
            node.meta[NO_LINE] = True
            return (), UNSAID_DERIVATIVE
        return self._lineage.origins(node)

    def _regenerated_views(self) -> dict[torch.fx.Node, tuple[str, ...]]:
        """Return the origins of views that AOTAutograd regenerates at the end, because their base was changed in place
        later. No operator is traced for them, but each is a result of the graph or leads to one."""
        origins: dict[torch.fx.Node, tuple[str, ...]] = {}
        for one, result in self._results:
            if type(one).__name__ != "PlainAOTOutput":
                continue
            rebuilt = [n for n in view_path(result) if not n.meta.get("from_node") and "seq_nr" not in n.meta]
            views = self._lineage.views_of_result(getattr(one, "idx", None))
            if len(rebuilt) != len(views):
                views = views[:1] * len(rebuilt)
            for node, name in zip(rebuilt, views):
                origins[node] = tuple(dict.fromkeys((*origins.get(node, ()), name)))
        return origins

    def derivative(self, node: torch.fx.Node) -> bool:
        """Return True if autograd created the node, for the derivative of its origin if that is known."""
        if self._traces(node) or node.op not in ("call_function", "get_attr"):
            return False
        value = _written_back(node)
        if value is not None:
            return self.derivative(value)
        return bool(self._names(node)) or bool(node.meta.get("autograd_backward"))

    def _traces(self, node: torch.fx.Node) -> tuple[str, ...]:
        names = self._traced.get(node)
        return self._lineage.traced(node) if names is None else names

    def _names(self, node: torch.fx.Node) -> tuple[str, ...]:
        if node in self._cache:
            return self._cache[node]
        if node.op == "placeholder":
            index = getattr(node.meta.get("desc"), "idx", None)
            name = self._inputs.get(node)
            if isinstance(index, int) and not _is_tangent(node) and index < len(self._lineage.inputs):
                name = self._lineage.inputs[index]
            if name is None:  # AOTAutograd lifts attributes of the graph's module to inputs
                name = self._lineage.attributes.get(str(getattr(node.meta.get("desc"), "target", None)))
            names: tuple[str, ...] = (name,) if name is not None else ()
        else:
            names = self._traces(node)
            if names:  # for a derivative that the program takes itself, this is the requesting call
                trails = node.meta.get(inner_derivatives.FORWARD, ())
                forward = (name for trail in trails for name in self._lineage.named(trail))
                names = tuple(dict.fromkeys((*forward, *names)))
            if not names and node.meta.get("is_gradient_acc"):
                # A sum of gradients of one tensor belongs to the operators of all summands. Nodes of a hook there have
                # the same mark, and belong to no operator.
                summands = node.all_input_nodes
                if len(summands) > 1:
                    of = self._of_result if all(map(_is_tangent, summands)) else self._names
                    names = tuple(dict.fromkeys(name for summand in summands for name in of(summand)))
            elif not names and (value := _written_back(node)) is not None:
                names = self._names(value)
            elif not names and "seq_nr" in node.meta and node.op != "output":
                names = self._differentiated(node)
        self._cache[node] = names
        return names

    def _of_result(self, tangent: torch.fx.Node) -> tuple[str, ...]:
        """Return the origins of the result of which a tangent is the gradient."""
        of = getattr(tangent.meta.get("desc"), "output", None)
        result = next((node for one, node in self._results if of is not None and one == of), None)
        return self._names(result) if isinstance(result, torch.fx.Node) else ()

    def _differentiated(self, node: torch.fx.Node) -> tuple[str, ...]:
        """Return the forward operator with a backward node's sequence number, or the one with its stack trace if these
        differ; empty if that is ambiguous."""
        named = self._first.get(node.meta["seq_nr"], ())
        at = self._at.get(node.meta.get("stack_trace", ""))
        if at is None or named in at:
            return named
        return next(iter(at)) if len(at) == 1 else ()


def _written_back(node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the value that AOTAutograd writes into an input at the graph's end, since the program changed the input in
    place (running statistics, parameters). The write has the last operator's number, so the value has the origin."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
        return None
    place, *rest = node.all_input_nodes or (node,)
    return rest[0] if place.op == "placeholder" and len(rest) == 1 else None


def _is_tangent(node: torch.fx.Node) -> bool:
    return node.op == "placeholder" and (
        "Tangent" in type(node.meta.get("desc")).__name__ or node.name.startswith("tangents")
    )


def joint_origins(lineage: Lineage, gm: torch.fx.GraphModule) -> Origins:
    """Return the origins of the nodes that AOTAutograd traced from the graph that ``lineage`` follows."""
    return JointOrigins(lineage, gm)


BODY = "compile_lens_body"
"""Key in ``node.meta`` of a node traced from a body with its operator: the ``id`` of the body's graph, and a name."""


class BodyTracer(torch.fx.Interpreter):  # type: ignore[misc]
    """A body of FlexAttention that records, when tracing runs it as a function, the operator of each new node.

    Torch records this for bodies of ``cond`` and the like, but attributes all nodes of a FlexAttention body to the
    call. Torch's own records are not changed.
    """

    def __call__(self, *args: Any) -> Any:
        return self.run(*args)

    def run_node(self, n: torch.fx.Node) -> Any:
        traced: torch.fx.Graph | None = getattr(getattr(get_proxy_mode(), "tracer", None), "graph", None)
        last = None if traced is None else traced._root._prev
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        result = getattr(self, n.op)(n.target, args, kwargs)
        while traced is not None and last is not None and last._next is not traced._root:
            last = last._next
            last.meta[BODY] = id(n.graph), n.name
        return result


def _call_flex(draft: Draft, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the operator with bodies that record their operators, in any graph."""
    return real(*map(_traced_body, args), **{name: _traced_body(value) for name, value in kwargs.items()})


def _traced_body(value: Any) -> Any:
    if isinstance(value, tuple):  # a block mask, whose last item is its body
        return (
            tuple(map(_traced_body, value))
            if any(isinstance(v, torch.fx.GraphModule) for v in value)
            else value
        )
    return BodyTracer(value) if isinstance(value, torch.fx.GraphModule) else value


hook("torch._higher_order_ops.flex_attention:FlexAttentionHOP.__call__", claims.ORIGINS)(_call_flex)
