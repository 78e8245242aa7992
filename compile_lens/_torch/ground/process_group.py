"""A process group without other processes: torch's fake group, in which a collective returns at once."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Iterator
from typing import Any

from .undo import Undo


@contextlib.contextmanager
def fake_group(rank: int, world: int) -> Iterator[None]:
    """Make this process, for the duration, a rank of a default process group that has no other processes."""
    import torch.distributed as distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore

    with Undo() as undo, undo:
        undo.add(
            setattr, sys, "excepthook", sys.excepthook
        )  # init_process_group prefixes tracebacks with the rank
        undo.add(_forget_meshes)
        undo.add(_leave_group)
        _accept_monitored_barriers(undo)
        distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
        yield


def _accept_monitored_barriers(undo: Undo) -> None:
    """Make ``monitored_barrier``, which rejects every group but gloo's, take this group for one of gloo's."""
    module: Any = sys.modules["torch.distributed.distributed_c10d"]
    real = module.get_backend

    def get_backend(group: Any = None) -> Any:
        caller = sys._getframe(1).f_code
        monitored = (caller.co_name, caller.co_filename) == ("monitored_barrier", module.__file__)
        return module.Backend.GLOO if monitored else real(group)

    undo.add(setattr, module, "get_backend", real)
    module.get_backend = functools.update_wrapper(get_backend, real)


def _leave_group() -> None:
    import torch.distributed as distributed

    if distributed.is_initialized():  # the program may have destroyed the group at its end
        distributed.destroy_process_group()


def _forget_meshes() -> None:
    """Clear DTensor's caches: they keep device meshes alive, and with them the groups of an earlier rank."""
    tensors = "torch.distributed.tensor"
    for name, module in list(sys.modules.items()):
        if module is not None and (name == tensors or name.startswith(f"{tensors}.")):
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)) and not isinstance(value, type):
                    clear()
    if tensors in sys.modules:
        debug = importlib.import_module(f"{tensors}.debug")
        clear = getattr(debug, "_clear_sharding_prop_cache", None)
        if clear is not None:
            clear()
