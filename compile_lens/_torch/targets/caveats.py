"""Possible differences on the real device, shown with the code concerned. Each is a fact about Inductor's decisions,
not a measurement."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from typing import Any

import torch

from ...record import autotuning
from ...record.device import DeviceModel
from ...record.graph import Graph
from ...record.kernel import Kernel
from ..operators import native_functions
from . import attention, device_interfaces
from .timing_decisions import TIMED, profiles_memory_budget

UNTRACED = "Python that Dynamo does not trace ran with CPU tensors"
"""Caveat of a capture with a graph break."""

NOTHING_COMPUTED = "inputs or parameters are on meta: nothing was computed"
"""Caveat of a capture with shapes only."""

NO_TABLE = (
    "this torch came without its table of operators (torchgen): which kernels a build for the device has is not known, "
    "and what torch makes of other operators where there is none (RMSNorm, the backward of SiLU) was made of them"
)
"""Caveat for a build of torch without the table of kernels."""

_PADDED = re.compile(r"(?:\b|\baoti_torch_[a-z]+_)(?:mm|bmm|addmm|baddbmm)(?:_out)?\b")
"""Matrix products that Inductor may pad, by their names in a Python or C++ wrapper."""

AUTOTUNE = ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise")
"""Inductor's settings that make it time several candidates."""


def _has_any_on_the_cpu(graph: Graph) -> bool:
    return any(output.device.startswith("cpu") for node in graph.nodes for output in node.outputs)


def capture_caveats(model: DeviceModel, settings: dict[str, Any]) -> tuple[str, ...]:
    """Return caveats of a whole capture. ``settings`` are Inductor's from the caller, which override those of the
    process."""
    import torch._inductor.config as config

    known = config.get_config_copy() | settings

    def on(name: str) -> bool:
        return bool(known.get(name))

    sentences = [] if native_functions.table() else [NO_TABLE]
    if any(on(name) for name in AUTOTUNE):
        sentences.append(_autotune_caveat(model))
    if model.device == "cuda" and on("coordinate_descent_tuning"):
        sentences.append(
            "coordinate descent searches launch configurations (sizes of blocks, warps) by timing them on the device: "
            "left out here; the graphs and kernels are those that torch makes with it"
        )
    sentences += [
        timed.caveat for timed in TIMED if on(timed.name) and (not timed.beside or on(timed.beside))
    ]
    if on("reorder_for_compute_comm_overlap"):
        sentences.append(
            "collectives are ordered by estimated times: those of kernels come from the device's driver, and are 0 here"
        )
    if profiles_memory_budget():
        sentences.append(
            "what is saved for the backward is decided by timing operators on the device, where the memory budget is "
            "less than 1: here by counting their floating-point operations"
        )
    if on("freezing") and not torch.is_grad_enabled():  # freezing requires disabled gradients
        sentences.append(
            "freezing computes with the weights on the device while it compiles, and keeps the results as constants: "
            "left out here, the code takes the weights as they are"
        )
    if on("triton.cudagraphs"):
        sentences.append(
            "CUDA graphs are recorded by the device: left out here. The kernels are the same, in another order where "
            "that makes fewer parts to record"
        )
    return tuple(sentences)


def _autotune_caveat(model: DeviceModel) -> str:
    """Return the caveat for max-autotune."""
    if model.device == "mps":
        none = autotuning.no_template_reason(model.device, model, "mm")
        return f"max-autotune times nothing: {none}, nor launch configurations"
    small = autotuning.too_small_reason(model)
    if small:
        return f"max-autotune times only launch configurations: {small}"
    if importlib.util.find_spec("triton") is None:
        return "max-autotune times templates on the device: left out here, since they are written with Triton"
    return (
        "max-autotune times templates on the device and keeps the fastest; nothing was timed here, so the code calls "
        "the library's function where that is among them, and uses the first template elsewhere (capture.autotuning "
        "lists all)"
    )


def code_caveats(
    model: DeviceModel,
    kernels: Sequence[Kernel],
    captured: Graph | None = None,
    *,
    pads: bool = True,
    splits: bool = True,
) -> tuple[str, ...]:
    """Return caveats of one phase's code, for the graph that Dynamo ``captured``. With ``pads``, the device may pad
    matrices; with ``splits``, it may split a reduction differently."""
    sentences = []
    languages = {k.language for k in kernels}
    beside = [k.name for k in kernels if k.language == "cpp"]
    if beside and captured is not None and not _has_any_on_the_cpu(captured):
        sentences.append(
            f"{', '.join(beside)} {'is' if len(beside) == 1 else 'are'} C++ for the CPU next to the device's code, "
            "though the captured graph has no tensor there: what a compile on the device has in its place was not "
            "observed"
        )
    called = " ".join(k.name for k in kernels if k.language == "extern")
    count = model.figure("multi_processor_count")
    units = "multiprocessors" if model.device == "cuda" else "GPU cores"
    if model.device == "mps":
        sentences.append(f"the system is assumed to be macOS {device_interfaces.MACOS[0]}")
    if "triton" in languages:
        sentences.append(
            "Inductor offers several launch configurations for many kernels (sizes of blocks, warps): the device times "
            "them once and keeps the fastest"
        )
    if any(k.kind in ("reduction", "scan") for k in kernels) and count and splits:
        sentences.append(
            f"whether and how a reduction is split depends on the number of {units}: {count} in the model {model.name}"
        )
    if model.device == "cuda" and pads and _PADDED.search(called):
        sentences.append(
            "whether matrices are padded for a faster product is timed on the device: not padded here"
        )
    if "scaled_dot_product" in called:
        sentences.append(attention.MAY_DIFFER)
    return tuple(sentences)
