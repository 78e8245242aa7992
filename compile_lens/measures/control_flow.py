"""Sums over the code that a call runs: loop bodies per iteration, one branch of each choice."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

from compile_lens.record.figures import Count, count, total
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import Code, Flow, Kernel

CHOICES = frozenset(("cond", "switch"))
LOOPS = frozenset(("while_loop", "while_loop_stack_output"))
CALLS = frozenset(("invoke_subgraph",))
STEERING = CHOICES | LOOPS | CALLS
"""Higher-order operators whose bodies are compiled separately. Only the bodies move data."""

GENERATED = frozenset(("Conditional", "Switch", "WhileLoop", "InvokeSubgraph"))
"""The same operators as targets of fused groups (a ``cond`` is a ``Switch`` in torch 2.15)."""

NOT_FOLLOWED = "it loops or branches while it runs, and the record does not say which part of it a call runs"


def controls_flow(graph: Graph) -> bool:
    """Return True if a graph holds a loop or a branch."""
    return any(_name(node) in CHOICES | LOOPS for node in walk(graph))


def walk(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph and of its subgraphs."""
    yield from graph.nodes
    for _, body in graph.subgraphs:
        yield from walk(body)


def aten(graph: Graph, own: Callable[[Node], int]) -> Count:
    """Return the sum of ``own`` over the nodes of a graph of operators that a call runs."""
    bodies = dict(graph.subgraphs)
    attributes = {n.name: n.target for n in graph.nodes if n.op == "get_attr" and n.target in bodies}
    sums = {name: aten(body, own) for name, body in bodies.items()}  # once each, however often called
    parts: list[Count] = []
    placed: set[str] = set()
    for node in graph.nodes:
        taken = [attributes[name] for name in node.inputs if name in attributes]
        inner = [sums[name] for name in taken]
        if _name(node) in CHOICES and len(inner) > 1:
            parts.append(functools.reduce(lambda rest, one: count(either=[(one, rest)]), reversed(inner)))
        elif _name(node) in LOOPS and len(inner) == 2:
            check, body = inner
            parts += [check, count(iterations=[total((check, body))])]
        elif _name(node) in STEERING:
            parts += inner
        else:
            parts.append(Count(own(node)))
            continue
        placed.update(taken)
    return total((*parts, *(sums[name] for name in bodies if name not in placed)))


def generated(flow: Flow | None, own: Callable[[str], int]) -> Count:
    """Return the sum of ``own`` over the functions of the generated code that a call runs."""
    if flow is None:
        return Count(own(""))
    return total((
        Count(sum(own(body) for body in flow.functions)),
        *(count(iterations=[generated(one, own)]) for one in flow.iterations),
        *(count(either=[(generated(one, own), generated(two, own))]) for one, two in flow.branches),
    ))  # fmt: skip


def launches(code: Code, kernels: Iterable[Kernel]) -> Count:
    """Return how often a call of a generated module launches the given kernels."""
    if code.flow is None:
        return Count(sum(kernel.launches for kernel in kernels))
    launches_by_body: dict[str, int] = {}
    for kernel in kernels:
        for body in kernel.launch_functions or ("",) * kernel.launches:
            launches_by_body[body] = launches_by_body.get(body, 0) + 1
    return generated(code.flow, lambda body: launches_by_body.get(body, 0))


def bodies(flow: Flow) -> Iterator[str]:
    """Yield the names of all functions of a flow."""
    yield from flow.functions
    for inner in (*flow.iterations, *(way for pair in flow.branches for way in pair)):
        yield from bodies(inner)


def body_of(group: str, names: Iterable[str]) -> str:
    """Return the function that contains a group, from the group's name; ``""`` is ``call``."""
    return max((name for name in names if name and group.startswith(f"{name}_")), key=len, default="")


def _name(node: Node) -> str:
    return node.target.rpartition(".")[2] if node.kind == "control" else ""
