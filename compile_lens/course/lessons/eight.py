"""Lesson 8: Triton and Metal, without the device."""

from __future__ import annotations

from ..exercise import AT_LEAST, EXACTLY, MATRIX, OWN, Exercise, Input, Need, Question, Slip

_VECTOR = (Input((1000,)),)
_TARGET = "h100"

QUESTIONS = tuple(
    Question(
        f"8.{key}",
        f"How many kernels does an H100 get for a softmax of 512 × 512 numbers over the {key} dimension?",
        (("kernels", "launches"),),
        "h100",
    )
    for key in ("last", "first")
)

EXERCISES = (
    Exercise(
        "8.1",
        "Write a function of one vector of 1,000 numbers whose Triton kernel compares no index with the number of "
        "elements that it processes.",
        _VECTOR,
        (Need("masks", EXACTLY, 0), Need("launches", AT_LEAST, 1), *OWN),
        (
            Slip(
                (Need("masks", AT_LEAST, 1),),
                "The number of elements that the kernel processes is not a multiple of the largest possible block, "
                "so the last block may reach past the end.",
            ),
        ),
        (
            "The kernel processes the elements of the result. How many should there be?",
            "Make a larger result: a multiple of 4,096 is enough. Repeat x, or multiply parts of it with each other.",
        ),
        "def f(x):\n    return torch.sin(x.repeat(4096))",
        target=_TARGET,
    ),
    Exercise(
        "8.2",
        "Write a function of one matrix of 64 × 64 numbers whose Triton kernel has blocks of two dimensions.",
        MATRIX,
        (Need("tiles", AT_LEAST, 1), *OWN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library call is not a Triton kernel.",
            ),
            Slip(
                (Need("tiles", EXACTLY, 0),),
                "The kernels process their numbers in one sequence. That is enough, unless reading and writing "
                "need different orders.",
            ),
        ),
        (
            "When does a kernel need both adjacent rows and adjacent columns?",
            "Read the matrix one way, and write it, or read it again, the other way.",
        ),
        "def f(x):\n    return x + x.t()",
        target=_TARGET,
    ),
    Exercise(
        "8.3",
        "Write a function of one matrix of 64 × 64 numbers whose Triton kernel contains a loop.",
        MATRIX,
        (Need("triton_loops", AT_LEAST, 1), *OWN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library call is not a Triton kernel.",
            ),
            Slip(
                (Need("triton_loops", EXACTLY, 0),),
                "Everything that a program needs fits into one block: there is nothing to process piece by piece.",
            ),
        ),
        (
            "A row of 64 numbers fits into a block. What does not?",
            "Reduce over everything.",
        ),
        "def f(x):\n    return x.sum()",
        target=_TARGET,
    ),
)
