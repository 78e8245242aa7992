"""Lifetimes of the buffers in generated code: sizes from Inductor, order from the text."""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import torch

from ...record.graph import Node
from ...record.memory import UNKNOWN_KIND, Memory
from ..ground import values
from ..ground.quantized import buffer_dtype
from ..ground.recorder import Draft
from .wrapper_buffers import WHOLE, BufferFacts, CallMemory


def record(
    draft: Draft, lowering: Any, text: str | ast.Module, results: int | None, loops: Iterable[Node] = ()
) -> None:
    """Record the buffers of the module (its text or syntax tree) just generated for ``draft``'s phase.

    ``results`` is the number of a forward's outputs that are the function's own; the rest are saved for the backward.
    ``loops`` are the nodes of the loops stage.
    """
    try:
        memory = CallMemory(text, _Facts(lowering, loops), results)
    except Exception as error:  # if torch's internals differ, only this detail is lost, with a note
        reason = f"what it holds could not be read on this torch ({type(error).__name__}: {error})"
        draft.memory.append(Memory(draft.phase, note=reason))
        return
    recorded = memory.memory(draft.phase)
    if draft.phase == "forward" and results is None:  # which outputs are saved was not observed
        kinds = {"output": UNKNOWN_KIND}
        buffers = (dataclasses.replace(b, kind=kinds.get(b.kind, b.kind)) for b in recorded.buffers)
        recorded = dataclasses.replace(recorded, buffers=tuple(buffers))
    draft.memory.append(recorded)


class _Facts:
    """The facts of each buffer by name, from the lowering of one graph."""

    def __init__(self, lowering: Any, loops: Iterable[Node]) -> None:
        self._lowering = lowering
        self._alone = {n.name: n for n in loops if n.op == "loop" and len(n.origins) == len(n.outputs) == 1}
        self._loops_of = Counter(loop.origins for loop in self._alone.values())
        self._shared = shared(lowering.module.graph)
        self._parts: dict[str, list[Any]] = {}
        for buffer in lowering.buffers:
            if type(buffer).__name__ == "MultiOutput":
                self._parts.setdefault(buffer.inputs[0].get_name(), []).append(buffer)
        self._known: dict[str, BufferFacts | None] = {}

    def __call__(self, name: str) -> BufferFacts | None:
        if name not in self._known:
            self._known[name] = self._look_up(name)
        return self._known[name]

    def _look_up(self, name: str) -> BufferFacts | None:
        lowering = self._lowering
        if name in lowering.graph_inputs:
            buffer = lowering.graph_inputs_original.get(name)
            if buffer is None:  # a number
                return BufferFacts(tensor=False)
            return BufferFacts(
                self._nbytes(buffer),
                donated=type(buffer).__name__ == "DonatedBuffer",
                within=self._shared.get(name, ""),
                origins=(name,),
            )
        buffer = lowering.name_to_buffer.get(name)
        if buffer is None:
            return None
        if name in self._parts:
            sizes = [(_index(part), self._nbytes(part)) for part in self._parts[name]]
            known = tuple((index, nbytes) for index, nbytes in sizes if index is not None)
            return BufferFacts(results=known, origins=self._origins(buffer), aliases=_aliases(buffer))
        return BufferFacts(
            self._nbytes(buffer),
            origins=self._origins(buffer),
            aliases=_aliases(buffer),
            tensor=_has_size(buffer),
            loop=_loop(buffer),
        )

    def _nbytes(self, buffer: Any) -> int | None:
        return allocated(self._lowering, buffer)

    def _origins(self, buffer: Any) -> tuple[str, ...]:
        """Return the post-grad node whose value the buffer has, as a tuple of one name or none.

        Inductor does not name it if the operand of a call gets memory of its own; then it is the one node that the loop
        computes, unless this takes several loops.
        """
        node = getattr(buffer, "origin_node", None)
        if node is not None:
            return (str(node.name),) if node.graph is self._lowering.module.graph else ()
        loop = self._alone.get(_loop(buffer))
        if loop is None or self._loops_of[loop.origins] > 1 or loop.origins[0] not in self._shapes:
            return ()
        return loop.origins if self._shapes[loop.origins[0]] == list(map(str, loop.outputs[0].shape)) else ()

    @cached_property
    def _shapes(self) -> dict[str, list[str]]:
        """Shapes of the tensors that nodes of the post-grad graph return."""
        vals = {node.name: node.meta.get("val") for node in self._lowering.module.graph.nodes}
        return {
            name: list(map(str, val.shape)) for name, val in vals.items() if isinstance(val, torch.Tensor)
        }


def _loop(buffer: Any) -> str:
    """Return the name of the loop that writes a buffer; ``""`` if there is none."""
    operation = buffer.get_defining_op()
    return "" if operation is None else str(operation.get_operation_name())


def allocated(lowering: Any, buffer: Any) -> int | None:
    """Return the bytes that Inductor allocates for a buffer; None if the size depends on data, or it is no tensor or a
    sparse one."""
    if not _has_size(buffer) or _is_sparse(buffer):
        return None
    known = _number(lowering.get_allocation_storage_size(buffer), lowering.sizevars)
    return None if known is None else known * buffer_dtype(buffer).itemsize


def shared(graph: torch.fx.Graph) -> dict[str, str]:
    """Return the earlier input with which each input shares its memory, by name of the later one."""
    first: dict[int, str] = {}
    owners: dict[str, str] = {}
    for node in graph.find_nodes(op="placeholder"):
        storage = storage_of(node.meta.get("val"))
        if storage is not None and first.setdefault(storage, node.name) != node.name:
            owners[str(node.target)] = first[storage]
    return owners


def storage_of(val: Any) -> int | None:
    """Return a number that identifies a tensor's storage; None for other values."""
    if not isinstance(val, torch.Tensor) or val.layout != torch.strided:
        return None
    return int(val.untyped_storage()._cdata)


def _index(part: Any) -> int | None:
    """Return the index of a buffer among the results of its call; None if results are nested."""
    if not part.indices:
        return WHOLE
    if len(part.indices) > 1 or not isinstance(part.indices[0][1], int):
        return None
    return int(part.indices[0][1])


def _aliases(buffer: Any) -> tuple[str, ...]:
    return tuple(str(name) for name in buffer.get_inputs_that_alias_output())


def _has_size(buffer: Any) -> bool:
    """Return True if a buffer is one tensor, not several results or the placeholder of a call that returns none."""
    from torch._inductor import ir

    return isinstance(getattr(buffer, "layout", None), ir.Layout)


def _is_sparse(buffer: Any) -> bool:
    """Return True if a buffer is a sparse tensor, whose elements have no place in Inductor's layout."""
    node = getattr(buffer, "origin_node", None)
    value = node.meta.get("val") if node is not None else None
    return isinstance(value, torch.Tensor) and value.layout not in values.DENSE_LAYOUTS


def _number(expression: Any, sizevars: Any) -> int | None:
    """Return a size as a number, with the example values of symbols; None if it depends on data."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    try:
        return int(expression)
    except TypeError:  # it has symbols
        pass
    if free_unbacked_symbols(expression):
        return None
    hint = getattr(sizevars, "optimization_hint", None) or sizevars.size_hint
    return int(hint(expression))
