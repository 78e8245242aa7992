"""A graph's communication with other processes: its collectives, and the buckets into which DDP splits it.

AOTAutograd traces a graph again and adds DTensor's collectives, which are read when it compiles the forward.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import is_traceable_wrapper_subclass as is_subclass

from ...record import claims
from ...record.collectives import Bucket, Collective
from ..graphs import fx_values
from ..ground import source_places
from . import issued_collectives, scopes
from .observers import observe_late, observing, place_late

_SPACES = ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d")
_WAITS = ("wait_tensor",)


def collectives(gm: torch.fx.GraphModule) -> tuple[Collective, ...]:
    """Return the collectives of a graph and of its nested graphs, in the order of their calls."""
    calls: list[Collective] = []
    for node in gm.graph.nodes:
        if (inner := _nested(gm, node)) is not None:
            calls += collectives(inner)
        target = node.target
        packet = getattr(target, "overloadpacket", target)
        space, _, name = str(packet).rpartition(".")
        if node.op == "call_function" and space in _SPACES and name not in _WAITS:
            calls.append(_collective(node, name))
    return tuple(calls)


def calls(gm: torch.fx.GraphModule) -> tuple[str, ...]:
    """Return the operator of each call of a graph, in order, with the operators of the call's nested graphs, such as
    branches or checkpointed functions."""
    return tuple(_operator(gm, node) for node in gm.graph.nodes if node.op.startswith("call_"))


def _operator(gm: torch.fx.GraphModule, node: torch.fx.Node) -> str:
    bodies = [body for each in node.all_input_nodes if (body := _nested(gm, each)) is not None]
    inside = f"({'; '.join(', '.join(calls(body)) for body in bodies)})" if bodies else ""
    placements = _placements([*node.args, *node.kwargs.values()])
    return f"{_name(gm, node)}{inside}" + (f" to {', '.join(placements)}" if placements else "")


def _placements(arguments: list[Any]) -> list[str]:
    """Return the DTensor placements among a call's arguments, on which all ranks must agree."""
    lists = [one if isinstance(one, (list, tuple)) else [one] for one in arguments]
    return [
        str(one)
        for own in lists
        for one in own
        if type(one).__module__.startswith("torch.distributed.tensor")
    ]


def _nested(gm: torch.fx.GraphModule, node: torch.fx.Node) -> torch.fx.GraphModule | None:
    """Return the nested graph that a ``get_attr`` node refers to, or None."""
    inner = getattr(gm, str(node.target), None) if node.op == "get_attr" else None
    return inner if isinstance(inner, torch.fx.GraphModule) else None


def _name(gm: torch.fx.GraphModule, node: torch.fx.Node) -> str:
    if node.op == "call_module":
        return type(gm.get_submodule(str(node.target))).__name__
    if isinstance(node.target, str):
        return node.target
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(packet, "__name__", None) or packet)


def _collective(node: torch.fx.Node, name: str) -> Collective:
    given = [fx_values.tensor(x) for n in node.all_input_nodes if isinstance(x := _value(n), torch.Tensor)]
    sizes = [tensor.nbytes for tensor in given]
    known = [size for size in sizes if size is not None]
    plain = [a for a in node.args if isinstance(a, str)]
    group = next((ranks for a in reversed(plain) if (ranks := issued_collectives.members(a))[0]), ((), 0))
    frames = source_places.frames(node.stack_trace)
    return Collective(
        name,
        ", ".join(a for a in plain if a in issued_collectives.REDUCTIONS),
        tuple(f"{t.dtype}[{', '.join(map(str, t.shape))}]" for t in given),
        sum(known) if given and len(known) == len(sizes) else None,
        next((frame for frame in reversed(frames) if not frame.of_torch), None),
        *group,
    )


def _value(node: torch.fx.Node) -> Any:
    return node.meta.get("example_value", node.meta.get("val"))


_COMPILE = "torch._functorch._aot_autograd.graph_compile:_aot_stage2b_"
_FORWARDS = (_COMPILE + "fw_compile", _COMPILE + "inference_compile")


def place_forwards(scopes_of_watch: tuple[scopes.Scope, ...]) -> None:
    """Install the observers of AOTAutograd's forward graphs; most backends import it."""
    for path in _FORWARDS:
        place_late(path, scopes_of_watch)


@observe_late(_FORWARDS[0], claims.GRAPH_COLLECTIVES)
def keep_forward(real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Record the collectives of a forward graph before a compiler changes it."""
    evaluation = scopes.current()
    if evaluation is not None:
        with observing(evaluation.scopes, claims.GRAPH_COLLECTIVES):
            evaluation.collectives = (*(evaluation.collectives or ()), *collectives(gm))
    return real(gm, *args, **kwargs)


@observe_late(_FORWARDS[1], claims.GRAPH_COLLECTIVES)
def keep_inference(real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Record the collectives of a graph without a backward."""
    return keep_forward(real, gm, *args, **kwargs)


def has_distributed_tensors(gm: torch.fx.GraphModule) -> bool:
    """Return True if a graph has tensor subclasses such as DTensor, for which AOTAutograd adds collectives."""
    values = map(_value, gm.graph.nodes)
    return any(isinstance(value, torch.Tensor) and is_subclass(value) for value in values)


CUTS = "torch._dynamo.backends.distributed:DDPOptimizer.compile_fn"


def place_cuts() -> None:
    """Install the observer before torch imports the module and binds the method, when Dynamo evaluates a frame in DDP's
    forward."""
    if torch.nn.parallel.DistributedDataParallel._get_active_ddp_module() is not None:
        place_late(CUTS)


@observe_late(CUTS, claims.BUCKETS)
def keep_buckets(real: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the buckets of gradients at which DDP's optimizer splits a graph."""
    result = real(optimizer, *args, **kwargs)
    evaluation = scopes.current()
    if evaluation is not None:
        with observing(evaluation.scopes, claims.BUCKETS):
            # Torch fills the buckets from the last gradient on, but returns them in the order of the forward.
            evaluation.buckets = tuple(Bucket(int(b.size), len(b.params)) for b in optimizer.buckets)
    return result
