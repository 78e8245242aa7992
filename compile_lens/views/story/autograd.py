"""Sentences about AOTAutograd: the joint graph, its partition, and the tensors saved for the backward."""

from __future__ import annotations

from compile_lens.record.compilation import Compilation
from compile_lens.record.memory import Partition, saved_bytes

from ..words.outline import phase_of
from .frames import STAGES
from .language import MEMORY, Amount, Names
from .model import Teller


def autograd(teller: Teller, compilation: Compilation) -> None:
    """The joint graph and its two halves, or the one graph for inference."""
    here = teller.at(compilation, "autograd")
    graphs = compilation.graphs
    joint, forward, backward = (graphs.get(key) for key in ("joint", "forward", "backward"))
    if joint is not None:
        here.say("joint", "joint", [n.name for n in joint.calls], n=Amount(len(joint.calls), "call"))
        derivatives = [n.name for n in joint.calls if n.derivative]
        if derivatives:
            here.say("derivatives", "joint", derivatives, n=Amount(len(derivatives)))
    if joint is not None and forward is not None and backward is not None:
        halves = (Amount(len(half.calls), "call") for half in (forward, backward))
        here.say("cut", "joint", forward=next(halves), backward=next(halves))
    inference = graphs.get("inference")
    if inference is not None:
        here.say("one_graph", "inference", n=Amount(len(inference.calls), "call"))
    if forward is not None and forward.saved:
        kept = Names(forward.saved)
        here.say("saved", "forward", forward.saved, n=Amount(len(forward.saved), "value"), names=kept)
    if compilation.partition is not None:
        _partition(here, compilation.partition)
    here.absent(lambda stage: stage not in STAGES and not phase_of(stage))


def _partition(here: Teller, partition: Partition) -> None:
    if not partition.saved:
        here.say("saved_none", "joint")
    own = saved_bytes(partition.saved)
    if partition.saved and own is not None:
        if own:
            here.say("keeps", "joint", bytes=Amount(own, MEMORY))
        else:
            here.say("keeps_free", "joint")
    if partition.default is not None:
        names = tuple(kept.node for kept in partition.default)
        if names:
            here.say("default", "joint", n=Amount(len(names), "value"), names=Names(names))
    if partition.recomputed:
        names = partition.recomputed
        here.say("recomputed", "joint", names, names=Names(names), n=Amount(len(names), "operator"))
