"""What ``max-autotune`` would time against each other: the ways that Inductor has for one operator on a device."""

from __future__ import annotations

from dataclasses import dataclass

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
