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


_NOT_ONCE = "The kernel of `doubled` is not launched, or it is launched more than once."

EXERCISES = (
    Exercise(
        "16.1",
        "Write `around` of the lesson without a kernel of your own, so that an H100 gets one launch.",
        (Input((1000,)),),
        (Need("launches", EXACTLY, 1), Need("user_launches", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (Need("user_launches", AT_LEAST, 1),),
                "Your own kernel is always a separate launch, and so is the code before and after it.",
            ),
            Slip(
                (Need("launches", AT_LEAST, 2),),
                "Inductor has more than one loop. Elementwise operators become one launch.",
            ),
        ),
        (
            "Does the product by 2 need a kernel of its own?",
            "Write it in elementwise torch operators only.",
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
                "There is a kernel before yours, and another after it. Can the later work be done before?",
            ),
        ),
        (
            "Doubling and then adding 1 is the same as adding 0.5 and then doubling.",
            "A number above 0 is still above 0 when doubled: so relu can come before, too.",
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
                "Another kernel copies: `doubled` needs contiguous numbers. When does a transpose not need a copy?",
            ),
        ),
        (
            "A transpose itself moves nothing: it only changes how the numbers are read.",
            "Transpose the matrix after you have doubled it.",
        ),
        "def f(x):\n    return doubled(x).t()",
        turned,
        target="h100",
    ),
)
