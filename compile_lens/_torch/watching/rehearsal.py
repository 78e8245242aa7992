"""A program run once for each rank in one process: torch's fake process group stands in for the others.

Its collectives give back at once and hold what they were given, so that sizes are right and values are not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo.convert_frame as convert_frame
import torch._dynamo.pgo as pgo
from torch._C._dynamo import eval_frame

from ...record.collectives import Issued
from .. import isolation
from ..ground.undo import Undo
from . import issued
from .watch import Seen, Watch


@dataclasses.dataclass(frozen=True)
class Rehearsed:
    """What a watch saw of one rank, the collectives that Python called, and the error that ended it."""

    seen: Seen
    issued: tuple[Issued, ...]
    error: Exception | None


_MEMORY: tuple[tuple[Any, str, Callable[[], Any]], ...] = (
    (pgo, "_CODE_STATE", lambda: defaultdict(pgo.CodeState)),
    (convert_frame, "FRAME_COUNTER", int),
    (convert_frame, "FRAME_COMPILE_COUNTER", Counter),
)
"""Where Dynamo remembers sizes and numbers, and how each begins in a new process."""

_RUNS = "_active_ddp_module"
"""The module of DDP whose forward runs. Torch leaves it there where an error ends that forward, and cuts all that is
compiled later in the process by its buckets."""


def lacks() -> str:
    """Why nothing can be rehearsed here; ``""`` where it can."""
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


def rehearse(call: Callable[[], Any], rank: int, world: int) -> Rehearsed:
    """Make a call as the process of a rank would. What Dynamo keeps of it goes when it is over, and random numbers,
    its memory of sizes, its numbers of frames and Python's hook for errors are as before."""
    raised: list[Exception] = []
    watch, calls = Watch(), issued.Calls()
    with isolation.random_state(), _group(rank, world), _memory(), Undo() as undo, undo:
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
    outside = tuple(Issued(one, watch.graphs_before(at), whole) for at, one, whole in calls.found)
    return Rehearsed(watch.seen(), outside, raised[0] if raised else None)


@contextlib.contextmanager
def _group(rank: int, world: int) -> Iterator[None]:
    import torch.distributed as distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore

    with Undo() as undo, undo:
        undo.add(setattr, sys, "excepthook", sys.excepthook)  # a group puts its rank before each traceback
        undo.add(_leave_group)
        distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
        yield


def _leave_group() -> None:
    import torch.distributed as distributed

    if distributed.is_initialized():  # the call may have destroyed it, as programs do at their end
        distributed.destroy_process_group()


@contextlib.contextmanager
def _memory() -> Iterator[None]:
    """Each rank is a process of its own: none knows the sizes that another met, and each counts frames from 0."""
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
