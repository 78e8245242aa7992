"""Lesson 10: what a compiler cannot rewrite."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, AT_MOST, UNBROKEN, Exercise, Input, Need, Question, Slip

QUESTIONS = (
    Question(
        "10.chain",
        "(x @ y) @ z of 512 × 4, 4 × 512 and 512 × 4 numbers: how many numbers does the intermediate result have?",
        (("numbers", "intermediate"),),
    ),
)


def chained(x: Any) -> Any:
    """Multiply from the left, with all pairs of rows as the intermediate matrix."""
    return (x @ x.T) @ x


def two_passes(x: Any) -> Any:
    """Return the variance, computed in a second pass after the mean."""
    return ((x - x.mean()) ** 2).mean()


def summed(x: Any) -> Any:
    """Return the sum of the dot products of all pairs of rows."""
    return (x @ x.T).sum()


EXERCISES = (
    Exercise(
        "10.1",
        "Write (x @ x.T) @ x for a matrix of 64 × 4 numbers so that at most 8,000 bytes are moved.",
        (Input((64, 4)),),
        (Need("bytes_after", AT_MOST, 8000), *UNBROKEN),
        (
            Slip(
                (Need("bytes_after", AT_LEAST, 8001), Need("intermediate", AT_LEAST, 1000)),
                "An intermediate result is large: it is stored, and loaded again. In which order would it be small?",
            ),
        ),
        ("You can bracket a product of three matrices in two ways.", "What is the shape of x.T @ x?"),
        "def f(x):\n    return x @ (x.T @ x)",
        chained,
    ),
    Exercise(
        "10.2",
        "Write ((x - x.mean()) ** 2).mean() for 4,096 numbers between 0 and 1 so that at most 17,000 bytes are moved.",
        (Input((4096,)),),
        (Need("bytes_after", AT_MOST, 17000), *UNBROKEN),
        (
            Slip(
                (Need("bytes_after", AT_LEAST, 17001),),
                "x is read more than once: something needs a finished sum before it can go through x again.",
            ),
        ),
        (
            "Which sums of x could be computed in the same pass?",
            "The lesson has one formula; torch has an operator for it, too.",
        ),
        "def f(x):\n    return x.var(correction=0)",
        two_passes,
    ),
    Exercise(
        "10.3",
        "Write (x @ x.T).sum() for a matrix of 512 × 4 numbers so that no intermediate result has more than 100 "
        "numbers.",
        (Input((512, 4)),),
        (Need("intermediate", AT_MOST, 100), *UNBROKEN),
        (
            Slip(
                (Need("intermediate", AT_LEAST, 101),),
                "There is still a large intermediate result. Does every product of two rows have to exist before they "
                "are added up?",
            ),
        ),
        (
            "Write the sum out for two rows a and b: aa + ab + ba + bb. What is that?",
            "It is the square of a sum.",
        ),
        "def f(x):\n    return (x.sum(0) ** 2).sum()",
        summed,
    ),
)
