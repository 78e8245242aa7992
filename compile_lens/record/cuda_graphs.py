"""Parts of a graph that torch would record as CUDA graphs, and its reasons against the others."""

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
"""Meaning of torch's reasons; any other reason is shown in torch's own words."""


@dataclass(frozen=True)
class GraphPartition:
    """Kernels that stand in a row and are recorded together, or not at all.

    Attributes:
        recorded: whether torch would record it, as far as the compiler decides that.
        groups: names of the nodes of ``"<phase>.groups"``, in the order in which they run.
        reasons: of those that cannot be recorded, why, in torch's words.
    """

    recorded: bool
    groups: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class MutatedInput:
    """An input that the graph writes into.

    Attributes:
        name: of the input in ``"<phase>.post_grad"``.
        node: of the node there that writes; ``""`` where that is not known.
        static: torch takes its address to stay the same (a parameter, a buffer), so that it is no hindrance.
    """

    name: str
    node: str = ""
    static: bool = False


@dataclass(frozen=True)
class CudaGraphs:
    """Outcome of one phase under ``mode="reduce-overhead"``, by the compiler's own checks.

    Attributes:
        phase: ``forward``, ``backward`` or ``inference``.
        enabled: it was compiled with CUDA graphs on; else the compiler's questions were asked of the code as it is.
        graph_partition: ``torch._inductor.config.graph_partition``: what cannot be recorded stands between parts that
            are. Without it, one such operation keeps all of the graph from it.
        partitions: in the order in which they run; empty where ``skip_reason``.
        skip_reason: why none of it is recorded, in torch's words; ``""`` where some may be.
        node: the node of ``"<phase>.post_grad"`` that ``skip_reason`` is about; ``""`` where it is about none.
        mutated_inputs: inputs that it writes into: with one that is not static torch records nothing, unless that
            tensor is itself of an earlier CUDA graph, which is known when it runs.
        unknown_reason: why the parts could not be asked for; ``""`` where they were.
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
        device: the name of the GPU that it was lowered for.
        result: what the compiler answered; of a graph that could not be lowered for it ``result.unknown`` says why.
        may_differ: what may be otherwise where the program runs on that GPU, a sentence each.
        lines: the lines of the program that each group came from, and each node that ``result`` names of itself.
    """

    graph: int
    id: str
    device: str
    result: CudaGraphs
    may_differ: tuple[str, ...] = ()
    lines: tuple[tuple[str, tuple[Frame, ...]], ...] = ()
