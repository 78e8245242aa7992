"""CUDA graphs that torch would record for a program's graph, with Python lines, from a capture of that graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..devices import models
from ..errors import UsageError
from ..record.capture import Record
from ..record.compilation import Compilation
from ..record.cuda_graphs import CudaGraphs, ProgramCudaGraphs
from ..record.device import DeviceModel
from ..record.graph import Frame
from ..record.program import ProgramGraph
from .chain import Chain


def nvidia_gpu(target: str | Path | DeviceModel) -> DeviceModel:
    """Return the NVIDIA GPU of a target; raise ``UsageError`` for any other device."""
    model = models.resolve(target)
    if model.device != "cuda":
        raise UsageError(f"{model.name} has no CUDA graphs: name an NVIDIA GPU, such as h100")
    return model


def cuda_graphs_of(graph: ProgramGraph, device: str, capture: Record) -> tuple[ProgramCudaGraphs, ...]:
    """Return the CUDA graphs of each phase of a graph, from its capture; none if that is for no NVIDIA GPU."""
    chain = Chain(capture)
    differs = () if capture.target is None else capture.target.may_differ
    return tuple(
        ProgramCudaGraphs(
            graph.number, graph.id, device, one, differs, tuple(_lines(chain, compilation, one))
        )
        for compilation in capture.compilations
        for one in compilation.cuda_graphs
    )


def _lines(
    chain: Chain, compilation: Compilation, one: CudaGraphs
) -> Iterator[tuple[str, tuple[Frame, ...]]]:
    wanted = [("groups", name) for part in one.partitions for name, _ in part.reasons]
    wanted += [("post_grad", name) for name in (one.node, *(m.node for m in one.mutated_inputs)) if name]
    for stage, name in dict.fromkeys(wanted):
        address = compilation.id, f"{one.phase}.{stage}", name
        if address in chain:
            yield name, tuple(chain.lines(address, derivatives=False))
