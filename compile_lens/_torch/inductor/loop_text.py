"""The text of Inductor's loops: each with its ranges, and its body as loads, operations and stores."""

from __future__ import annotations

import functools
from typing import Any

import torch.fx

from ...record.graph import Node, Tensor


def describe(loop: Node, scheduler_node: Any) -> str:
    """A loop in a few lines: what it is and makes, its ranges, the body of one iteration."""
    made = ", ".join(_made(name, t) for name, t in zip(_buffers(scheduler_node), loop.outputs))
    lines = [f"{loop.name}: {loop.target}" + (f"  ->  {made}" if made else "")]
    body = getattr(scheduler_node, "_body", None)
    if body is None or not hasattr(body, "root_block"):
        lines.append(f"    {_call(loop)}")
        return "\n".join(lines)
    ranges = ", ".join(f"{name} in {size}" for name, size in body.var_ranges.items())
    lines.append(f"    for {ranges}:" if ranges else "    once:")
    lines += _block(body.root_block.graph, body, "        ")
    return "\n".join(lines)


def _call(loop: Node) -> str:
    if loop.op == "nop" or loop.kind == "nop":
        return "nothing is computed: a result is picked out, or buffers are joined"
    return f"calls {loop.target}({', '.join(loop.inputs)})"


def _made(name: str, tensor: Tensor) -> str:
    return f"{name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}] {tensor.device}"


def _buffers(scheduler_node: Any) -> list[str]:
    return [b.get_name() for b in scheduler_node.get_outputs()]


def _block(graph: torch.fx.Graph, body: Any, indent: str) -> list[str]:
    """One line for each operation; index arithmetic stands where it is used."""
    indices: dict[torch.fx.Node, str] = {}
    lines: list[str] = []
    for node in graph.nodes:
        if node.op == "call_module":
            if node.target == "get_index":
                indices[node] = _shown(body.indexing_exprs.get(node.args[0], node.args[0]))
            else:
                inner = body.subblocks.get(node.target)
                called = f"{indent}{node.name} = {node.target}({_arguments(node.args, indices)})"
                lines.append(called + (":" if inner is not None else ""))
                if inner is not None:
                    lines += _block(inner.graph, body, indent + "    ")
        elif node.op == "call_method":
            lines.append(indent + _operation(node, indices))
        elif node.op == "output" and indent != "        ":
            lines.append(f"{indent}gives {_arguments(node.args, indices)}")
    return lines


# Sympy takes long to write an expression, and the loops of a program have the same few over and over.
_shown = functools.lru_cache(maxsize=4096, typed=True)(str)


def _operation(node: torch.fx.Node, indices: dict[torch.fx.Node, str]) -> str:
    args = node.args[1:]  # the first is the handler of operations
    if node.target == "load":
        return f"{node.name} = {args[0]}[{_text(args[1], indices)}]"
    if node.target in ("store", "store_reduction"):
        mode = args[3] if len(args) > 3 else node.kwargs.get("mode")
        sign = "+=" if mode == "atomic_add" else "="
        return f"{args[0]}[{_text(args[1], indices)}] {sign} {_text(args[2], indices)}"
    if node.target == "reduction":
        return f"{node.name} = {args[2]} over the reduced ranges of {_text(args[3], indices)}"
    named = "".join(f", {k}={_text(v, indices)}" for k, v in node.kwargs.items())
    return f"{node.name} = {node.target}({_arguments(args, indices)}{named})"


def _arguments(args: Any, indices: dict[torch.fx.Node, str]) -> str:
    return ", ".join(_text(a, indices) for a in args)


def _text(arg: Any, indices: dict[torch.fx.Node, str]) -> str:
    if isinstance(arg, torch.fx.Node):
        return indices[arg] if arg in indices else str(arg.name)
    if isinstance(arg, (tuple, list)):
        return f"({_arguments(arg, indices)})"
    return str(getattr(arg, "__name__", arg))
