"""For what Inductor has templates that ``max-autotune`` times, and why it has none: by device, operator and type.

As ``torch/_inductor/utils.py`` decides: ``use_triton_template``, ``is_big_gpu``, ``use_cpp_gemm_template``,
``use_cpp_bmm_template``.
"""

from __future__ import annotations

from .device import DeviceModel

TEMPLATES = (
    "mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_int_mm", "_grouped_mm", "convolution", "flex_attention",
    "flex_attention_backward",
)  # fmt: skip
"""Operators that Inductor has templates of."""

FOR_TEMPLATES = 68
"""Multiprocessors of a GPU from which on it tries those of products and convolutions."""

OTHER_TYPES = ("float64", "int64", "int16", "uint8", "bool", "complex64", "complex128")
"""Types of results for which it has none, on a GPU, of ``OF_FLOATS``."""

OF_FLOATS = ("mm", "addmm", "bmm", "baddbmm", "convolution")

_CONSTANTS = "on a CPU Inductor has templates for weights that are constants of the graph alone"

_ON_CPU = {"mm": _CONSTANTS, "addmm": _CONSTANTS, "bmm": ""}
"""Of those for which it has templates in C++, what keeps them from being tried."""


def why_none(device: str, model: DeviceModel | None, operator: str, dtype: str = "") -> str:
    """Why ``max-autotune`` has no template of an operator of ``TEMPLATES`` to time; ``""`` where it may have some.

    ``dtype`` is that of its result, ``""`` where it is not known; ``model`` that of the device that is not there.
    """
    if device == "mps":
        return "Inductor has no templates for Metal"
    if device == "cpu":
        return _ON_CPU.get(operator, "Inductor has no template of it for a CPU")
    if operator in OF_FLOATS and dtype in OTHER_TYPES:
        return f"Inductor has no template of it for {dtype}"
    return too_small(model) if operator in OF_FLOATS else ""


def too_small(model: DeviceModel | None) -> str:
    """Why it tries no template of a product on a GPU, whatever its type; ``""`` where it does."""
    count = model.figure("multi_processor_count") if model is not None else None
    if model is None or model.device != "cuda" or not isinstance(count, int) or count >= FOR_TEMPLATES:
        return ""
    return f"Inductor has templates from {FOR_TEMPLATES} multiprocessors on, and {model.title} has {count}"
