"""Lesson 16: your own Triton kernel."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, EXACTLY, MATRIX, UNBROKEN, Exercise, Input, Need, Question, Slip

QUESTIONS = (
    Question(
        "16.plain",
        "relu(2 * sin(x) + 1), compiled for an H100: how many launches?",
        (("launches", "launches"),),
        target="h100",
    ),
    Question(
        "16.own",
        "The same, with the product by 2 in a Triton kernel of your own, compiled for an H100: how many launches?",
        (("launches", "launches"),),
        target="h100",
    ),
)


def around(x: Any) -> Any:
    """Compute the lesson's function with torch operators."""
    import torch

    return torch.relu(2 * torch.sin(x) + 1)


def turned(x: Any) -> Any:
    """Return twice the transpose of a matrix."""
    return 2 * x.t()


_NOT_ONCE = "The kernel of `doubled` is not launched, or is launched more than once."

EXERCISES = (
    Exercise(
        "16.1",
        "Write `around` of the lesson without a kernel of your own, so that an H100 gets one launch.",
        (Input((1000,)),),
        (Need("launches", EXACTLY, 1), Need("user_launches", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (Need("user_launches", AT_LEAST, 1),),
                "A kernel of your own is always a launch of its own, and so is what stands before and after it.",
            ),
            Slip(
                (Need("launches", AT_LEAST, 2),),
                "Inductor is given more than one loop. Operators that work number by number become one launch.",
            ),
        ),
        (
            "Does the product by 2 need a kernel of its own?",
            "Write it in operators of torch that all work number by number.",
        ),
        "def f(x):\n    return torch.relu(2 * torch.sin(x) + 1)",
        around,
        target="h100",
    ),
    Exercise(
        "16.2",
        "Write `around` of the lesson with one call of `doubled`, so that an H100 gets exactly two launches.",
        (Input((1000,)),),
        (Need("user_launches", EXACTLY, 1), Need("launches", EXACTLY, 2), *UNBROKEN),
        (
            Slip((Need("user_launches", EXACTLY, 0),), _NOT_ONCE),
            Slip(
                (Need("launches", AT_LEAST, 3),),
                "A kernel stands before yours, and another after it. Can what comes after be done before?",
            ),
        ),
        (
            "To double and then add 1 is the same as to add 0.5 and then double.",
            "What is above 0 is above 0 when doubled: so relu can be done before, too.",
        ),
        "def f(x):\n    return doubled(torch.relu(torch.sin(x) + 0.5))",
        around,
        target="h100",
    ),
    Exercise(
        "16.3",
        "Write twice the transpose of a matrix of 64 × 64 numbers with one call of `doubled`, so that an H100 gets "
        "exactly one launch.",
        MATRIX,
        (Need("user_launches", EXACTLY, 1), Need("launches", EXACTLY, 1), *UNBROKEN),
        (
            Slip((Need("user_launches", EXACTLY, 0),), _NOT_ONCE),
            Slip(
                (Need("launches", AT_LEAST, 2),),
                "Another kernel copies: `doubled` wants numbers side by side in memory. When is a transpose no copy?",
            ),
        ),
        (
            "A transpose itself moves nothing: it is another way to read.",
            "Transpose the matrix that is doubled already.",
        ),
        "def f(x):\n    return doubled(x).t()",
        turned,
        target="h100",
    ),
)
