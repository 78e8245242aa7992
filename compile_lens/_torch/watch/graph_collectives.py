"""A graph's relation to other processes: its collectives, and the buckets into which DDP cuts it."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from ...record import claims
from ...record.collectives import Bucket, Collective
from ..graphs import fx_values
from ..ground import source_places
from . import scopes
from .observers import observe_late, observing, place_late

_SPACES = ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d")
_WAITS = ("wait_tensor",)


def collectives(gm: torch.fx.GraphModule) -> tuple[Collective, ...]:
    """Return the collectives of a graph and of its nested graphs, in the order of their calls."""
    calls: list[Collective] = []
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            inner = getattr(gm, str(node.target), None)
            if isinstance(inner, torch.fx.GraphModule):
                calls += collectives(inner)
        target = node.target
        packet = getattr(target, "overloadpacket", target)
        space, _, name = str(packet).rpartition(".")
        if node.op == "call_function" and space in _SPACES and name not in _WAITS:
            calls.append(_collective(node, name))
    return tuple(calls)


def _collective(node: torch.fx.Node, name: str) -> Collective:
    given = [fx_values.tensor(x) for n in node.all_input_nodes if isinstance(x := _value(n), torch.Tensor)]
    sizes = [tensor.nbytes for tensor in given]
    known = [size for size in sizes if size is not None]
    plain = [a for a in node.args if not isinstance(a, (torch.fx.Node, list, tuple))]
    frames = source_places.frames(node.stack_trace)
    return Collective(
        name,
        ", ".join(map(str, plain)),
        tuple(f"{t.dtype}[{', '.join(map(str, t.shape))}]" for t in given),
        sum(known) if given and len(known) == len(sizes) else None,
        next((frame for frame in reversed(frames) if not frame.of_torch), None),
    )


def _value(node: torch.fx.Node) -> Any:
    return node.meta.get("example_value", node.meta.get("val"))


def process_rank() -> tuple[int, int] | None:
    """Return the rank of this process and how many there are; None if ``torch.distributed`` is not in use."""
    import torch.distributed as distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    return distributed.get_rank(), distributed.get_world_size()


CUTS = "torch._dynamo.backends.distributed:DDPOptimizer.compile_fn"


def place_cuts() -> None:
    """Place the observer before torch binds the method, as it does when Dynamo evaluates a frame in DDP's forward: it
    imports the module just then, and passes the bound method on."""
    if torch.nn.parallel.DistributedDataParallel._get_active_ddp_module() is not None:
        place_late(CUTS)


@observe_late(CUTS, claims.BUCKETS)
def keep_buckets(real: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep the buckets of gradients at which DDP's optimizer cuts a graph."""
    result = real(optimizer, *args, **kwargs)
    evaluation = scopes.current()
    if evaluation is not None:
        with observing(evaluation.scopes, claims.BUCKETS):
            # Torch fills them from the last gradient on and gives them in the order of the forward.
            evaluation.buckets = tuple(Bucket(int(b.size), len(b.params)) for b in optimizer.buckets)
    return result
