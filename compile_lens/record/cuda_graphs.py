"""Parts of a graph that torch would record as CUDA graphs, and its reasons for leaving out the others."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame

REASONS = {
    "cpu ops": "it runs on the CPU",
    "DeviceCopy ops": "it copies between two devices, which the host waits for",
    "cross-device ops": "it copies between two devices, which the host waits for",
    "Conditional ops": "which branch it takes is known when it runs",
    "Switch ops": "which branch it takes is known when it runs",
    "unbacked binding ops": "it makes a size that is known when it runs",
    "CUDAGraph-unsafe custom ops": "torch lists it as an operation that cannot be recorded",
    "dynamic shape ops": "its sizes change, and cudagraph_skip_dynamic_graphs is set",
    "too few kernels": "it has fewer kernels than cudagraph_min_partition_size",
}
"""Torch's reasons in plain words; any other reason is shown in torch's own words."""


@dataclass(frozen=True)
class GraphPartition:
    """Consecutive kernels that are recorded together, or not at all.

    Attributes:
        recorded: whether torch would record it, as far as the compiler decides that.
        groups: names of the nodes of ``"<phase>.groups"``, in run order.
        reasons: groups that cannot be recorded, with torch's reasons.
    """

    recorded: bool
    groups: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class MutatedInput:
    """An input that the graph writes into.

    Attributes:
        name: name of the input in ``"<phase>.post_grad"``.
        node: name of the node there that writes; ``""`` if not known.
        static: whether torch assumes a fixed address (a parameter, a buffer), so that the write is no obstacle.
    """

    name: str
    node: str = ""
    static: bool = False


@dataclass(frozen=True)
class CudaGraphs:
    """Outcome of one phase under ``mode="reduce-overhead"``, by the compiler's own checks.

    Attributes:
        phase: ``forward``, ``backward`` or ``inference``.
        enabled: whether it was compiled with CUDA graphs on; if not, the compiler's checks were run on the code as is.
        graph_partition: ``torch._inductor.config.graph_partition``: operations that cannot be recorded run between
            recorded parts. Without it, one such operation prevents recording the whole graph.
        partitions: the parts in run order; empty if there is a ``skip_reason``.
        skip_reason: why no part is recorded, in torch's words; ``""`` if some may be.
        node: the node of ``"<phase>.post_grad"`` named by ``skip_reason``; ``""`` if there is none.
        mutated_inputs: inputs that it writes into: if one is not static, torch records nothing, unless that tensor
            belongs to an earlier CUDA graph, which is only known at run time.
        unknown_reason: why the parts could not be determined; ``""`` if they were.
    """

    phase: str
    enabled: bool
    graph_partition: bool
    partitions: tuple[GraphPartition, ...] = ()
    skip_reason: str = ""
    node: str = ""
    mutated_inputs: tuple[MutatedInput, ...] = ()
    unknown_reason: str = ""


@dataclass(frozen=True)
class ProgramCudaGraphs:
    """Outcome of one phase of a graph of a program.

    Attributes:
        graph: its number in the program.
        id: its compile id.
        device: the GPU for which it was lowered.
        result: the compiler's result; if the graph could not be lowered, ``result.unknown_reason`` says why.
        may_differ: sentences on what may differ on the real GPU.
        lines: the program's lines of each group, and of each node that ``result`` names itself.
    """

    graph: int
    id: str
    device: str
    result: CudaGraphs
    may_differ: tuple[str, ...] = ()
    lines: tuple[tuple[str, tuple[Frame, ...]], ...] = ()
