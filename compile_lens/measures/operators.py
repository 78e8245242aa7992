"""Uses of an operator in a capture: in the graphs handed to Inductor, after its passes, in library calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.support import NO_TYPES, UnsupportedOperator

from .address import Address, walk
from .quantities import phases


@dataclass(frozen=True)
class Use:
    """One use of an operator: its address, and its node (``None`` for a library call)."""

    address: Address
    name: str
    node: Node | None = None


def uses(capture: Record, op: str = "", phase: str = "") -> tuple[list[Use], list[str]]:
    """Return the uses of compute operators named ``op`` (``""``: all), and the reasons why some may not be known.

    A name without an overload means all overloads; one without a namespace means any namespace.
    """
    op = plain_name(op)
    uses_of_op: list[Use] = []
    unknown: list[str] = []
    for compilation in capture.compilations:
        for one in phases(capture):
            if (phase and phase != one) or one not in compilation.phases:
                continue
            for key in (one, f"{one}.post_grad"):
                graph = compilation.graphs.get(key)
                if graph is None and key != one and not compilation.graphs[one].calls:
                    continue  # a graph without operations is not lowered
                if graph is None:
                    reason = {m.stage: m.message for m in compilation.missing}
                    unknown.append(
                        f"{compilation.id}: {reason.get(key, f'stage {key} is not in the record')}"
                    )
                    continue
                for path, node in walk(graph):
                    if (
                        node.op == "call_function"
                        and (node.compute or op)
                        and matches_operator(operator(node.target), op)
                    ):
                        uses_of_op.append(
                            Use((compilation.id, key, path + node.name), operator(node.target), node)
                        )
            uses_of_op += _calls(compilation.id, compilation.code.get(one), op)
    for missing in capture.missing:
        stage = missing.stage.rpartition(" ")[2]
        if stage in ("forward", "backward", "inference") and phase in ("", stage):
            unknown.append(missing.message)
    return uses_of_op, list(dict.fromkeys(unknown))


def _calls(cid: str, code: Code | None, op: str) -> Iterator[Use]:
    for kernel in code.kernels if code is not None else ():
        name = called(kernel.name)
        if op and kernel.language == "extern" and matches_operator(name, op):
            for group in kernel.groups[:1]:
                yield Use((cid, f"{kernel.phase}.groups", group), name)


def plain_name(op: str) -> str:
    """Return an operator name in the form that records use: ``aten.exp`` for ``"torch.ops.aten.exp"`` and
    ``"aten::exp"``."""
    name = op.strip().removeprefix("torch.ops.").removeprefix("higher_order.")
    return name.replace("::", ".")


def operator(target: str) -> str:
    """Return an operator's name without ``.default``: ``aten.sin`` for ``aten.sin.default``."""
    return target.removesuffix(".default")


def called(name: str) -> str:
    """Return the function of a library call: ``aten.sort.stable``, ``extern_kernels.mm``."""
    return operator(name.partition("#")[0].removeprefix("torch.ops."))


def base_name(target: str) -> str:
    """Return ``sort`` for ``aten.sort.stable``, ``mm`` for ``extern_kernels.mm``."""
    parts = operator(target).split(".")
    return parts[-1] if len(parts) < 3 else parts[-2]


def matches_operator(name: str, op: str) -> bool:
    """Return True if an operator matches a name: ``aten.sort.stable`` is ``aten.sort`` and ``sort``."""
    if not op:
        return True
    compute_nodes, parts = operator(op).split("."), name.split(".")
    return compute_nodes in (parts[: len(compute_nodes)], parts[1 : 1 + len(compute_nodes)])


def is_alternative(kernel: Kernel, other: Kernel) -> bool:
    """Return True if one line of the module launches either of the two kernels, never both."""
    return other.name != kernel.name and not {*kernel.launch_lines}.isdisjoint({*other.launch_lines} - {0})


def recomputing_kernels(code: Code, nodes: Iterable[str]) -> Callable[[Kernel, str], tuple[str, ...]]:
    """Return a function that gives, for a kernel and one of its operators, the other kernels that also compute it.

    ``nodes`` are the compute operators: a view moves nothing, however many kernels read through it. Library calls
    are left out: each is one operator, and several may share a name.
    """
    compute_nodes = set(nodes)
    computing: dict[str, dict[str, None]] = {}
    matches_operator = {kernel.name: kernel for kernel in code.kernels}
    for kernel in code.kernels:
        for origin in compute_nodes.intersection(_computed(kernel)) if kernel.language != "extern" else ():
            computing.setdefault(origin, {})[kernel.name] = None

    def others(kernel: Kernel, origin: str) -> tuple[str, ...]:
        if kernel.language == "extern":
            return ()
        kernels_of_origin = computing.get(origin, {})
        if kernel.name not in kernels_of_origin:
            return ()
        return tuple(
            name
            for name in kernels_of_origin
            if name != kernel.name and not is_alternative(kernel, matches_operator[name])
        )

    return others


def _computed(kernel: Kernel) -> Iterable[str]:
    """Return the operators that a kernel itself computes, by its lines if they were traced: the second part of a split
    reduction has the origins of the first, but does not compute the operators inlined there."""
    followed = {origin for line in kernel.lines for origin in line.origins}
    return followed.intersection(kernel.origins) or kernel.origins


def unsupported_types(capture: Record, device: str) -> tuple[UnsupportedOperator, ...]:
    """Return the operators handed to Inductor that produce a dtype that the device lacks, with their Python lines."""
    by_type: dict[tuple[str, str], dict[Frame, None]] = {}
    for compilation in capture.compilations:
        for stage in compilation.stages:
            if not isinstance(stage, Graph) or stage.key not in PHASES:
                continue
            for _, node in walk(stage):
                name = "an input" if node.op == "placeholder" else node.target.removesuffix(".default")
                for tensor in node.outputs if node.op != "output" else ():
                    if tensor.dtype in NO_TYPES.get(device, ()):
                        by_type.setdefault((tensor.dtype, name), {}).update(dict.fromkeys(node.innermost))
    return tuple(
        UnsupportedOperator(name, (), tuple(frames), f"it is {dtype}, a type that {device} does not have")
        for (dtype, name), frames in by_type.items()
    )
