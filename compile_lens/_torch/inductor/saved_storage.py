"""The memory of the values that a lowered forward saves for the backward.

The partitioner chooses the values; lowering decides their memory. If it converts convolutions to channels last, it
saves copies of their inputs; if it elides a copy, it saves the copy's input.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ...record.memory import SavedTensor
from ..code import buffer_lifetimes
from ..graphs.partitioner import FORWARD_RESULTS, without_storage
from ..ground.recorder import Draft


def reconcile(draft: Draft, lowering: Any) -> None:
    """Update the saved values of ``draft``'s forward with the memory in which the lowered graph returns them."""
    returned = FORWARD_RESULTS.take(draft)
    if returned is None:
        return
    partition = returned.partition
    try:
        storage = _storage_of_saved(lowering, returned.names, returned.results)
        chosen = tuple(_with_storage(kept, storage) for kept in partition.saved)
    except Exception:  # if torch's internals differ, only the memory is unknown, not what is saved
        chosen = tuple(without_storage(kept) for kept in partition.saved)
    default = partition.default and _by_default(
        partition.default, partition.saved, chosen, {*lowering.graph_inputs}
    )
    draft.partition = dataclasses.replace(partition, saved=chosen, default=default)


def _with_storage(kept: SavedTensor, storage: dict[str, tuple[int | None, str]]) -> SavedTensor:
    if kept.nbytes == 0 or kept.node not in storage:  # a number, or another value that is no tensor
        return kept
    nbytes, shares = storage[kept.node]
    return dataclasses.replace(kept, nbytes=kept.nbytes if shares else nbytes, alias_of=shares)


def _by_default(
    default: tuple[SavedTensor, ...],
    before: tuple[SavedTensor, ...],
    chosen: tuple[SavedTensor, ...],
    inputs: set[str],
) -> tuple[SavedTensor, ...]:
    """Return the values that the default partitioner saves, with the memory of the same values in the lowered graph.

    If the lowered graph saves copies of inputs, it is unknown whether it would copy an input that it does not save.
    """
    placed = {kept.node: kept for kept in chosen}
    copies = any(was.alias_of and not now.alias_of for was, now in zip(before, chosen))
    return tuple(
        placed[kept.node]
        if kept.node in placed
        else without_storage(kept)
        if copies and kept.alias_of in inputs
        else kept
        for kept in default
    )


def _storage_of_saved(lowering: Any, names: Sequence[str], results: int) -> dict[str, tuple[int | None, str]]:
    """Return the bytes of each saved value, and the owner of its memory, ``""`` for the value itself."""
    tokens = _effect_tokens(lowering.module.graph)
    results -= tokens
    outputs = [*zip(names[tokens:], lowering.graph_outputs, strict=True)]
    within = buffer_lifetimes.shared(lowering.module.graph)
    owners = {name: within.get(name, name) for name in lowering.graph_inputs}
    owners |= {name: name for name in lowering.constants}  # the module keeps them alive
    for name, output in outputs[:results]:
        owners.setdefault(_owner(lowering, output), name)
    storage: dict[str, tuple[int | None, str]] = {}
    for name, output in outputs[results:]:
        place = _owner(lowering, output)
        if place and name not in storage:
            buffer = lowering.name_to_buffer.get(place)
            storage[name] = buffer_lifetimes.allocated(lowering, buffer), owners.get(place, "")
            owners.setdefault(place, name)
    return storage


def _effect_tokens(graph: Any) -> int:
    """Return the number of effect tokens (of checks that raise) that the partitioner's graph returns before its
    results; the lowered graph consumes them."""
    sinks = [node for node in graph.nodes if str(node.target) == "prims._sink_tokens.default"]
    return sum(len(node.args[0]) for node in sinks)


def _owner(lowering: Any, output: Any) -> str:
    """Return the buffer, input or constant that has the memory of a returned value; ``""`` for none."""
    from torch._inductor import ir

    name = str(output.maybe_get_name() or "") if isinstance(output, ir.IRNode) else ""
    while (buffer := lowering.name_to_buffer.get(name)) is not None:
        layout = getattr(buffer, "layout", None)
        if isinstance(layout, ir.MutationLayoutSHOULDREMOVE):
            above = str(layout.get_buffer().get_name())
        else:
            above = str(next(iter(buffer.get_inputs_that_alias_output()), name))
        if above == name:
            break
        name = above
    return name
