"""Collectives that Python itself calls, outside of all graphs: a graph breaks at them, or nothing is compiled there.

Every such call of ``torch.distributed`` goes through a method of the process group, which is observed. Those of graphs
call the group from C++ and do not come here, and neither do functional collectives that Python calls itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch._dynamo.eval_frame import skip_code

from ...record.collectives import Collective
from ..ground.undo import Undo
from .callers import program_line
from .draft import numbers

_REDUCES, _ROOT, _SIZE = "reduces", "root", "size"

_METHODS: dict[str, tuple[str, int | None, tuple[str, ...]]] = {
    "allreduce": ("all_reduce", 0, (_REDUCES,)),
    "allreduce_coalesced": ("all_reduce_coalesced", 0, (_REDUCES,)),
    "reduce": ("reduce", 0, (_REDUCES, _ROOT)),
    "broadcast": ("broadcast", 0, (_ROOT,)),
    "allgather": ("all_gather", 1, ()),
    "allgather_coalesced": ("all_gather_coalesced", 1, ()),
    "_allgather_base": ("all_gather_into_tensor", 1, (_SIZE,)),
    "all_gather_single": ("all_gather_into_tensor", 1, (_SIZE,)),
    "allgather_into_tensor_coalesced": ("all_gather_into_tensor_coalesced", 1, (_SIZE,)),
    "all_gather_single_coalesced": ("all_gather_into_tensor_coalesced", 1, (_SIZE,)),
    "reduce_scatter": ("reduce_scatter", 1, (_REDUCES,)),
    "_reduce_scatter_base": ("reduce_scatter_tensor", 1, (_REDUCES, _SIZE)),
    "reduce_scatter_single": ("reduce_scatter_tensor", 1, (_REDUCES, _SIZE)),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_tensor_coalesced", 1, (_REDUCES, _SIZE)),
    "reduce_scatter_single_coalesced": ("reduce_scatter_tensor_coalesced", 1, (_REDUCES, _SIZE)),
    "alltoall": ("all_to_all", 1, ()),
    "alltoall_base": ("all_to_all_single", 1, ()),
    "all_to_all_single": ("all_to_all_single", 1, ()),
    "gather": ("gather", 1, (_ROOT,)),
    "scatter": ("scatter", None, (_ROOT,)),  # one rank gives for all, the others nothing
    "barrier": ("barrier", None, ()),
    "monitored_barrier": ("monitored_barrier", None, ()),
}
"""Of each method the name that the same has in a graph, which argument this process gives, and what a graph's call
has that is no tensor. Messages from one process to another are not the same on both, and are left out."""

_REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")


class Calls:
    """The collectives that Python called, in order: each with its place among visits and graphs, and whether all
    processes take part."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Collective, bool]] = []

    def place(self, undo: Undo) -> None:
        """Observe the methods of process groups until the undo."""
        import torch.distributed as distributed

        group = distributed.ProcessGroup
        for name in _METHODS:
            real = vars(group).get(name)
            if real is not None:
                undo.add(setattr, group, name, real)
                setattr(group, name, self._around(name, real.__get__))

    def _around(self, name: str, bound: Any) -> Any:
        def call(group: Any, *args: Any, **kwargs: Any) -> Any:
            number = next(numbers)
            result = bound(group, type(group))(*args, **kwargs)  # what it refuses is not called
            whole = group.size() == torch.distributed.get_world_size()
            self.found.append((number, _collective(name, group, args, kwargs), whole))
            return result

        skip_code(call.__code__)
        return call


def _collective(name: str, group: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Collective:
    called, at, says = _METHODS[name]
    every = (*args, *kwargs.values())
    values = {
        _REDUCES: next((_reduction(a.reduceOp) for a in every if hasattr(a, "reduceOp")), ""),
        _ROOT: next((str(a.rootRank) for a in every if hasattr(a, "rootRank")), ""),
        _SIZE: str(group.size()),
    }
    given = list(_tensors(every[at])) if at is not None and at < len(every) else []
    return Collective(
        called,
        ", ".join([*(values[what] for what in says), group.group_name]),
        tuple(f"{str(t.dtype).removeprefix('torch.')}[{', '.join(map(str, t.shape))}]" for t in given),
        sum(t.nbytes for t in given) if given else None,
        program_line(),
    )


def _tensors(given: Any) -> Iterator[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for one in given:
            yield from _tensors(one)


def _reduction(op: Any) -> str:
    """As functional collectives name it."""
    kinds = torch.distributed.ReduceOp
    known = (name for name in _REDUCTIONS if hasattr(kinds, name) and op == getattr(kinds, name))
    return next(known, str(op)).lower()
