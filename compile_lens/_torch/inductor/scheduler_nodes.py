"""Inductor's scheduler nodes as nodes of the record (loops before fusion, groups after), and the text of loops."""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import torch
import torch.fx

from ...record.graph import Node, Ref, Tensor
from ..graphs import operator_kinds
from ..ground.quantized import buffer_dtype
from . import loop_accesses
from .fusion_reasons import HOST_NUMBERS


def prefix(lowering: Any) -> str:
    """Return the path of the graph being lowered: ``""`` for the main graph, ``"true_graph_0/"`` for a body of a
    higher-order operator, ``"true_graph_0/false_graph_0/"`` for a nested body, whose own name begins with the outer
    one's."""
    around = getattr(lowering, "parent", None)
    if around is None:
        return ""
    return f"{prefix(around)}{lowering.name.removeprefix(f'{around.name}_')}/"


def parts(node: Any) -> list[Any]:
    """Return the loop nodes of a scheduler node: before fusion the node itself, or the members of a foreach."""
    return list(node.get_nodes())


def inputs(lowering: Any, recorded_inputs: list[Node]) -> list[Node]:
    """Return the inputs of the graph being lowered, without those in ``recorded_inputs``."""
    seen = {n.name for n in recorded_inputs}
    return [
        Node(
            name=name,
            op="placeholder",
            target=name,
            kind="input",
            outputs=_outputs([box]),
            origins=() if prefix(lowering) else (name,),
            no_origin="an input of the body of a higher-order operator" if prefix(lowering) else "",
        )
        for name, box in lowering.graph_inputs.items()
        if name not in seen and hasattr(box, "get_size")
    ]


def makers(nodes: list[Any]) -> dict[str, str]:
    """Return the name of the scheduler node that computes each buffer."""
    return {name: node.get_name() for node in nodes for name in node.get_buffer_names()}


def loop(node: Any, makers: dict[str, str], lowering: Any, order: dict[str, int]) -> Node:
    """Return the record of a scheduler node before fusion; its origins are the post-grad nodes inlined into it."""
    op, kind = _op_and_kind(node)
    names = _origin_names(node.node, op, lowering, order)
    reads, writes = loop_accesses.moved(node, lowering)
    return Node(
        name=node.get_name(),
        op=op,
        target=_target(node),
        kind=kind,
        compute=kind != "nop",
        args=_arguments([node], makers, lowering, node.get_name()),
        outputs=_outputs(node.node.get_outputs() if node.node is not None else ()),
        origins=names,
        no_origin="" if names else "Inductor recorded no origin for it",
        reads=reads,
        writes=writes,
    )


class RecordedLoop(NamedTuple):
    """A loop's record, with its scheduler node and the objects on which the record depends."""

    node: Any
    ir_node: Any
    read_writes: Any
    recorded: Node


def recorded_loop(node: Any, recorded: Node) -> RecordedLoop:
    """Return a loop's record with the objects on which it depends."""
    return RecordedLoop(node, node.node, node.read_writes, recorded)


def group(node: Any, makers: dict[str, str], lowering: Any, before: dict[str, RecordedLoop]) -> Node:
    """Return the record of a scheduler node after fusion, whose origins are its loops in execution order. ``before``
    has the recorded loops by name."""
    loops = parts(node)
    kinds_and_targets = [
        _if_unchanged(part, before) or (_op_and_kind(part)[1], _target(part)) for part in loops
    ]
    kinds = [kind for kind, _ in kinds_and_targets]
    ranked = [k for k in ("template", "scan", "reduction", "extern", "pointwise", "nop") if k in kinds]
    members = tuple(part.get_name() for part in loops)
    alone = before.get(node.get_name())
    if alone is not None and alone.node is node and alone.read_writes is node.read_writes:
        reads, writes = alone.recorded.reads, alone.recorded.writes
    else:
        reads, writes = loop_accesses.moved(node, lowering)
    alive = [b for part in loops if part.node is not None for b in part.node.get_outputs()]
    inside = {name for part in loops for name in part.get_buffer_names()}
    return Node(
        name=node.get_name(),
        op="group",
        target=" + ".join(dict.fromkeys(target for _, target in kinds_and_targets)),
        kind=ranked[0] if ranked else "other",
        compute=any(k != "nop" for k in kinds),
        args=_arguments(loops, makers, lowering, node.get_name(), inside),
        outputs=_outputs(alive),
        origins=members,
        members=members,
        reads=reads,
        writes=writes,
    )


def _if_unchanged(node: Any, before: dict[str, RecordedLoop]) -> tuple[str, str] | None:
    """Return kind and target of a recorded loop; None if it has changed (a template was chosen)."""
    recorded = before.get(node.get_name())
    if recorded is None or recorded.node is not node or recorded.ir_node is not node.node:
        return None
    return recorded.recorded.kind, recorded.recorded.target


def _op_and_kind(node: Any) -> tuple[str, str]:
    ir_node = node.node
    name = type(node).__name__
    if name.startswith("Nop"):
        return "nop", "nop"
    if type(ir_node).__name__ in ("MultiOutput", "MutationOutput", *HOST_NUMBERS):
        return "nop", "nop"  # selects one result of an extern call or a number, and launches nothing
    if name.startswith("Extern"):
        called = getattr(ir_node, "op_overload", None)
        if called is not None and operator_kinds.kind_of(called) in ("view", "allocation"):
            return "nop", "nop"  # a view or an allocation by a library, which launches nothing
        return "extern", "extern"
    if node.is_template():
        return "template", "template"
    data = getattr(ir_node, "data", None)
    if type(data).__name__ in ("Scan", "Sort"):
        return "loop", "scan"
    return "loop", "reduction" if node.is_reduction() else "pointwise"


def _target(node: Any) -> str:
    ir_node = node.node
    if ir_node is None:
        return type(node).__name__
    data = getattr(ir_node, "data", None)
    name = type(data if data is not None else ir_node).__name__
    kernel = getattr(ir_node, "python_kernel_name", None)
    op = getattr(ir_node, "op_overload", None)
    if op is not None:
        return str(op)
    if isinstance(kernel, str) and kernel:
        return kernel
    ranges = getattr(data, "ranges", None)
    if ranges is None:
        return name
    sizes = " × ".join(str(r) for r in ranges) or "1"
    over = getattr(data, "reduction_ranges", None)
    kind = getattr(data, "reduction_type", None)
    if over:
        return f"{name} {kind} over {' × '.join(str(r) for r in over)}, for {sizes}"
    return f"{name} {sizes}"


def _origin_names(ir_node: Any, op: str, lowering: Any, order: dict[str, int]) -> tuple[str, ...]:
    """Return the names of the post-grad nodes that an IR node computes, in execution order.

    The origins of a library call or template also include the sources of its inputs; its own node is ``origin_node``,
    unless a later in-place operator, which is not among the origins, replaced that.
    """
    if ir_node is None:
        return ()
    get = getattr(ir_node, "get_origins", None)
    origins = [
        n for n in (get() if get is not None else ir_node.origins) if n.op not in ("placeholder", "output")
    ]
    own = loop_accesses.own_node(ir_node)
    if op in ("extern", "template", "nop"):
        called = [n for n in origins if _is_called(n, getattr(ir_node, "op_overload", None))]
        if type(ir_node).__name__ == "UserDefinedTritonKernel":  # without the sources of its inputs
            called = [n for n in origins if isinstance(n.target, torch._ops.HigherOrderOperator)]
        origins = [own] if own is not None else called or (_last(origins) if op == "extern" else origins)
    body = lowering.module.graph
    here = {n.name for n in origins if n.graph is body}
    names = here or {n.name for n in origins}  # a body may have nodes of the outer graph only
    ranked = sorted(names, key=lambda n: (order.get(n, len(order)), n))
    if op == "template" and here:
        calls = [n for n in origins if isinstance(n.target, torch._ops.HigherOrderOperator)]
        own = own or (calls[0] if len(calls) == 1 else None)
        ranked = [*(_inlined_operators(own, lowering.module) if own is not None else ()), *ranked]
    return tuple((prefix(lowering) if here else "") + n for n in ranked)


def _is_called(node: torch.fx.Node, operator: Any) -> bool:
    """Return True if a library call runs the node's operator in any overload: for ``sort`` Inductor calls
    ``sort.stable``, for ``scatter_reduce`` the in-place one."""
    if not isinstance(operator, torch._ops.OpOverload) or not isinstance(node.target, torch._ops.OpOverload):
        return False
    return operator_kinds.base_name(node.target).removesuffix("_") == operator_kinds.base_name(
        operator
    ).removesuffix("_")


def _last(origins: list[torch.fx.Node]) -> list[torch.fx.Node]:
    """Return the one node that the others lead to, as sources of its inputs; all nodes if there are several such. For
    ``scatter_add`` Inductor calls an operator with another name."""
    sinks = [node for node in origins if not any(user in origins for user in node.users)]
    return sinks if len(sinks) == 1 else origins


def _inlined_operators(own: torch.fx.Node, gm: torch.fx.GraphModule) -> list[str]:
    """Return the operators of the bodies inlined in a template's kernel (FlexAttention). ``own`` is the call, or the
    ``getitem`` of a result."""
    call = own.all_input_nodes[0] if own.target is operator.getitem else own
    bodies = [
        (str(node.target), getattr(gm, str(node.target), None))
        for node in call.all_input_nodes
        if node.op == "get_attr"
    ]
    return [
        f"{name}/{node.name}"
        for name, body in bodies
        if isinstance(body, torch.fx.GraphModule)
        for node in body.graph.nodes
        if node.op == "call_function"
    ]


def _arguments(
    parts: list[Any], makers: dict[str, str], lowering: Any, own: str, inside: set[str] | None = None
) -> tuple[Ref, ...]:
    names: dict[str, None] = {}
    for part in parts:
        for dep in sorted(part.read_writes.reads, key=lambda d: str(d.name)):
            if inside is not None and dep.name in inside:
                continue
            if dep.name in makers and makers[dep.name] != own:
                names[makers[dep.name]] = None
            elif dep.name in lowering.graph_inputs and hasattr(lowering.graph_inputs[dep.name], "get_size"):
                names[dep.name] = None
    return tuple(Ref(n) for n in names)


def _outputs(buffers: Any) -> tuple[Tensor, ...]:
    tensors = []
    for buffer in buffers:
        layout = getattr(buffer, "layout", None)
        source = layout if layout is not None and hasattr(layout, "size") else buffer
        try:
            shape, dtype, device = buffer.get_size(), buffer_dtype(buffer), buffer.get_device()
        except (NotImplementedError, AttributeError):  # several results, or none: a layout without a size
            continue
        stride = getattr(source, "stride", None)
        tensors.append(
            Tensor(
                dtype=str(dtype).removeprefix("torch."),
                shape=tuple([_size(s) for s in shape]),
                stride=tuple([_size(s) for s in stride]) if isinstance(stride, (list, tuple)) else None,
                device=str(device),
                nbytes=_nbytes(shape, dtype),
            )
        )
    return tuple(tensors)


def _size(expr: Any) -> int | str:
    try:
        return int(expr)
    except TypeError:  # a symbol
        return str(expr)


def _nbytes(shape: Any, dtype: torch.dtype) -> int | None:
    total: int = dtype.itemsize
    for length in shape:
        known = _size(length)
        if isinstance(known, str):
            return None
        total *= known
    return total


def summary(group: Node) -> str:
    """Return a short text for a group; the bodies of its loops are in the text of the loops stage."""
    count = len(group.members)
    lines = [f"{group.name}: {group.kind}, " + (f"{count} loops fused into one" if count > 1 else "one loop")]
    lines += [f"    {member}" for member in group.members]
    if group.inputs:
        lines.append(f"    takes {', '.join(group.inputs)}")
    if group.reads is not None and group.writes is not None:
        lines.append(f"    reads {group.reads:,} bytes, writes {group.writes:,} bytes (modelled)")
    return "\n".join(lines)


def describe(loop: Node, scheduler_node: Any) -> str:
    """Return a short text for a loop: its kind and results, its ranges, the body of one iteration."""
    results = ", ".join(_result_text(name, t) for name, t in zip(_buffers(scheduler_node), loop.outputs))
    lines = [f"{loop.name}: {loop.target}" + (f"  ->  {results}" if results else "")]
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
        return (
            "nothing is computed: a result is picked out, a number is read or checked, or buffers are joined"
        )
    return f"calls {loop.target}({', '.join(loop.inputs)})"


def _result_text(name: str, tensor: Tensor) -> str:
    return f"{name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}] {tensor.device}"


def _buffers(scheduler_node: Any) -> list[str]:
    return [b.get_name() for b in scheduler_node.get_outputs()]


def _block(graph: torch.fx.Graph, body: Any, indent: str) -> list[str]:
    """Return one line per operation, with index expressions inserted where they are used."""
    indices: dict[torch.fx.Node, str] = {}
    lines: list[str] = []
    for node in graph.nodes:
        if node.op == "call_module":
            if node.target == "get_index":
                indices[node] = _index_text(body.indexing_exprs.get(node.args[0], node.args[0]))
            else:
                inner = body.subblocks.get(node.target)
                called = f"{indent}{node.name} = {node.target}({_argument_texts(node.args, indices)})"
                lines.append(called + (":" if inner is not None else ""))
                if inner is not None:
                    lines += _block(inner.graph, body, indent + "    ")
        elif node.op == "call_method":
            lines.append(indent + _operation(node, indices))
        elif node.op == "output" and indent != "        ":
            lines.append(f"{indent}gives {_argument_texts(node.args, indices)}")
    return lines


# Sympy is slow to print an expression, and a program's loops repeat the same few.
_index_text = functools.lru_cache(maxsize=4096, typed=True)(str)


def _operation(node: torch.fx.Node, indices: dict[torch.fx.Node, str]) -> str:
    args = node.args[1:]  # the first is the operations handler
    if node.target == "load":
        return f"{node.name} = {args[0]}[{_plain_text(args[1], indices)}]"
    if node.target in ("store", "store_reduction"):
        mode = args[3] if len(args) > 3 else node.kwargs.get("mode")
        sign = "+=" if mode == "atomic_add" else "="
        return f"{args[0]}[{_plain_text(args[1], indices)}] {sign} {_plain_text(args[2], indices)}"
    if node.target == "reduction":
        return f"{node.name} = {args[2]} over the reduced ranges of {_plain_text(args[3], indices)}"
    named = "".join(f", {k}={_plain_text(v, indices)}" for k, v in node.kwargs.items())
    return f"{node.name} = {node.target}({_argument_texts(args, indices)}{named})"


def _argument_texts(args: Any, indices: dict[torch.fx.Node, str]) -> str:
    return ", ".join(_plain_text(a, indices) for a in args)


def _plain_text(arg: Any, indices: dict[torch.fx.Node, str]) -> str:
    if isinstance(arg, torch.fx.Node):
        return indices[arg] if arg in indices else str(arg.name)
    if isinstance(arg, (tuple, list)):
        return f"({_argument_texts(arg, indices)})"
    return str(getattr(arg, "__name__", arg))
