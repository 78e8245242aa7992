"""Small values that ranks exchange in a rehearsal, if the sender was rehearsed before. Objects, sizes, flags and sums
on which a program branches are then the same as on the cluster. A rank that was not yet rehearsed is assumed to
contribute the receiver's own values; its sends and broadcasts are zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ...record.collectives import IssuedCollective

MAX_VALUE_BYTES = 65536
"""Limit on the bytes of a call of integers, or from one rank to others, whose values are kept."""
MAX_SUM_BYTES = 128
"""Limit on the bytes of a call of other numbers to which all ranks contribute: programs branch on a loss, not on
gradients."""
MAX_TOTAL_BYTES = 1 << 28
"""Limit on the bytes kept of one rehearsal."""

_Key = tuple[object, ...]
_Reduction = Any

_REDUCTIONS: dict[str, _Reduction] = {
    "sum": lambda stack: stack.sum(0),
    "avg": lambda stack: stack.sum(0) / len(stack),
    "product": lambda stack: stack.prod(0),
    "min": lambda stack: stack.amin(0),
    "max": lambda stack: stack.amax(0),
}


class _Values(NamedTuple):
    """The input tensors of a rank in a call, and the number of elements for each rank of its group."""

    tensors: list[torch.Tensor]
    sent: tuple[int, ...] = ()


class RankValues:
    """The values of each call, over all ranks of a rehearsal.

    Attributes:
        changed: True if a rank received values in this pass that differ from the present ones.
        source: the sender of the latest message received from any rank, by its number in the group.
    """

    def __init__(self) -> None:
        self._values: dict[_Key, _Values] = {}
        self._counts: Counter[_Key] = Counter()
        self._lacking: set[_Key] = set()
        self._used: dict[_Key, list[_Values | None]] = {}
        self._bytes = 0
        self.changed = False
        self.source = 0

    def begin_pass(self) -> None:
        """Start a pass over the ranks."""
        self._lacking.clear()
        self._used.clear()
        self.changed = False

    def begin_rank(self) -> None:
        """Start a rank, counting each group's calls from the first."""
        self._counts.clear()

    def has_more(self) -> bool:
        """Return True if integers that a rank received as zeros in this pass are now known."""
        return not self._lacking.isdisjoint(self._values)

    def finish(
        self, result: Any, outputs: list[torch.Tensor], inputs: list[torch.Tensor], one: IssuedCollective
    ) -> Any:
        """Fill the outputs of a call, and return its result with a completed handle that has the tensors, which DDP's
        reducer reads; the fake group's handle has none."""
        self._exchange(outputs, inputs, one)
        future: Any = torch.futures.Future()
        future.set_result(outputs)
        work = torch._C._distributed_c10d._create_work_from_future(future).boxed()
        parts = result if isinstance(result, tuple) else (result,)
        done = tuple(work if isinstance(part, torch.ScriptObject) else part for part in parts)
        return done if isinstance(result, tuple) else done[0]

    def _exchange(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], one: IssuedCollective
    ) -> None:
        call, rank = one.collective, torch.distributed.get_rank()
        group = (call.group, call.group_number)
        if call.name == "send":
            self._store(self._key(group, rank, one.peer, one.tag), inputs)
        elif call.name == "recv":
            sender = self._sender(group, rank, one.tag) if one.peer is None else one.peer
            self._take(self._key(group, sender, rank, one.tag), outputs)
        elif call.name in ("broadcast", "scatter"):
            key = self._key(group, call.name)
            if call.arguments == f"root {rank}":
                self._store(key, inputs)
            elif call.name == "scatter":
                self._take(key, outputs, call.group.index(rank))
            elif one.sized_by_values or key in self._values:
                self._take(key, outputs)
            else:
                self._use(key)
        elif rank in call.group:
            self._exchange_all(outputs, inputs, one, rank)

    def _sender(self, group: tuple[tuple[int, ...], int], rank: int, tag: int) -> int:
        """Return the sender for a receive from any rank: the one from which the fewest messages were received,
        preferably one with a message pending."""
        others = [other for other in group[0] if other != rank]
        taken = {other: self._counts[group, other, rank, tag] for other in others}
        known = [one for one in others if (group, one, rank, tag, taken[one] + 1) in self._values]
        sender = min(known or others, key=taken.__getitem__)
        self.source = group[0].index(sender)
        return sender

    def _exchange_all(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], one: IssuedCollective, rank: int
    ) -> None:
        """Fill the outputs of a call to which all ranks of the group contribute."""
        call = one.collective
        if call.name in ("all_to_all", "all_to_all_single"):
            alike = len(inputs) == len(outputs)
            for number, output in enumerate(outputs):
                _fill(output, inputs[number] if alike else None)
        key = self._key((call.group, call.group_number), call.name)
        whole = all(not tensor.is_floating_point() for tensor in inputs)
        own = self._store((*key, rank), inputs, MAX_VALUE_BYTES if whole else MAX_SUM_BYTES, one.sent)
        if not inputs or own is None:
            return
        every = [self._use((*key, member), own) or own for member in call.group]
        results = _results(call.name, call.arguments, every, call.group.index(rank))
        for output, value in zip(outputs, results, strict=False):
            if value is not None and value.numel() == output.numel():
                _fill(output, value.reshape(output.shape).to(output.dtype))

    def _key(self, *call: object) -> _Key:
        self._counts[call] += 1
        return (*call, self._counts[call])

    def _store(
        self,
        key: _Key,
        tensors: Sequence[torch.Tensor],
        limit: int = MAX_VALUE_BYTES,
        sent: tuple[int, ...] = (),
    ) -> _Values | None:
        """Store a rank's input if it is small; return it, else None."""
        size = sum(tensor.nbytes for tensor in tensors)
        if size > limit or (key not in self._values and self._bytes + size > MAX_TOTAL_BYTES):
            return None
        values = _Values([tensor.detach().clone() for tensor in tensors], sent)
        self._bytes += 0 if key in self._values else size
        self._values[key] = values
        self.changed |= any(used is None or not _same(used, values) for used in self._used.get(key, ()))
        return values

    def _use(self, key: _Key, assumed: _Values | None = None) -> _Values | None:
        values = self._values.get(key, assumed)
        users = self._used.setdefault(key, [])
        if not any(values is used for used in users):
            users.append(values)
        return values

    def _take(self, key: _Key, outputs: list[torch.Tensor], first: int = 0) -> None:
        known = self._use(key)
        values = [] if known is None else known.tensors
        if not values and any(not output.is_floating_point() for output in outputs):
            self._lacking.add(key)
        for number, output in enumerate(outputs):
            place = first + number
            _fill(output, values[place] if place < len(values) else None)


def _same(one: _Values, other: _Values) -> bool:
    """Return True if the values are equal, with NaN equal to NaN."""
    return (one.sent, len(one.tensors)) == (other.sent, len(other.tensors)) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
        for a, b in zip(one.tensors, other.tensors, strict=True)
    )


def _results(name: str, arguments: str, every: list[_Values], number: int) -> Sequence[torch.Tensor | None]:
    """Return the outputs of the group's rank ``number`` from the input of each rank; empty or None where unknown."""
    inputs_by_rank = [values.tensors for values in every]
    size, own = len(every), inputs_by_rank[number]
    if name == "all_to_all_single":
        return (_parts_for(every, number),)
    if any([t.shape for t in tensors] != [t.shape for t in own] for tensors in inputs_by_rank):
        return ()
    first = [tensors[0] for tensors in inputs_by_rank]
    if name == "all_to_all":
        return [tensors[number] for tensors in inputs_by_rank]
    if name in ("all_gather", "gather"):
        return first
    if name.startswith("all_gather_into_tensor"):
        return [torch.cat([t.flatten() for t in row]) for row in zip(*inputs_by_rank, strict=True)]
    reduction = _REDUCTIONS.get(arguments.partition(",")[0])
    if reduction is None or not name.startswith(("all_reduce", "reduce")):
        return ()
    if name == "reduce" and not arguments.endswith(f"root {torch.distributed.get_rank()}"):
        return ()
    if name == "reduce_scatter":
        return (reduction(torch.stack([tensors[number] for tensors in inputs_by_rank])),)
    sums = [reduction(torch.stack(row)) for row in zip(*inputs_by_rank, strict=True)]
    if name.startswith("reduce_scatter_tensor"):
        return [one.flatten().chunk(size)[number] if one.numel() % size == 0 else None for one in sums]
    return sums


def _parts_for(every: list[_Values], number: int) -> torch.Tensor | None:
    """Return the elements that each rank sends to the rank ``number``, concatenated; None if unknown."""
    parts = []
    for values in every:
        if len(values.sent) != len(every) or sum(values.sent) > values.tensors[0].numel():
            return None
        start = sum(values.sent[:number])
        parts.append(values.tensors[0].flatten()[start : start + values.sent[number]])
    return torch.cat(parts) if len({part.dtype for part in parts}) == 1 else None


def _fill(output: torch.Tensor, value: torch.Tensor | None) -> None:
    if value is not None and (value.shape, value.dtype) == (output.shape, output.dtype):
        output.data.copy_(value)
    else:
        output.data.zero_()
