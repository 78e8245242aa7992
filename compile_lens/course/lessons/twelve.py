"""Lesson 12: scale and science."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, EXACTLY, UNBROKEN, Exercise, Input, Need, Question, Slip

QUESTIONS = (
    Question("12.loop", "40 determinants, one by one: how many launches?", (("launches", "launches"),)),
    Question("12.batch", "2,000 determinants, all at once: how many launches?", (("launches", "launches"),)),
    Question(
        "12.buckets",
        "Six layers of 1 MiB each, and buckets of 25 MB: how many graphs are compiled?",
        (("graphs", "handed"),),
    ),
)


def one_by_one(matrices: Any) -> Any:
    """A determinant for each matrix, each by itself."""
    import torch

    return torch.stack([torch.linalg.det(matrix) for matrix in matrices])


def multiplied(x: Any) -> Any:
    """The products of complex numbers, from their real and imaginary parts."""
    import torch

    return torch.view_as_real(torch.complex(x[0], x[1]) * torch.complex(x[2], x[3]))


EXERCISES = (
    Exercise(
        "12.1",
        "Write `one_by_one` of the lesson for 20 matrices of 3 × 3 numbers so that it makes one launch.",
        (Input((20, 3, 3)),),
        (Need("launches", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 2),),
                "The library is called for each matrix, with a loop of Python around it or without.",
            ),
            Slip(
                (Need("launches", AT_LEAST, 2), Need("own_kernels", AT_LEAST, 1)),
                "There is a library's call, and work of the compiler's own beside it.",
            ),
        ),
        (
            "Does torch.linalg.det want one matrix?",
            "Dimensions before the last two are a batch. A formula for 3 × 3 numbers would do too.",
        ),
        "def f(x):\n    return torch.linalg.det(x)",
        one_by_one,
    ),
    Exercise(
        "12.2",
        "Write torch.view_as_real(torch.complex(x[0], x[1]) * torch.complex(x[2], x[3])) for 4 × 1,000 numbers so that "
        "it becomes one launch, without a library.",
        (Input((4, 1000)),),
        (Need("launches", EXACTLY, 1), Need("library_calls", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (
                    Need("library_calls", AT_LEAST, 1),
                    Need("own_kernels", EXACTLY, 0),
                    Need("complex_values", AT_LEAST, 1),
                ),
                "All of it was left to a library: for a product of complex numbers the compiler generates no code of "
                "its own.",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1), Need("complex_values", AT_LEAST, 1)),
                "Some of it is the compiler's own now, but somewhere a complex tensor is still made.",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "No complex tensor is made, but a library is still called.",
            ),
        ),
        (
            "What is (a + bi) · (c + di)?",
            "The result has a last dimension of two: put the real parts and the imaginary parts together along it.",
        ),
        "def f(x):\n    a, b, c, d = x\n    return torch.stack((a * c - b * d, a * d + b * c), -1)",
        multiplied,
    ),
    Exercise(
        "12.3",
        "Write a function of one matrix of 512 × 512 numbers in which at least one kernel would wait for arithmetic, "
        "and not for memory, on an H100.",
        (Input((512, 512)),),
        (Need("compute_bound", AT_LEAST, 1), *UNBROKEN),
        (
            Slip(
                (Need("not_modelled", AT_LEAST, 1),),
                "Of a kernel here there is no verdict: how much arithmetic it does is not modelled. Take work "
                "whose operations can be counted.",
            ),
            Slip(
                (Need("library_calls", EXACTLY, 0),),
                "Each number is loaded for too little work, even if that is many operators.",
            ),
            Slip(
                (Need("short_products", AT_LEAST, 1),),
                "There is a product, but of numbers of so few bits that the device multiplies them many times faster "
                "than those of x: as much more work for each byte would keep it busy.",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "There is a library's call, but it does too few operations for each byte that it moves.",
            ),
        ),
        (
            "How often is a number used, once it is loaded? It takes about twenty operations for each byte.",
            "In a product of two matrices, every number of a row meets every column.",
        ),
        "def f(x):\n    return x @ x",
        target="h100",
    ),
)
