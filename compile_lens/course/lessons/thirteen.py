"""Lesson 13: make it faster. It is the first to read."""

from __future__ import annotations

from typing import Any

from ..exercise import (
    AT_LEAST,
    AT_MOST,
    EXACTLY,
    UNBROKEN,
    VALUE_NEEDED,
    Exercise,
    Input,
    Need,
    Question,
    Slip,
)

QUESTIONS = (
    Question(
        "13.launches",
        "Eager PyTorch runs 25 operators for the block of the lesson. Compiled: how many launches?",
        (("launches", "launches"),),
    ),
    Question(
        "13.graphs",
        "The block reads a number in its middle, x.abs().max().item(). How many graphs does Dynamo make?",
        (("graphs", "graphs"),),
    ),
)


def gelu(x: Any) -> Any:
    """Return GELU in its tanh approximation, as many models write it."""
    import torch

    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def clipped(x: Any) -> Any:
    """Scale a vector down to length 1.5 if it is longer."""
    length = x.norm().item()
    if length > 1.5:
        x = x * (1.5 / length)
    return x


SQUARE = (Input((256, 256)),)
"""A float32 matrix of 262,144 bytes."""

EXERCISES = (
    Exercise(
        "13.1",
        "Write `clipped` of the lesson so that it becomes one graph without a break.",
        (Input((8,)),),
        (*UNBROKEN, Need("graphs", EXACTLY, 1)),
        (VALUE_NEEDED,),
        (
            "The `if` needs the length in Python. Could you multiply by 1 where nothing has to change?",
            "The factor is 1.5 / x.norm(), but never more than 1: there is an operator that limits a tensor.",
        ),
        "def f(x):\n    return x * (1.5 / x.norm()).clamp(max=1)",
        clipped,
    ),
    Exercise(
        "13.2",
        "Write `gelu` of the lesson so that eager PyTorch runs one operator for it.",
        (Input((64, 64)),),
        (Need("eager_ops", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("eager_ops", AT_LEAST, 2),),
                "Eager PyTorch runs an operator for each step that you write. Is there a function that does them all?",
            ),
        ),
        (
            "torch.nn.functional has a gelu. Does it compute the same numbers?",
            "There are two versions of it: see its argument approximate.",
        ),
        'def f(x):\n    return torch.nn.functional.gelu(x, approximate="tanh")',
        gelu,
    ),
    Exercise(
        "13.3",
        "Write a function of one matrix of 256 × 256 numbers whose operators move at least 5,000,000 bytes one by one, "
        "and whose compiled code moves at most 600,000.",
        SQUARE,
        (Need("bytes_before", AT_LEAST, 5_000_000), Need("bytes_after", AT_MOST, 600_000), *UNBROKEN),
        (
            Slip(
                (Need("bytes_before", AT_MOST, 4_999_999),),
                "An elementwise operator reads 262,144 bytes and writes as many. How many such "
                "operators are 5,000,000 bytes?",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library call reads its operands from memory and writes its result there, compiled or not.",
            ),
        ),
        (
            "Reading once and writing once is 524,288 bytes. So nothing can go through memory in between.",
            "Chain ten or more elementwise operators, each on the result of the one before.",
        ),
        "def f(x):\n    for _ in range(6):\n        x = torch.cos(torch.sin(x))\n    return x",
    ),
)
