"""Remedies for library calls: templates that ``max-autotune`` times in their place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from compile_lens.record.autotuning import TEMPLATES, no_template_reason
from compile_lens.record.capture import Record
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.record.kernel import USER_KERNEL

from . import operators

MAX_AUTOTUNE = "mode='max-autotune' times Inductor's own templates against the library"


def no_templates(capture: Record, operator: str) -> str:
    """Return why ``max-autotune`` has no template of an operator for the capture's device; ``""`` if it may have one
    for one of its calls."""
    if operator not in TEMPLATES:
        return "Inductor has no template of it"
    model = capture.target.model if capture.target is not None else None
    types = {
        node.outputs[0].dtype if node.outputs else ""
        for compilation in capture.compilations
        for stage, graph in compilation.graphs.items()
        if stage.endswith("post_grad")
        for node in graph.calls
        if operators.base_name(node.target.removeprefix("aten.").partition(".")[0]) == operator
    }
    reasons = [
        no_template_reason(capture.environment.target, model, operator, dtype) for dtype in types or {""}
    ]
    return reasons[0] if all(reasons) else ""


def template_remedy(capture: Record, operator: str) -> str:
    """Return how to try the templates of an operator; ``""`` if there are none or they were tried."""
    if no_templates(capture, operators.base_name(operator)) or times_templates(capture):
        return ""
    return MAX_AUTOTUNE if capture.target is None else f"{MAX_AUTOTUNE}, which needs the device"


def times_templates(capture: Record) -> bool:
    """Return True if the capture's options make Inductor time templates."""
    options = dict(capture.options.options)
    mode = capture.options.mode or ""
    return mode.startswith("max-autotune") or "True" in (
        options.get("max_autotune"),
        options.get("max_autotune_gemm"),
    )


MIN_REPEATED = 3
"""Fewest calls of one line for which a single batched call is proposed."""


@dataclass(frozen=True)
class RepeatedCall:
    """A matrix product that one line calls several times, independently, on operands of the same sizes.

    Attributes:
        frame: the line.
        operator: the operator (``mm``).
        count: number of calls.
    """

    frame: Frame
    operator: str
    count: int


def repeated_calls(capture: Record) -> tuple[RepeatedCall, ...]:
    """Return the repeated calls of forward and inference graphs, in their order.

    Layers of a model that run the same line do not count: each has its own module.
    """
    return tuple(
        call
        for compilation in capture.compilations
        for phase in ("forward", "inference")
        if (graph := compilation.graphs.get(f"{phase}.post_grad")) is not None
        for call in _repeated(graph)
    )


def _repeated(graph: Graph) -> Iterator[RepeatedCall]:
    nodes = {node.name: node for node in graph.nodes}
    groups: dict[object, list[Node]] = {}
    for node in graph.calls:
        if node.kind == "matmul" and (frames := node.innermost):
            shapes = tuple(nodes[name].shape for name in node.inputs if name in nodes)
            key = (frames[0].file, frames[0].line, frames[0].column, node.target, node.module, shapes)
            groups.setdefault(key, []).append(node)
    for calls in groups.values():
        if len(calls) >= MIN_REPEATED and not _any_follows(graph, {node.name for node in calls}):
            yield RepeatedCall(calls[0].innermost[0], operators.base_name(calls[0].target), len(calls))


def _any_follows(graph: Graph, names: Collection[str]) -> bool:
    """Return True if one of these nodes needs the result of another."""
    after: set[str] = set()
    for node in graph.nodes:  # in topological order
        follows = any(name in after or name in names for name in node.inputs)
        if follows and node.name in names:
            return True
        if follows:
            after.add(node.name)
    return False


def called_code(groups: Iterable[Node]) -> str:
    """Return the kind of code that extern groups call: "a library", "a custom operator"."""
    calls = dict.fromkeys(_called_code(group) for group in groups if group.kind == "extern")
    return " and ".join(calls) or LIBRARY


def _called_code(group: Node) -> str:
    return "a Triton kernel of the program" if group.target == USER_KERNEL else provider_of(group.target)


def provider_of(operator: str) -> str:
    """Return the provider of an operator that Inductor calls: torch or a library, a collective, or custom code."""
    space, dot, _ = operator.removeprefix("torch.ops.").partition(".")
    if space in _COLLECTIVES:
        return COLLECTIVE
    return CUSTOM if dot and space not in _LIBRARIES else LIBRARY


LIBRARY, COLLECTIVE, CUSTOM = "a library", "a collective", "a custom operator"


def is_library(group: Node) -> bool:
    """Return True if a group calls a library, not a collective or the user's own kernel or operator."""
    return group.kind == "extern" and _called_code(group) == LIBRARY


def is_custom(group: Node) -> bool:
    """Return True if a group calls a custom operator of the user, not PyTorch's or a library's."""
    return group.kind == "extern" and _called_code(group) == CUSTOM


_COLLECTIVES = frozenset(
    "c10d c10d_functional _c10d_functional _c10d_functional_autograd symm_mem _dtensor bucketing".split()
)
_LIBRARIES = frozenset(
    "aten prims extern_kernels torch mkl mkldnn mkldnn_prepacked onednn quantized _quantized quantized_decomposed "
    "quantization ao sparse semi_structured inductor inductor_prims rngprims debugprims prim _native static_runtime "
    "profiler streams fsdp device_mesh export debug_mode_ops flex_lib torch_attn torch_nn".split()
)
"""Namespaces of torch's own operators."""
