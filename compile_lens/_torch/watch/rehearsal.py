"""A program run once per rank in one process, with torch's fake process group instead of other processes.

Its collectives return at once with their inputs, so that sizes are correct and values are not.
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

from .. import isolation
from ..ground.process_group import fake_group
from ..ground.undo import Undo
from . import collective_waits, issued_collectives
from .program_watch import Observations, ProgramWatch
from .rank_values import RankValues


@dataclasses.dataclass(frozen=True)
class Rehearsal:
    """The observations of one rank, and the error that ended it."""

    seen: Observations
    error: BaseException | None


_MEMORY: tuple[tuple[Any, str, Callable[[], Any]], ...] = (
    (pgo, "_CODE_STATE", lambda: defaultdict(pgo.CodeState)),
    (convert_frame, "FRAME_COUNTER", int),
    (convert_frame, "FRAME_COMPILE_COUNTER", Counter),
)
"""Dynamo's state of sizes and frame numbers, with the initial values of a new process."""

_ACTIVE_MODULE = "_active_ddp_module"
"""Attribute of DDP with the module whose forward runs. Torch leaves it set if the forward raises, and then splits all
later graphs of the process by that module's buckets."""


def why_impossible() -> str:
    """Return why rehearsals are impossible in this process; ``""`` if they are possible."""
    import torch.distributed as distributed

    if not distributed.is_available():
        return "this torch has no torch.distributed"
    if distributed.is_initialized():
        return "torch.distributed is in use in this process; destroy its process group first"
    absent = [f"{owner.__name__}.{name}" for owner, name, _ in _MEMORY if not hasattr(owner, name)]
    if absent:  # one rank would see another's sizes
        return f"this torch keeps what Dynamo remembers elsewhere: it has no {', '.join(absent)}"
    try:
        from torch.testing._internal.distributed import fake_pg  # noqa: F401
    except ImportError as error:
        return f"this torch has no fake process group: {error}"
    return ""


def rehearse(call: Callable[[], Any], rank: int, world: int, values: RankValues) -> Rehearsal:
    """Run ``call`` as the process of one rank. Afterwards its compiled code is dropped from Dynamo, and random state,
    Dynamo's sizes and frame numbers, and Python's exception hook are restored."""
    raised: list[BaseException] = []
    watch = ProgramWatch()
    values.begin_rank()
    with isolation.random_state(), fake_group(rank, world), _memory(), Undo() as undo, undo:
        issued_collectives.finish_calls(undo, values.finish)
        collective_waits.give_source(undo, lambda: values.source)
        grad = torch.is_grad_enabled()
        watch.open()
        try:
            call()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # includes SystemExit and exceptions of torch's checkpoints
            raised.append(error)
        finally:
            watch.close("the call returned" if not raised else f"{type(raised[0]).__name__}: {raised[0]}")
            torch.set_grad_enabled(grad)
            for code in watch.compiled():
                eval_frame.reset_code(code)
    return Rehearsal(watch.observations(), raised[0] if raised else None)


@contextlib.contextmanager
def _memory() -> Iterator[None]:
    """Use a fresh Dynamo state for a rank, without sizes of other ranks, and with frame numbers from 0."""
    with Undo() as undo, undo:
        parallel = torch.nn.parallel.DistributedDataParallel
        if hasattr(parallel, _ACTIVE_MODULE):
            undo.add(setattr, parallel, _ACTIVE_MODULE, getattr(parallel, _ACTIVE_MODULE))
            setattr(parallel, _ACTIVE_MODULE, None)
        undo.add(
            isolation.restore_environment, {name: os.environ.get(name) for name in isolation.SET_BY_INDUCTOR}
        )
        for owner, name, new in _MEMORY:
            undo.add(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, new())
        yield
