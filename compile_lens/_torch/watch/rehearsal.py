"""A program run once for each rank in one process: torch's fake process group stands in for the others.

Its collectives return at once with their inputs, so that sizes are right and values are not. Collectives that Python
itself calls, outside of all graphs, are recorded: a graph breaks at them, or nothing is compiled there. Every such
call of ``torch.distributed`` goes through a method of the process group, which is observed. Those of graphs call the
group from C++ and do not pass here, and neither do functional collectives that Python calls itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo.convert_frame as convert_frame
import torch._dynamo.pgo as pgo
from torch._C._dynamo import eval_frame
from torch._dynamo.eval_frame import skip_code

from ...record.collectives import Collective, EagerCollective
from .. import isolation
from ..ground.process_group import fake_group
from ..ground.undo import Undo
from .callers import program_line
from .program_watch import Observations, ProgramWatch
from .scopes import numbers

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
"""For each method its name in a graph, the argument that this process contributes, and the other arguments of a
graph's call. Messages from one process to another differ between the two, and are left out."""

_REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")


class CollectiveCalls:
    """The collectives that Python called, in order: each with its number among evaluations and graphs, and whether all
    processes take part."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Collective, bool]] = []

    def place(self, undo: Undo) -> None:
        """Observe the methods of process groups until ``undo``."""
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
            result = bound(group, type(group))(
                *args, **kwargs
            )  # a refused call raises here, so it is not recorded
            whole = group.size() == torch.distributed.get_world_size()
            self.calls.append((number, _collective(name, group, args, kwargs), whole))
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
    """Return its name in functional collectives."""
    kinds = torch.distributed.ReduceOp
    known = (name for name in _REDUCTIONS if hasattr(kinds, name) and op == getattr(kinds, name))
    return next(known, str(op)).lower()


@dataclasses.dataclass(frozen=True)
class Rehearsal:
    """The observations of one rank, the collectives that Python called, and the error that ended it."""

    seen: Observations
    issued: tuple[EagerCollective, ...]
    error: Exception | None


_MEMORY: tuple[tuple[Any, str, Callable[[], Any]], ...] = (
    (pgo, "_CODE_STATE", lambda: defaultdict(pgo.CodeState)),
    (convert_frame, "FRAME_COUNTER", int),
    (convert_frame, "FRAME_COMPILE_COUNTER", Counter),
)
"""Dynamo's state of sizes and numbers, and its initial values in a new process."""

_RUNS = "_active_ddp_module"
"""The module of DDP whose forward runs. Torch leaves it set if an error ends that forward, and cuts everything
compiled later in the process by its buckets."""


def why_impossible() -> str:
    """Return why nothing can be rehearsed here; ``""`` if it can."""
    import torch.distributed as distributed

    if not distributed.is_available():
        return "this torch has no torch.distributed"
    if distributed.is_initialized():
        return "torch.distributed is in use in this process; destroy its process group first"
    gone = [f"{owner.__name__}.{name}" for owner, name, _ in _MEMORY if not hasattr(owner, name)]
    if gone:  # one rank would know what another met
        return f"this torch keeps what Dynamo remembers elsewhere: it has no {', '.join(gone)}"
    try:
        from torch.testing._internal.distributed import fake_pg  # noqa: F401
    except ImportError as error:
        return f"this torch has no fake process group: {error}"
    return ""


def rehearse(call: Callable[[], Any], rank: int, world: int) -> Rehearsal:
    """Make a call as the process of a rank would. Dynamo's state of it is dropped afterwards, and random numbers,
    Dynamo's memory of sizes, its frame numbers and Python's hook for errors are restored."""
    raised: list[Exception] = []
    watch, calls = ProgramWatch(), CollectiveCalls()
    with isolation.random_state(), fake_group(rank, world), _memory(), Undo() as undo, undo:
        calls.place(undo)
        grad = torch.is_grad_enabled()
        watch.open()
        try:
            call()
        except Exception as error:
            raised.append(error)
        finally:
            watch.close("the call returned" if not raised else f"{type(raised[0]).__name__}: {raised[0]}")
            torch.set_grad_enabled(grad)
            for code in watch.compiled():
                eval_frame.reset_code(code)
    outside = tuple(EagerCollective(one, watch.graphs_before(at), whole) for at, one, whole in calls.calls)
    return Rehearsal(watch.observations(), outside, raised[0] if raised else None)


@contextlib.contextmanager
def _memory() -> Iterator[None]:
    """Give each rank a Dynamo state of its own: none knows the sizes of another, and each counts frames from 0."""
    with Undo() as undo, undo:
        parallel = torch.nn.parallel.DistributedDataParallel
        if hasattr(parallel, _RUNS):
            undo.add(setattr, parallel, _RUNS, getattr(parallel, _RUNS))
            setattr(parallel, _RUNS, None)
        undo.add(
            isolation.restore_environment, {name: os.environ.get(name) for name in isolation.SET_BY_INDUCTOR}
        )
        for owner, name, new in _MEMORY:
            undo.add(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, new())
        yield
