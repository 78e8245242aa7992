"""CUDA graphs: the partitions that can be recorded, by torch's own checks just before codegen."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from ...record.cuda_graphs import CudaGraphs, GraphPartition, MutatedInput


def recordable_parts(phase: str, scheduler: Any, lowering: Any, static: Sequence[int]) -> CudaGraphs | None:
    """Return the partitions that torch would record; None if the graph is not for an NVIDIA GPU. ``static`` are the
    positions of inputs with a fixed address."""
    import torch._inductor.config as config

    if "cuda" not in getattr(lowering, "device_types", ()):
        return None
    enabled, partitioned = bool(config.triton.cudagraphs), bool(getattr(config, "graph_partition", False))
    mutated = _mutated(lowering, static)
    try:
        with config.patch({"triton.cudagraphs": True}):
            refused, node = _why_disabled(lowering)
            parts = () if refused else _parts(scheduler, enabled, config)
    except Exception as error:  # torch's own checks may fail on this graph
        return CudaGraphs(
            phase,
            enabled,
            partitioned,
            mutated_inputs=mutated,
            unknown_reason=f"{type(error).__name__}: {error}",
        )
    if not partitioned and not refused:
        refused, node = _why_not_whole(lowering)
        parts = () if refused else (GraphPartition(True, tuple(g for part in parts for g in part.groups)),)
    return CudaGraphs(phase, enabled, partitioned, parts, refused, node, mutated)


def _parts(scheduler: Any, enabled: bool, config: Any) -> tuple[GraphPartition, ...]:
    """Return the nodes in torch's order, split where recordable and other nodes meet."""
    nodes = list(scheduler.nodes)
    if not enabled and config.graph_partition and config.triton.reorder_for_reducing_graph_partitions:
        nodes = scheduler.maybe_reorder_for_minimizing_partition(nodes)
        nodes = scheduler.reorder_for_partition_with_simple_dependency(nodes)
    why = [(node, scheduler.should_partition(node)) for node in nodes]
    min_size = getattr(config.triton, "cudagraph_min_partition_size", 0)
    parts = []
    for recorded, members in itertools.groupby(why, lambda one: one[1] is None):
        part = list(members)
        names = tuple(node.get_name() for node, _ in part)
        reasons = tuple((node.get_name(), str(reason)) for node, reason in part if reason is not None)
        kernels = sum(type(node).__name__ != "NopKernelSchedulerNode" for node, _ in part)
        if recorded and kernels < min_size:
            recorded, reasons = False, tuple((name, "too few kernels") for name in names)
        parts.append(GraphPartition(recorded, names, reasons))
    return tuple(parts)


def _why_disabled(lowering: Any) -> tuple[str, str]:
    """Return why lowering disables CUDA graphs for the whole graph, and the node concerned."""
    from torch._inductor import cudagraph_utils

    if disabled_reason := lowering.disable_cudagraphs_reason:
        reason = _short_reason(disabled_reason)
        named = reason.rpartition("torch.")[2]  # "control flow operator: torch.cond."
        nodes = lowering.module.graph.nodes
        return reason, next(
            (n.name for n in nodes if named and named == getattr(n.target, "__name__", None)), ""
        )
    devices = dict(lowering.device_node_mapping)
    cpu = devices.get(torch.device("cpu"))
    disabled_reason = cudagraph_utils.check_multiple_devices_or_any_cpu_nodes(dict(devices))
    if not disabled_reason:
        return "", ""
    return _short_reason(
        disabled_reason
    ), cpu.name if cpu is not None and "cpu device" in disabled_reason else ""


def _why_not_whole(lowering: Any) -> tuple[str, str]:
    """Return why the graph is not recorded if it may not be partitioned, and the node concerned."""
    import torch._inductor.config as config
    from torch._inductor.utils import get_first_incompatible_cudagraph_node

    if config.triton.cudagraph_skip_dynamic_graphs and lowering.sizevars.shape_env.var_to_range:
        return "graph with symbolic shapes inputs and config.triton.cudagraph_skip_dynamic_graphs=True", ""
    incompatible = get_first_incompatible_cudagraph_node(lowering.module)
    return (
        (f"incompatible op {incompatible.target}", incompatible.name)
        if incompatible is not None
        else ("", "")
    )


def _short_reason(reason: str) -> str:
    """Return torch's reason without the stack trace, which the node in the record has."""
    return reason.removeprefix("skipping cudagraphs due to ").partition("Found from")[0].strip().rstrip(". ")


def _mutated(lowering: Any, static: Sequence[int]) -> tuple[MutatedInput, ...]:
    inputs = [node for node in lowering.module.graph.nodes if node.op == "placeholder"]
    inputs_mutated = []
    for position in getattr(lowering, "mutated_input_idxs", ()):
        node = inputs[position]
        writes = [user for user in node.users if "copy_" in str(user.target) or len(node.users) == 1]
        inputs_mutated.append(MutatedInput(node.name, writes[0].name if writes else "", position in static))
    return tuple(inputs_mutated)
