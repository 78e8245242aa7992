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
        operator: Inductor's name of the operator (``mm``, ``convolution``, ``flex_attention``).
        nodes: names of the nodes of ``"<phase>.post_grad"`` with these candidates; equal nodes are listed once.
        inputs: a line for each input (``bfloat16[512, 1024]``).
        choices: the candidates in Inductor's order, none of which is launched as it is here. A template has its
            text (``source``), a single entry of ``candidates`` with its integer settings (block sizes, warps, stages;
            switches such as ``ALLOW_TF32`` and ``UNROLL`` are constants in its text), and with ``build`` its machine
            code (``ptx``, ``sass``). ``extern`` is a library function; a language that this version does not know has
            torch's name.
        in_code: index of the candidate in the generated code: the library function, or else the first.
    """

    phase: str
    operator: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    choices: tuple[Kernel, ...]
    in_code: int = 0

    @property
    def templates(self) -> tuple[Kernel, ...]:
        """The candidates that are templates."""
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
"""Operators for which Inductor has templates."""

MIN_MULTIPROCESSORS = 68
"""Fewest multiprocessors of a GPU for which Inductor tries templates of products and convolutions."""

TYPES_WITHOUT_TEMPLATES = ("float64", "int64", "int16", "uint8", "bool", "complex64", "complex128")
"""Result types without templates for ``FLOAT_OPERATORS`` on a GPU."""

FLOAT_OPERATORS = ("mm", "addmm", "bmm", "baddbmm", "convolution")

_CONSTANTS = "on a CPU Inductor has templates only for weights that are constants of the graph"

_ON_CPU = {"mm": _CONSTANTS, "addmm": _CONSTANTS, "bmm": ""}
"""Operators with C++ templates, and the reason why these are not tried (``""``: they may be)."""


def no_template_reason(device: str, model: DeviceModel | None, operator: str, dtype: str = "") -> str:
    """Return why ``max-autotune`` has no template of an operator of ``TEMPLATES`` to time; ``""`` if it may have some.

    ``dtype`` is the type of the result, ``""`` if not known; ``model`` is the model of an absent device.
    """
    if device == "mps":
        return "Inductor has no templates for Metal"
    if device == "cpu":
        return _ON_CPU.get(operator, "Inductor has no template of it for a CPU")
    if operator in FLOAT_OPERATORS and dtype in TYPES_WITHOUT_TEMPLATES:
        return f"Inductor has no template of it for {dtype}"
    return too_small_reason(model) if operator in FLOAT_OPERATORS else ""


def too_small_reason(model: DeviceModel | None) -> str:
    """Return why Inductor tries no template of a product of any dtype on this GPU; ``""`` if it does."""
    count = model.figure("multi_processor_count") if model is not None else None
    if model is None or model.device != "cuda" or not isinstance(count, int) or count >= MIN_MULTIPROCESSORS:
        return ""
    return (
        f"Inductor uses templates only with {MIN_MULTIPROCESSORS} multiprocessors or more, and {model.title} has "
        f"{count}"
    )
