"""In which memory a lowered forward returns what it keeps for the backward.

The partitioner's graph says which values are kept; lowering decides where each lies. Where it turns convolutions to
channels last it keeps copies of their inputs, and of a copy that it does not make it keeps the input.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ...record.memory import SavedTensor
from ..code import buffer_lifetimes
from ..graphs.partitioner import FORWARD_RESULTS
from ..ground.recorder import Draft


def reconcile(draft: Draft, lowering: Any) -> None:
    """Give what ``draft``'s forward keeps the memory in which the lowered graph returns it."""
    returned, partition = FORWARD_RESULTS.take(draft), draft.partition
    if returned is None or partition is None:
        return
    try:
        found = _found(lowering, returned.names, returned.results)
        chosen = tuple(_placed(kept, found) for kept in partition.saved)
    except Exception:  # internals of torch that differ lose where it lies, and not that it is kept
        chosen = tuple(_unknown(kept) for kept in partition.saved)
    default = partition.default and _by_default(
        partition.default, partition.saved, chosen, {*lowering.graph_inputs}
    )
    draft.partition = dataclasses.replace(partition, saved=chosen, default=default)


def _placed(kept: SavedTensor, found: dict[str, tuple[int | None, str]]) -> SavedTensor:
    if kept.nbytes == 0 or kept.node not in found:  # a number, or what is no tensor
        return kept
    nbytes, shares = found[kept.node]
    return dataclasses.replace(kept, nbytes=kept.nbytes if shares else nbytes, alias_of=shares)


def _unknown(kept: SavedTensor) -> SavedTensor:
    return kept if kept.nbytes == 0 else dataclasses.replace(kept, nbytes=None, alias_of="")


def _by_default(
    default: tuple[SavedTensor, ...],
    before: tuple[SavedTensor, ...],
    chosen: tuple[SavedTensor, ...],
    inputs: set[str],
) -> tuple[SavedTensor, ...]:
    """What the default partitioner keeps, in the memory that the same value has in the lowered graph.

    Where that keeps copies of inputs, whether it would of one that it does not keep is not known.
    """
    placed = {kept.node: kept for kept in chosen}
    copies = any(was.alias_of and not now.alias_of for was, now in zip(before, chosen))
    return tuple(
        placed[kept.node]
        if kept.node in placed
        else _unknown(kept)
        if copies and kept.alias_of in inputs
        else kept
        for kept in default
    )


def _found(lowering: Any, names: Sequence[str], results: int) -> dict[str, tuple[int | None, str]]:
    """For each kept value the bytes of the memory that it lies in, and whose that is: ``""`` if it is its own."""
    outputs = [*zip(names, lowering.graph_outputs, strict=True)]
    within = buffer_lifetimes.shared(lowering.module.graph)
    owners = {name: within.get(name, name) for name in lowering.graph_inputs}
    owners |= {name: name for name in lowering.constants}  # the module holds them
    for name, output in outputs[:results]:
        owners.setdefault(_place(lowering, output), name)
    found: dict[str, tuple[int | None, str]] = {}
    for name, output in outputs[results:]:
        place = _place(lowering, output)
        if place and name not in found:
            buffer = lowering.name_to_buffer.get(place)
            found[name] = buffer_lifetimes.allocated(lowering, buffer), owners.get(place, "")
            owners.setdefault(place, name)
    return found


def _place(lowering: Any, output: Any) -> str:
    """The buffer, input or constant that holds the memory of what a graph returns; ``""`` for what has none."""
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
