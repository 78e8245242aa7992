"""Recognition of calls of the program that Dynamo decomposes while it traces.

Eager PyTorch runs ``x.addcmul_(a, b, value=2)`` as one operator; Dynamo's graph has three. The patterns below follow
torch's ``TensorVariable``, ``TorchInGraphFunctionVariable`` and polyfills. The operators of one call share a stack
trace, whose text names the call.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from ..ground.source_places import frames, is_torch_file
from .eager_bodies import UnknownOperators
from .fx_values import target_text

_NODE = torch.fx.Node


@dataclass(frozen=True)
class Call:
    """A call as the program wrote it, with nodes as values; ``parts`` are its other nodes in Dynamo's graph."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    parts: tuple[torch.fx.Node, ...] = ()


def calls(graph: torch.fx.Graph) -> dict[torch.fx.Node, Call | None]:
    """Return each call by the node that ends it, and None for the nodes before it.

    Raises:
        UnknownOperators: the graph has such a pattern, but the call is ambiguous.
    """
    call_at: dict[torch.fx.Node, Call | None] = {}
    for node in graph.nodes:
        for form in (_ternary, _addcdiv, _scaled_add, _foreach_lerp):
            call = form(node)
            if call is not None:
                call_at |= dict.fromkeys(call.parts)
                call_at[node] = call
                break
    return call_at


def other_path(graph: torch.fx.Graph) -> str:
    """Return a note if the code runs other operators when it is not compiled, as torch's optimizers and NumPy calls do;
    else ``""``."""
    arrays = dict.fromkeys(name for node in graph.nodes if (name := _numpy_name(node)))
    if arrays:
        names = [*arrays]
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        return (
            f"of the captured graph; not compiled, NumPy runs {shown}, and PyTorch dispatches nothing for it"
        )
    for trace in dict.fromkeys(map(_trace, graph.nodes)):  # many operators have the same line
        if "optim" in trace:
            for frame in frames(trace):
                if _has_other_path(frame.file, frame.function):
                    return f"of the captured graph; not compiled, {frame.function} of torch.optim runs other operators"
    return ""


def _numpy_name(node: torch.fx.Node) -> str:
    """Return the NumPy function that a node replaces; ``""`` for other nodes."""
    kind = type(node.target)
    if kind.__module__ != "torch._dynamo.utils" or not kind.__name__.startswith("numpy_"):
        return ""
    return target_text(node.target).rpartition(".")[2].removeprefix("wrapped_")


_PATHS = ("_get_value(", "if capturable:")
"""Text of functions that run other operators under the compiler: there ``_get_value`` returns tensors instead of
numbers, and Dynamo sets ``capturable``."""


@functools.cache
def _has_other_path(file: str, function: str) -> bool:
    if not is_torch_file(file):
        return False
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.optim.") and getattr(module, "__file__", None) == file:
            inner = getattr(module, function, None)
            if not isinstance(
                inner, types.FunctionType
            ):  # a method such as step calls the computing functions
                return False
            try:
                text = inspect.getsource(inspect.unwrap(inner))
            except OSError:
                return True  # it may have several paths
            return any(path in text for path in _PATHS)
    return False


def _ternary(node: torch.fx.Node) -> Call | None:
    """Return ``x.addcmul_(a, b, value=v)`` or ``x.addcdiv_``: a product or quotient, ``prims.fma``, ``copy_``."""
    if node.op != "call_method" or node.target != "copy_" or not _is_fma(source := node.args[1]):
        return None
    product, value, base = source.args
    names = {torch.mul: "addcmul_", torch.div: "addcdiv_"}
    own = isinstance(product, _NODE) and product.target in names and base is node.args[0]
    if not own or isinstance(value, _NODE) or not _only(product, source) or not _only(source, node):
        raise UnknownOperators(
            "Dynamo turned a call whose factor is a tensor into a fused multiply-add: its graph does not show "
            "which operators eager PyTorch runs for it"
        )
    method = getattr(torch.Tensor, names[product.target])
    return Call(method, (base, *product.args), {"value": value}, (product, source))


def _addcdiv(node: torch.fx.Node) -> Call | None:
    """Return ``torch.addcdiv(x, a, b, value=v)``: a quotient, a product, a sum."""
    if node.target is not torch.add or not _of_call(node, "addcdiv("):
        return None
    base, product = node.args
    if not isinstance(product, _NODE) or product.target is not torch.mul or not _same(product, node):
        return None
    quotient, value = product.args
    if not isinstance(quotient, _NODE) or quotient.target is not torch.div or not _same(quotient, node):
        return None
    if isinstance(value, _NODE) or not _only(quotient, product) or not _only(product, node):
        return None
    return Call(torch.addcdiv, (base, *quotient.args), {"value": value}, (quotient, product))


def _scaled_add(node: torch.fx.Node) -> Call | None:
    """Return ``x.add_(a, alpha=v)`` in torch 2.11: a product, ``add_``."""
    if node.op != "call_method" or node.target != "add_" or not _of_call(node, "alpha="):
        return None
    product = node.args[1]
    if node.kwargs or not isinstance(product, _NODE) or product.target is not torch.mul:
        return None
    other, value = product.args
    if isinstance(value, _NODE) or not _same(product, node) or not _only(product, node):
        return None
    return Call(torch.Tensor.add_, (node.args[0], other), {"alpha": value}, (product,))


def _foreach_lerp(node: torch.fx.Node) -> Call | None:
    """Return ``torch._foreach_lerp_(x, ends, weight)``: differences, weights, ``torch._foreach_addcmul_``."""
    if node.target is not torch._foreach_addcmul_ or not _of_call(node, "_foreach_lerp_("):
        return None
    differences = node.args[2]
    sources = {item.args[0] for item in differences if isinstance(item, _NODE) and _same(item, node)}
    if len(sources) != 1:
        return None
    (difference,) = sources
    if difference.target is not torch._foreach_sub:
        return None
    parts = tuple(_between(difference, node))
    if any(part.target is torch.where for part in parts):
        raise UnknownOperators(
            "Dynamo decomposed torch._foreach_lerp_ with a tensor weight: its graph does not show which "
            "operators eager PyTorch runs for it"
        )
    ends, starts = difference.args
    return Call(torch._foreach_lerp_, (starts, ends, 0.5), {}, parts)  # the weight does not affect counts


def _between(first: torch.fx.Node, last: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """Yield the nodes of a call from ``first``, without ``last``."""
    node = first
    while node is not last:
        if _same(node, last):
            yield node
        node = node.next


def _is_fma(value: Any) -> bool:
    return isinstance(value, _NODE) and str(value.target) == "prims.fma.default"


def _only(node: torch.fx.Node, user: torch.fx.Node) -> bool:
    return list(node.users) == [user]


def _trace(node: torch.fx.Node) -> str:
    return str(node.meta.get("stack_trace") or "")


def _same(node: torch.fx.Node, other: torch.fx.Node) -> bool:
    return _trace(node) == _trace(other) != ""


def _of_call(node: torch.fx.Node, words: str) -> bool:
    """Return True if the innermost line of a node contains ``words``."""
    lines = [frame.text for frame in frames(_trace(node))]
    return bool(lines) and words in lines[-1]
