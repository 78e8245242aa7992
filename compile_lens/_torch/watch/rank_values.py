"""Small values that ranks give each other in a rehearsal, as far as the giver was rehearsed before: objects, sizes and
flags that a program sends are then as on the cluster. What is not known is zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from ...record.collectives import IssuedCollective

SMALL = 65536
"""Bytes of a call of which the values are kept."""

_Key = tuple[object, ...]


class RankValues:
    """The values by call, over all ranks of a rehearsal."""

    def __init__(self) -> None:
        self._values: dict[_Key, list[torch.Tensor]] = {}
        self._counts: Counter[_Key] = Counter()
        self._lacking: set[_Key] = set()

    def begin_pass(self) -> None:
        """Begin with the first rank again."""
        self._lacking.clear()

    def begin_rank(self) -> None:
        """Begin with the first call of each group again."""
        self._counts.clear()

    def has_more(self) -> bool:
        """Return True if integers that a rank got as zeros in this pass are known now."""
        return not self._lacking.isdisjoint(self._values)

    def finish(
        self, result: Any, outputs: list[torch.Tensor], inputs: list[torch.Tensor], one: IssuedCollective
    ) -> Any:
        """Return the result of a call with work that is done: that of the fake group holds no tensors, which the
        reducer of DDP takes from it. Fills the outputs."""
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
            self._give(self._key(group, rank, one.peer, one.tag), inputs)
        elif call.name == "recv":
            self._take(self._key(group, one.peer, rank, one.tag), outputs)
        elif call.name in ("broadcast", "scatter"):
            key = self._key(group, call.name)
            if call.arguments == f"root {rank}":
                self._give(key, inputs)
            elif call.name == "scatter":
                self._take(key, outputs, call.group.index(rank))
            elif one.sized_by_values or key in self._values:
                self._take(key, outputs)
        elif call.name in ("all_to_all", "all_to_all_single"):
            alike = len(inputs) == len(outputs)
            for number, output in enumerate(outputs):
                _fill(output, inputs[number] if alike else None)

    def _key(self, *call: object) -> _Key:
        self._counts[call] += 1
        return (*call, self._counts[call])

    def _give(self, key: _Key, tensors: Sequence[torch.Tensor]) -> None:
        if sum(tensor.nbytes for tensor in tensors) <= SMALL:
            self._values[key] = [tensor.detach().clone() for tensor in tensors]

    def _take(self, key: _Key, outputs: list[torch.Tensor], first: int = 0) -> None:
        values = self._values.get(key, [])
        if not values and any(not output.is_floating_point() for output in outputs):
            self._lacking.add(key)
        for number, output in enumerate(outputs):
            place = first + number
            _fill(output, values[place] if place < len(values) else None)


def _fill(output: torch.Tensor, value: torch.Tensor | None) -> None:
    if value is not None and (value.shape, value.dtype) == (output.shape, output.dtype):
        output.data.copy_(value)
    else:
        output.data.zero_()
