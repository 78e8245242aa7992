"""Conversion of torch.fx graphs to records, done at once, since torch changes a graph later."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.fx import Node as FxNode

from ...record.graph import Frame, Graph, Node
from ..ground.source_places import as_compiled, column, frames, is_torch_file
from . import accesses, operator_kinds
from .fx_values import ran, ref, target_text, tensors, value
from .graph_text import readable

Origins = Callable[[torch.fx.Node], "tuple[tuple[str, ...], str]"]
"""A function that returns the names of a node's origins in the stage before, and the reason if there are none."""

NO_LINE = "compile_lens_no_line"
"""Key in ``node.meta`` of a node without a line, whatever its stack trace; copies of the node keep it."""

Moved = Callable[[torch.fx.Node], "tuple[int | None, int | None]"]
"""A function that returns the bytes that a node reads and writes by itself."""


def convert(
    gm: torch.fx.GraphModule,
    *,
    stage: str,
    phase: str = "",
    before: str = "",
    origins: Origins | None = None,
    text: str | None = None,
) -> Graph:
    """Return a copy of ``gm`` as plain data.

    Args:
        origins: the origins of each node; None for the first stage.
        text: the graph's text; generated if not given.
    """
    moved = accesses.Accesses().of
    subgraphs = []
    nodes = []
    for node in gm.graph.nodes:
        nodes.append(_node(node, origins, moved))
        if node.op == "get_attr":
            inner = _attribute(gm, str(node.target))
            if isinstance(inner, torch.fx.GraphModule):
                inner_origins = _Inside(origins, node) if origins is not None else None
                subgraphs.append(
                    (
                        str(node.target),
                        convert(
                            inner, stage=stage, phase=phase, before=before, origins=inner_origins, text=""
                        ),
                    )
                )
    return Graph(
        stage=stage,
        phase=phase,
        before=before,
        nodes=tuple(nodes),
        text=readable(gm) if text is None else text,
        subgraphs=tuple(subgraphs),
    )


class _Inside:
    """Origins of the nodes of a body; a node without any has those of the operator that owns the body."""

    def __init__(self, origins: Origins, owner: torch.fx.Node) -> None:
        self._origins = origins
        self._owner = owner

    def __call__(self, node: torch.fx.Node) -> tuple[tuple[str, ...], str]:
        names, _ = self._origins(node)
        if not names and node.op not in ("placeholder", "output"):
            names, _ = self._origins(self._owner)
        return names, "" if names else f"inside the body {self._owner.name} of a higher-order operator"

    def derivative(self, node: torch.fx.Node) -> bool:
        """Return True if autograd created the operator that owns the body."""
        derivative = getattr(self._origins, "derivative", None)
        return derivative is not None and bool(derivative(self._owner))


def _attribute(gm: torch.fx.GraphModule, target: str) -> Any:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part, None)
    return value


def _node(node: torch.fx.Node, origins: Origins | None, moved: Moved) -> Node:
    kind = _kind(node)
    outputs = tensors(node)
    stack = frames(node.meta.get("stack_trace"))
    names, reason = origins(node) if origins is not None else ((), "" if stack else _no_line_reason(node))
    if NO_LINE in node.meta:
        stack = ()
    derivative = getattr(origins, "derivative", None)
    compute = (
        node.op.startswith("call_")
        and operator_kinds.is_work(kind)
        and bool(outputs or kind in ("mutation", "control", "custom") or ran(node) is not None)
    )
    reads, writes = moved(node) if compute else (None, None)
    path, module_type = _module(node)
    return Node(
        name=node.name,
        op=node.op,
        target=_target(node),
        kind=kind,
        compute=compute,
        args=tuple([ref(a.name) if type(a) is FxNode else value(a) for a in node._args]),
        kwargs=tuple([(k, value(v)) for k, v in node._kwargs.items()]) if node._kwargs else (),
        outputs=outputs,
        module=path,
        module_type=module_type,
        frames=stack,
        origins=names,
        no_origin=reason,
        derivative=derivative is not None and derivative(node),
        reads=reads,
        writes=writes,
    )


def _no_line_reason(node: torch.fx.Node) -> str:
    if node.op in ("placeholder", "output"):
        return ""
    return "no line of the program: the captured callable is torch's own, and Dynamo hides its frames"


def _kind(node: torch.fx.Node) -> str:
    if node.op == "placeholder":
        return "input"
    if node.op == "output":
        return "output"
    if node.op == "get_attr":
        return "constant"
    if node.op == "call_module":
        return "other"
    return operator_kinds.kind_of(ran(node) or node.target)


def _target(node: torch.fx.Node) -> str:
    inner = ran(node)
    return target_text(node.target) if inner is None else f"{node.target}({target_text(inner)})"


def _module(node: torch.fx.Node) -> tuple[str, str]:
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return "", ""
    entry = next(reversed(stack.values()))
    path, kind = entry if type(entry) is tuple else (entry, "")
    named = kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2]
    return module_path(path if type(path) is str else str(path)), named


@functools.lru_cache(maxsize=4096)
def module_path(path: str) -> str:
    """Return ``layers.0`` for ``L['self']._modules['layers']._modules['0']`` and the like."""
    path = re.sub(r"^L\[['\"]?\w+['\"]?\]", "", path)
    path = re.sub(r"\._modules\[['\"]([^'\"]*)['\"]\]", r".\1", path)
    path = re.sub(r"\[['\"]([^'\"]*)['\"]\]", r".\1", path)
    path = re.sub(r"\[(\d+)\]", r".\1", path)
    path = re.sub(r"\.(_modules|_parameters|_buffers)\b", "", path)
    path = re.sub(r"\(.*\)$", "", path)
    path = re.sub(r"@\d+$", "", path)
    return path.lstrip(".")


def frame_of(summary: Any) -> Frame:
    """Return a ``traceback.FrameSummary`` as a Frame."""
    file, line = str(summary.filename), int(summary.lineno or 0)
    last = getattr(summary, "end_lineno", None) or line
    frame = Frame(
        file,
        line,
        str(summary.name),
        (summary.line or "").strip(),
        column(file, line, getattr(summary, "colno", None)),
        column(file, last, getattr(summary, "end_colno", None)),
        is_torch_file(file),
    )
    return as_compiled(frame)


def aliases_inputs(gm: torch.fx.GraphModule) -> bool:
    """Return True if a Dynamo graph returns tensors that need a gradient and all share the memory of inputs."""
    output = next(n for n in reversed(gm.graph.nodes) if n.op == "output")
    inputs = {_storage(n.meta.get("example_value")) for n in gm.graph.nodes if n.op == "placeholder"} - {None}
    outputs = (n.meta.get("example_value") for n in output.all_input_nodes)
    differentiable = [x for x in outputs if isinstance(x, torch.Tensor) and x.requires_grad]
    return bool(differentiable) and all(_storage(x) in inputs for x in differentiable)


def _storage(value: Any) -> int | None:
    """Return a number that identifies a tensor's storage; None if it has none (a wrapper, a sparse tensor)."""
    try:
        return int(value.untyped_storage()._cdata) if isinstance(value, torch.Tensor) else None
    except (RuntimeError, NotImplementedError):
        return None
