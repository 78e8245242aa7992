"""Inductor: what is lowered, its loops before fusion, its groups after, and the code it writes.

With *code only* the module that Inductor wrote is kept as text and never imported: nothing is built.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from ..graph import Graph, Node, Ref, Tensor
from ..record import Code
from . import code as code_text
from . import fx, kinds, loops
from .hooks import current, hook
from .provenance import Lineage
from .recorder import Draft

RUN = "torch._inductor.graph:GraphLowering.run"
CODEGEN = "torch._inductor.scheduler:Scheduler.codegen"
MODULE = "torch._inductor.graph:GraphLowering._compile_to_module_lines"
KERNEL_ORIGINS = (
    "torch._inductor.debug:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.cpp:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.triton:set_kernel_post_grad_provenance_tracing",
)
BEFORE_FUSION = "torch._inductor.config:_pre_fusion_custom_pass"


def begin(draft: Draft, phase: str, lineage: Lineage) -> None:
    """Start recording the lowering of one phase."""
    draft.scratch["phase"] = {
        "lineage": lineage,
        "loops": [],
        "groups": [],
        "kernels": [],
        "loops text": [],
        "groups text": [],
    }


def end(draft: Draft, phase: str) -> None:
    """Close the recording of one phase: loops and groups become graphs."""
    state = draft.scratch.pop("phase", None)
    if state is None:
        return
    for stage, before in (("loops", f"{phase}.post_grad"), ("groups", f"{phase}.loops")):
        if state[stage]:
            text = "\n".join(state[f"{stage} text"])
            draft.put(Graph(stage, phase, before, tuple(state[stage]), text))


@hook(RUN)
def run(draft: Draft, real: Any, lowering: Any, *args: Any, **kwargs: Any) -> Any:
    """Lowering starts: the graph is what post-grad passes left. Bodies of ``cond`` lower in their own run."""
    state = draft.scratch.get("phase")
    if state is None or prefix(lowering):
        return real(lowering, *args, **kwargs)
    lineage: Lineage = state["lineage"]
    gm = lowering.module
    draft.put(
        fx.convert(gm, stage="post_grad", phase=draft.phase, before=draft.phase, origins=lineage.origins)
    )
    state["order"] = {n.name: i for i, n in enumerate(gm.graph.nodes)}
    draft.lap(f"{draft.phase}.post_grad")
    draft.doing = f"{draft.phase}.loops"
    return real(lowering, *args, **kwargs)


def prefix(lowering: Any) -> str:
    """``""`` for the graph itself, ``"true_graph_0/"`` while a body of a higher-order operator is lowered."""
    return f"{lowering.name}/" if hasattr(lowering, "parent") else ""


def before_fusion(users_pass: Any) -> Any:
    """A value for Inductor's ``_pre_fusion_custom_pass`` that records the loops; the user's own still runs."""

    def record(nodes: list[Any]) -> list[Any]:
        if users_pass is not None:
            nodes = users_pass(nodes)
        draft = current()
        state = draft.scratch.get("phase") if draft is not None else None
        if draft is None or state is None:
            return nodes
        lowering = _graph_in_progress()
        state["loops"] += _inputs(lowering, state["loops"])
        makers = _makers(nodes)
        for node in nodes:
            for part in _parts(node):
                loop = _loop(part, makers, lowering, state)
                state["loops"].append(loop)
                state["loops text"].append(loops.describe(loop, part))
        draft.lap(f"{draft.phase}.loops")
        draft.doing = f"{draft.phase}.groups"
        return nodes

    return record


@hook(CODEGEN)
def codegen(draft: Draft, real: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    """Code generation starts: the scheduler's nodes are the groups that fusion made."""
    state = draft.scratch.get("phase")
    if state is not None:
        lowering = _graph_in_progress()
        state["groups"] += _inputs(lowering, state["groups"])
        makers = _makers(scheduler.nodes)
        for node in scheduler.nodes:
            group = _group(node, makers, lowering)
            state["groups"].append(group)
            state["groups text"].append(_summary(group))
        draft.lap(f"{draft.phase}.groups")
        draft.doing = f"{draft.phase}.code"
    return real(scheduler, *args, **kwargs)


def _kernel_origins(
    draft: Draft, real: Any, schedule: Any, kernel_name: Any, *args: Any, **kwargs: Any
) -> Any:
    state = draft.scratch.get("phase")
    if state is not None and kernel_name:
        nodes = schedule if isinstance(schedule, (list, tuple)) else [schedule]
        names = [n for node in nodes for n in _operations(node)]
        state["kernels"].append((str(kernel_name), tuple(dict.fromkeys(names))))
    return real(schedule, kernel_name, *args, **kwargs)


for _path in KERNEL_ORIGINS:
    hook(_path)(_kernel_origins)


def _operations(node: Any) -> list[str]:
    """Names of the loops behind an entry of a kernel's schedule (which also holds markers)."""
    if hasattr(node, "get_nodes"):
        return [part.get_name() for part in node.get_nodes()]
    if hasattr(node, "get_operation_name"):
        return [node.get_operation_name()]
    return []


@hook(MODULE)
def module(draft: Draft, real: Any, lowering: Any, wrapper_code: Any, *args: Any, **kwargs: Any) -> Any:
    """The wrapper module is written: keep it, and stop here unless it is to be built."""
    state = draft.scratch.get("phase")
    if state is None:
        return real(lowering, wrapper_code, *args, **kwargs)
    phase = draft.phase
    kernels, note = code_text.kernels(
        wrapper_code.value, phase, state["kernels"], state["groups"], state["loops"]
    )
    draft.recorder.note(note)
    stamp = "built" if draft.recorder.build else "generated only"
    draft.put(Code(phase, wrapper_code.value, stamp, _device(lowering), kernels))
    draft.lap(f"{phase}.code")
    if draft.recorder.build:
        result = real(lowering, wrapper_code, *args, **kwargs)
        draft.lap(f"{phase}.build")
        return result
    return _not_built(lowering)


def _not_built(lowering: Any) -> Any:
    from . import not_built

    # Inductor reads the file of the module it believes to have imported; ours says what it is.
    lowering.cache_key = "compile_lens"
    lowering.cache_path = not_built.__file__
    lowering.cache_linemap = []
    return types.SimpleNamespace(call=not_built.call, __file__=not_built.__file__, runner=None)


def _device(lowering: Any) -> str:
    kinds = [d for d in dict.fromkeys(getattr(lowering, "device_types", ())) if d != "meta"]
    ranked = [d for d in kinds if d != "cpu"] or kinds
    return str(ranked[0]) if ranked else "cpu"


def _graph_in_progress() -> Any:
    from torch._inductor.virtualized import V

    return V.graph


def _parts(node: Any) -> list[Any]:
    """The loop nodes of a scheduler node; before fusion that is itself, or the members of a foreach."""
    return list(node.get_nodes())


def _inputs(lowering: Any, have: list[Node]) -> list[Node]:
    seen = {n.name for n in have}
    return [
        Node(
            name=name,
            op="placeholder",
            target=name,
            kind="input",
            outputs=_outputs([box]),
            origins=(prefix(lowering) + name,) if not prefix(lowering) else (),
            no_origin="" if not prefix(lowering) else "an input of the body of a higher-order operator",
        )
        for name, box in lowering.graph_inputs.items()
        if name not in seen and hasattr(box, "get_size")
    ]


def _makers(nodes: list[Any]) -> dict[str, str]:
    """Which scheduler node makes each buffer."""
    return {name: node.get_name() for node in nodes for name in node.get_buffer_names()}


def _loop(node: Any, makers: dict[str, str], lowering: Any, state: dict[str, Any]) -> Node:
    op, kind = _op_and_kind(node)
    names = _origin_names(node.node, op, lowering, state.get("order", {}))
    reads, writes = _traffic(node)
    return Node(
        name=node.get_name(),
        op=op,
        target=_target(node),
        kind=kind,
        compute=kind != "nop",
        args=_arguments([node], makers, lowering, node.get_name()),
        outputs=_outputs(node.node.get_outputs() if node.node is not None else ()),
        origins=names,
        no_origin="" if names else "Inductor kept no origin for it",
        reads=reads,
        writes=writes,
    )


def _group(node: Any, makers: dict[str, str], lowering: Any) -> Node:
    parts = _parts(node)
    found = [_op_and_kind(part)[1] for part in parts]
    ranked = [k for k in ("template", "scan", "reduction", "extern", "pointwise", "nop") if k in found]
    members = tuple(part.get_name() for part in parts)
    reads, writes = _traffic(node)
    alive = [b for part in parts if part.node is not None for b in part.node.get_outputs()]
    inside = {name for part in parts for name in part.get_buffer_names()}
    return Node(
        name=node.get_name(),
        op="group",
        target=" + ".join(dict.fromkeys(_target(part) for part in parts)),
        kind=ranked[0] if ranked else "other",
        compute=any(k != "nop" for k in found),
        args=_arguments(parts, makers, lowering, node.get_name(), inside),
        outputs=_outputs(alive),
        origins=members,
        members=members,
        reads=reads,
        writes=writes,
    )


def _op_and_kind(node: Any) -> tuple[str, str]:
    ir_node = node.node
    name = type(node).__name__
    if name.startswith("Nop"):
        return "nop", "nop"
    if type(ir_node).__name__ in ("MultiOutput", "MutationOutput"):
        return "nop", "nop"  # picks one result of an extern call: no launch of its own
    if name.startswith("Extern"):
        called = getattr(ir_node, "op_overload", None)
        if called is not None and kinds.kind_of(called) == "view":
            return "nop", "nop"  # a view that a library makes: no work, no launch
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
    """Names of the post-grad nodes that an IR node computes, in execution order.

    A call of a library or a template also lists what its inputs were made of; its own node is ``origin_node``.
    """
    if ir_node is None:
        return ()
    get = getattr(ir_node, "get_origins", None)
    origins = [
        n for n in (get() if get is not None else ir_node.origins) if n.op not in ("placeholder", "output")
    ]
    own = getattr(ir_node, "origin_node", None)
    if op in ("extern", "template", "nop"):
        called = [n for n in origins if n.target is getattr(ir_node, "op_overload", ir_node)]
        origins = [own] if own is not None else called or origins
    body = lowering.module.graph
    here = {n.name for n in origins if n.graph is body}
    ranked = sorted(here, key=lambda n: (order.get(n, len(order)), n))
    if ranked:
        return tuple(prefix(lowering) + n for n in ranked)
    return tuple(sorted({n.name for n in origins}, key=lambda n: (order.get(n, len(order)), n)))


def _traffic(node: Any) -> tuple[int | None, int | None]:
    """Modelled bytes by Inductor's own count: the worst inputs, the best code."""
    accesses = getattr(node, "get_read_write_buffer_accesses", None)
    if accesses is None:
        return None, None
    written = {dep.name for dep in node.read_writes.writes}
    moved = accesses(include_reads=True, include_writes=True)
    writes = sum(size for name, size in moved.items() if name in written)
    return int(sum(moved.values()) - writes), int(writes)


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
    found = []
    for buffer in buffers:
        layout = (
            getattr(buffer, "layout", None)
            if not hasattr(buffer, "data") or hasattr(buffer, "layout")
            else None
        )
        source = layout if layout is not None and hasattr(layout, "size") else buffer
        try:
            shape, dtype, device = buffer.get_size(), buffer.get_dtype(), buffer.get_device()
        except (NotImplementedError, AttributeError):  # several results, or none: a layout without a size
            continue
        stride = getattr(source, "stride", None)
        found.append(
            Tensor(
                dtype=str(dtype).removeprefix("torch."),
                shape=tuple(_size(s) for s in shape),
                stride=tuple(_size(s) for s in stride) if isinstance(stride, (list, tuple)) else None,
                device=str(device),
                nbytes=_nbytes(shape, dtype),
            )
        )
    return tuple(found)


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


def _summary(group: Node) -> str:
    """A group in a few lines; the bodies of its loops are in the text of the loops stage."""
    count = len(group.members)
    lines = [f"{group.name}: {group.kind}, " + (f"{count} loops fused into one" if count > 1 else "one loop")]
    lines += [f"    {member}" for member in group.members]
    if group.inputs:
        lines.append(f"    takes {', '.join(group.inputs)}")
    if group.reads is not None and group.writes is not None:
        lines.append(f"    reads {group.reads:,} bytes, writes {group.writes:,} bytes (modelled)")
    return "\n".join(lines)
