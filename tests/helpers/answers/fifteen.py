"""Answers to the exercises of lesson 15."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .common import Made, Mistake


def call(module: Any, target: Any, node: Any, args: tuple[Any, ...]) -> None:
    """Replace a node with a call."""
    with module.graph.inserting_before(node):
        node.replace_all_uses_with(module.graph.call_function(target, args))


def cleaned(module: Any) -> Any:
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def once(module: Any, *pairs: Any) -> Any:
    """Remove one of two equal operators."""
    for node in module.graph.nodes:
        if node.target in pairs and node.args[0].target is node.target:
            inner = node.args[0]
            node.replace_all_uses_with(inner if node.target is torch.relu else inner.args[0])
    return module


def by_pattern(module: Any) -> Any:
    torch.fx.replace_pattern(module, lambda x: torch.relu(torch.relu(x)), lambda x: torch.relu(x))
    torch.fx.replace_pattern(module, lambda x: torch.neg(torch.neg(x)), lambda x: x)
    return module.forward


def one_call(module: Any) -> Any:
    (node,) = module.graph.find_nodes(op="call_function", target=torch.add)
    product, other = node.args
    call(module, torch.addmm, node, (other, *product.args))
    return cleaned(module).forward


def swapped(module: Any) -> Any:
    torch.fx.replace_pattern(
        module, lambda x: torch.add(torch.mm(x, x), x), lambda x: torch.addmm(x, x.t(), x)
    )
    return module


def uncleaned(module: Any) -> Any:
    (node,) = module.graph.find_nodes(op="call_function", target=torch.add)
    product, other = node.args
    call(module, torch.addmm, node, (other, *product.args))
    module.recompile()
    return module.forward


def claimed(module: Any) -> Any:
    """torch.addmm, eliminate_dead_code, recompile: in words alone."""
    return module.forward


RIGHT: dict[str, list[Made]] = {
    "15.1": [F.gelu, lambda x: torch.softmax(x, -1), lambda x: F.layer_norm(x, (64,)), F.mish],
    "15.2": [
        lambda module: cleaned(once(module, torch.relu, torch.neg)).forward,
        lambda module: cleaned(once(module, torch.relu, torch.neg)),
        by_pattern,
        lambda module: lambda x: torch.relu(x) + x,
    ],
    "15.3": [
        one_call,
        lambda module: lambda x: torch.addmm(x, x, x),
        lambda module: lambda *xs: (torch.addmm(xs[0], xs[0], xs[0]),),
    ],
}

MISLED: dict[str, list[Mistake]] = {
    "15.1": [
        (torch.sin, "1 ATen operator; required: at least 5", "Which one is a longer formula"),
        (F.silu, "4 ATen operators; required: at least 5", "Which one is a longer formula"),
        (
            lambda x: F.gelu(x) + 1,
            "2 calls of Dynamo; required: exactly 1",
            "Each torch function that you call",
        ),
        (
            lambda x: x.sin().cos().exp().tanh().sin(),
            "5 calls of Dynamo",
            "Each torch function that you call",
        ),
        (lambda x: F.gelu(x) if x.sum() > 0 else x, "graph break", ""),
        (lambda x: F.gelu(x.view(8)), "RuntimeError", ""),
    ],
    "15.2": [
        (lambda module: module.forward, "5 operators of eager PyTorch; required: exactly 2", "All operators"),
        (lambda module: once(module, torch.relu, torch.neg), "5 operators", "All operators still run"),
        (lambda module: cleaned(once(module, torch.relu)), "4 operators", "One of the pairs is still there"),
        (lambda module: cleaned(once(module, torch.neg)), "3 operators", "One of the pairs is still there"),
        (lambda module: module.code, "it returns a str, which cannot be called", ""),
        (lambda module: module.recompile() and None, "cannot be called", ""),
        (lambda module: torch.relu, "It does not compute what was required", ""),
        (lambda module: lambda x: x + x, "It does not compute what was required", ""),
        (lambda module: module.graph.nothing, "AttributeError", ""),
        (claimed, "5 operators", "All operators still run"),
    ],
    "15.3": [
        (
            lambda module: module,
            "2 operators of eager PyTorch; required: exactly 1",
            "Which operator does both",
        ),
        (claimed, "2 operators", "one after the other"),
        (uncleaned, "3 operators", "one after the other"),
        (swapped, "It does not compute what was required", ""),
        (lambda module: torch.sin, "It does not compute what was required", ""),
        (lambda module: lambda x: torch.addmm(x, x, x, beta=2), "It does not compute what was required", ""),
        (lambda module: module.graph, "it returns a Graph, which cannot be called", ""),
        (lambda module, inputs: module, "it does not take as many inputs as the exercise has", ""),
        (lambda module: 1 / 0, "ZeroDivisionError", ""),
    ],
}
