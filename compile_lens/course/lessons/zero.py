"""Lesson 0: devices, what ran where, and who wrote it."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, EXACTLY, UNBROKEN, Exercise, Input, Need, Question, Slip

QUESTIONS = tuple(
    Question(
        f"0.{key}", f"How many kernels does the compiler write for {what}?", (("kernels", "own_kernels"),)
    )
    for key, what in (("name", "torch.linalg.det(x)"), ("triangles", "a determinant by way of L and U"))
)


def determinant(x: Any) -> Any:
    """Return the determinant, for which the compiler calls a library."""
    return x.det()


EXERCISES = (
    Exercise(
        "0.1",
        "Write a function of one square matrix for which the compiler calls a library and writes no kernel.",
        (Input((4, 4)),),
        (Need("library_calls", AT_LEAST, 1), Need("own_kernels", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (Need("library_calls", EXACTLY, 0),),
                "The compiler knows formulas for everything here, and generated a kernel itself.",
            ),
            Slip(
                (Need("own_kernels", AT_LEAST, 1),),
                "There is a library call, but the compiler also generated code of its own next to it.",
            ),
        ),
        (
            "Which operators have no simple formula for each number?",
            "Think of a product of matrices, or of linear algebra, and do nothing else.",
        ),
        "def f(x):\n    return x @ x",
    ),
    Exercise(
        "0.2",
        "Write torch.linalg.det(x) for a matrix of 4 × 4 numbers so that the compiler writes at least one kernel "
        "and does not call the library's det.",
        (Input((4, 4)),),
        (Need("own_kernels", AT_LEAST, 1), Need("det_calls", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (Need("own_kernels", EXACTLY, 0),),
                "All of it was handed to a library. Do part of the work yourself.",
            ),
            Slip(
                (Need("det_calls", AT_LEAST, 1),),
                "The library's det is still called: the code next to it does not do part of its work yet.",
            ),
        ),
        (
            "The lesson shows one way. Is there a library function that gives the determinant in two pieces?",
            "torch.linalg.slogdet gives a sign, and the logarithm of the rest.",
        ),
        "def f(x):\n    sign, logarithm = torch.linalg.slogdet(x)\n    return sign * torch.exp(logarithm)",
        determinant,
    ),
    Exercise(
        "0.3",
        "Write torch.linalg.det(x) for 100 matrices of 2 × 2 numbers so that it becomes one launch, with no library "
        "call.",
        (Input((100, 2, 2)),),
        (
            Need("launches", EXACTLY, 1),
            Need("library_calls", EXACTLY, 0),
            *UNBROKEN,
        ),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library still does it. For two rows and two columns you know the formula.",
            ),
        ),
        (
            "What is the determinant of a, b over c, d?",
            "x[:, 0, 0] is the first number of every matrix.",
        ),
        "def f(x):\n    return x[:, 0, 0] * x[:, 1, 1] - x[:, 0, 1] * x[:, 1, 0]",
        determinant,
    ),
)
