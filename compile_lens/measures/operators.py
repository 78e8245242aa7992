"""Where an operator stands in a capture: in the graphs that were handed to Inductor, after its passes, in calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compile_lens.record.capture import Record
from compile_lens.record.graph import Node
from compile_lens.record.kernel import Code

from .address import Address, walk
from .quantities import phases


@dataclass(frozen=True)
class Use:
    """One place where an operator stands: its address, and its node (``None`` for a library call)."""

    address: Address
    name: str
    node: Node | None = None


def uses(capture: Record, op: str = "", phase: str = "") -> tuple[list[Use], list[str]]:
    """The operators that compute something and are called ``op`` (``""``: all), and why some may not be known.

    A name without an overload stands for all of them, one without a namespace for those of any.
    """
    found: list[Use] = []
    unknown: list[str] = []
    for compilation in capture.compilations:
        for one in phases(capture):
            if (phase and phase != one) or one not in compilation.phases:
                continue
            for key in (one, f"{one}.post_grad"):
                graph = compilation.graphs.get(key)
                if graph is None and key != one and not compilation.graphs[one].calls:
                    continue  # nothing is lowered of a graph without an operation
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
                        and named(operator(node.target), op)
                    ):
                        found.append(
                            Use((compilation.id, key, path + node.name), operator(node.target), node)
                        )
            found += _calls(compilation.id, compilation.code.get(one), op)
    for missing in capture.missing:
        stage = missing.stage.rpartition(" ")[2]
        if stage in ("forward", "backward", "inference") and phase in ("", stage):
            unknown.append(missing.message)
    return found, list(dict.fromkeys(unknown))


def _calls(cid: str, code: Code | None, op: str) -> Iterator[Use]:
    for kernel in code.kernels if code is not None else ():
        name = called(kernel.name)
        if op and kernel.language == "extern" and named(name, op):
            for group in kernel.groups[:1]:
                yield Use((cid, f"{kernel.phase}.groups", group), name)


def operator(target: str) -> str:
    """An operator's name without what says nothing: ``aten.sin`` of ``aten.sin.default``."""
    return target.removesuffix(".default")


def called(name: str) -> str:
    """The function that a library call calls: ``aten.sort.stable``, ``extern_kernels.mm``."""
    return operator(name.partition("#")[0].removeprefix("torch.ops."))


def bare(target: str) -> str:
    """``sort`` of ``aten.sort.stable``, ``mm`` of ``extern_kernels.mm``."""
    parts = operator(target).split(".")
    return parts[-1] if len(parts) < 3 else parts[-2]


def named(name: str, op: str) -> bool:
    """Whether an operator is one that is asked for: ``aten.sort.stable`` is ``aten.sort`` and ``sort``."""
    if not op:
        return True
    wanted, parts = operator(op).split("."), name.split(".")
    return wanted in (parts[: len(wanted)], parts[1 : 1 + len(wanted)])
