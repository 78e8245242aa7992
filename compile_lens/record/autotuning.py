"""Autotuning: the implementations that ``max-autotune`` would time against each other for one operator on a device."""

from __future__ import annotations

from dataclasses import dataclass

from .device import DeviceModel
from .kernel import Kernel


@dataclass(frozen=True)
class Autotuning:
    """The candidates for one operator, of which the device keeps the fastest. Nothing was timed: there is no winner.

    Attributes:
        phase: the graph that was being compiled.
        operator: what it computes, by Inductor's name (``mm``, ``convolution``, ``flex_attention``).
        nodes: names of the nodes of ``"<phase>.post_grad"`` that it is held for: equal ones are listed once.
        inputs: a line for each input (``bfloat16[512, 1024]``).
        choices: the candidates in Inductor's order, none of which is launched as it stands here. A template has its
            text (``source``), the sizes of its blocks, warps and stages (``candidates``, of which there is one: what is
            a whole number; switches such as ``ALLOW_TF32`` and ``UNROLL`` are constants in its text), and with
            ``build`` its machine code (``ptx``, ``sass``). ``extern`` is a library's function; a language that this
            version does not know has torch's name.
        in_code: index of the one that stands in the generated code: the library's function, or else the first.
    """

    phase: str
    operator: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    choices: tuple[Kernel, ...]
    in_code: int = 0

    @property
    def templates(self) -> tuple[Kernel, ...]:
        """The contenders that are written from templates."""
        return tuple(k for k in self.choices if k.kind == "template")

    def __str__(self) -> str:
        head = f"{self.operator} of {' and '.join(self.inputs)} ({self.phase}): nothing was timed"
        return "\n".join((head, *(f"  {_line(k)}" for k in self.choices)))


def _line(kernel: Kernel) -> str:
    settings = kernel.candidates[0].settings if kernel.candidates else ()
    return ", ".join((f"{kernel.name} ({kernel.language})", *(f"{name}={value}" for name, value in settings)))


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
"""Operators for which there are C++ templates, with the reason why they are not tried."""


def no_template_reason(device: str, model: DeviceModel | None, operator: str, dtype: str = "") -> str:
    """Return why ``max-autotune`` has no template of an operator of ``TEMPLATES`` to time; ``""`` where it may have
    some.

    ``dtype`` is that of its result, ``""`` where it is not known; ``model`` that of the device that is not there.
    """
    if device == "mps":
        return "Inductor has no templates for Metal"
    if device == "cpu":
        return _ON_CPU.get(operator, "Inductor has no template of it for a CPU")
    if operator in OF_FLOATS and dtype in OTHER_TYPES:
        return f"Inductor has no template of it for {dtype}"
    return too_small_reason(model) if operator in OF_FLOATS else ""


def too_small_reason(model: DeviceModel | None) -> str:
    """Return why it tries no template of a product on this GPU, whatever its dtype; ``""`` where it does."""
    count = model.figure("multi_processor_count") if model is not None else None
    if model is None or model.device != "cuda" or not isinstance(count, int) or count >= FOR_TEMPLATES:
        return ""
    return f"Inductor has templates from {FOR_TEMPLATES} multiprocessors on, and {model.title} has {count}"
