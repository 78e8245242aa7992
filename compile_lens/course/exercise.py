"""Parts of questions and exercises: plain data, with a program if an exercise rewrites one; and parts shared by several
lessons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

AT_LEAST, AT_MOST, EXACTLY = "at least", "at most", "exactly"
"""Relations between a fact and a number."""


@dataclass(frozen=True)
class Input:
    """An input tensor of random numbers between 0 and 1."""

    shape: tuple[int, ...]
    grad: bool = False
    dtype: str = "float32"


@dataclass(frozen=True)
class Need:
    """Requirement on a capture: a fact (``facts.FACTS``), and its relation to a number."""

    fact: str
    relation: str
    value: int


@dataclass(frozen=True)
class Slip:
    """A common mistake: the facts that show it in a capture, and the reply, which never gives the answer."""

    when: tuple[Need, ...]
    says: str


@dataclass(frozen=True)
class Exercise:
    """One exercise: a program to write. It is right if its capture meets every need.

    Attributes:
        key: lesson and number, ``"1.2"``.
        task: what to do.
        inputs: the inputs of the function.
        needs: requirements on its capture.
        slips: common mistakes; the first that matches is reported.
        hints: from a nudge to nearly the answer.
        solution: one correct program, as text; there are others.
        same_as: reference function whose results it must compute, if required.
        target: the device of the captured code, ``""`` for the present one.
        again: inputs of further calls, if the exercise is about several: one capture covers all of them.
        program: the program to rewrite, if the function is part of a backend: it receives the graph module that Dynamo
            makes of ``program``, and returns a callable to use instead, which is captured.
    """

    key: str
    task: str
    inputs: tuple[Input, ...]
    needs: tuple[Need, ...]
    slips: tuple[Slip, ...]
    hints: tuple[str, ...]
    solution: str
    same_as: Callable[..., Any] | None = None
    again: tuple[tuple[Input, ...], ...] = ()
    target: str = ""
    program: Callable[..., Any] | None = None

    @property
    def calls(self) -> tuple[tuple[Input, ...], ...]:
        """The inputs of every call, in order."""
        return (self.inputs, *self.again)


@dataclass(frozen=True)
class Question:
    """A question to answer before any code runs.

    Attributes:
        key: lesson and name, ``"1.kernels"``.
        text: the question.
        parts: the name and the fact of each number of the answer.
        target: the device in question, ``""`` for any.
    """

    key: str
    text: str
    parts: tuple[tuple[str, str], ...]
    target: str = ""


UNBROKEN = (Need("breaks", EXACTLY, 0), Need("skipped", EXACTLY, 0))
"""Needs: everything is compiled, without a graph break."""

OWN = (Need("library_calls", EXACTLY, 0), *UNBROKEN)
"""Needs: everything is the compiler's own code."""

MATRIX = (Input((64, 64)),)
"""One square matrix."""

TRAINED = (Input((64, 64), grad=True),)
"""One square matrix that requires a gradient."""

REPEATED = Slip(
    (Need("backward_ops", EXACTLY, 0), Need("repeated", AT_LEAST, 1)),
    "Its backward computes nothing: it only repeats the gradient of one number for many.",
)
"""Slip: the backward only expands the gradient of a sum."""

VALUE_NEEDED = Slip(
    (Need("breaks", AT_LEAST, 1),),
    "Python still needs a value while the function runs. Keep the value in a tensor, and replace the Python code "
    "with tensor operators.",
)
"""Slip: a graph break because Python reads the value of a tensor."""
