"""Parts of questions and exercises: plain data, and a program where a question is about one; and those that several
lessons share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

AT_LEAST, AT_MOST, EXACTLY = "at least", "at most", "exactly"
"""Relations between a fact and a number."""


@dataclass(frozen=True)
class Input:
    """A tensor of random numbers between 0 and 1 that a function is called with."""

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
    """A mistake that many make: what a capture shows then, and what to say to it. It never says the answer."""

    when: tuple[Need, ...]
    says: str


@dataclass(frozen=True)
class Exercise:
    """One exercise: a program to write. It is right where every need is met by a capture of it.

    Attributes:
        key: lesson and number, ``"1.2"``.
        task: what to do.
        inputs: what the function is called with.
        needs: what is to be so of its capture.
        slips: common mistakes, the first that fits is told.
        hints: from a nudge to nearly there.
        solution: one program that is right, as text; there are others.
        same_as: what it is to compute, if that is asked: its results are compared with those of this function.
        target: the device that its code is captured for, ``""`` for the one that is there.
        again: inputs of further calls, where the exercise is about several: one capture sees all of them.
        program: what the function is to rewrite, where it is part of a backend: it is given the graph module that
            Dynamo makes of ``program``, and returns what is to be called instead, which is captured.
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
        parts: what each number of the answer is, as ``(name, fact)``.
        target: the device that it is about, ``""`` for any.
    """

    key: str
    text: str
    parts: tuple[tuple[str, str], ...]
    target: str = ""


UNBROKEN = (Need("breaks", EXACTLY, 0), Need("skipped", EXACTLY, 0))
"""All of it is compiled, in one piece."""

OWN = (Need("library_calls", EXACTLY, 0), *UNBROKEN)
"""All of it is the compiler's own code."""

MATRIX = (Input((64, 64)),)
"""One square matrix."""

TRAINED = (Input((64, 64), grad=True),)
"""One square matrix that a gradient is wanted of."""

REPEATED = Slip(
    (Need("backward_ops", EXACTLY, 0), Need("repeated", AT_LEAST, 1)),
    "Its backward computes nothing: the gradient of one number is passed on to many, and only repeated for them.",
)
"""The backward of a sum, and no more."""

VALUE_NEEDED = Slip(
    (Need("breaks", AT_LEAST, 1),),
    "Python still needs to know a value while the function runs. Leave the value in a tensor, and say with operators "
    "on tensors what is to become of it.",
)
"""A graph break where Python asks a tensor for its value."""
