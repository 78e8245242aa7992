"""Lesson 14: it got slower, or different."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, EXACTLY, UNBROKEN, VALUE_NEEDED, Exercise, Input, Need, Question, Slip

QUESTIONS = (
    Question(
        "14.phases",
        "A model is called in training mode, in evaluation mode, and in evaluation mode under no_grad. How many "
        "compilations?",
        (("compilations", "compilations"),),
    ),
    Question(
        "14.random",
        "dropout(sin(x), 0.5) * 2, compiled so that its masks are those of eager PyTorch: how many launches?",
        (("launches", "launches"),),
    ),
)


def fitted(x: Any) -> Any:
    """Shift the numbers up if one is below 0, then scale them down if one is above 1."""
    if x.min() < 0:
        x = x - x.min()
    if x.max() > 1:
        x = x / x.max()
    return x


def masked(x: Any) -> Any:
    """Apply dropout with probability 0.5 to the first row, with the random numbers of the second."""
    import torch

    return torch.where(x[1] < 0.5, 0 * x[0], 2 * x[0])


def scaled(x: Any) -> Any:
    """Divide by the largest magnitude, which is copied to the CPU, and multiply the exponential by x."""
    import torch

    largest = x.abs().max().cpu()
    return torch.exp(x / largest) @ x


EXERCISES = (
    Exercise(
        "14.1",
        "Write `fitted` of the lesson so that `fullgraph=True` accepts it.",
        (Input((1000,)),),
        (*UNBROKEN, Need("graphs", EXACTLY, 1)),
        (VALUE_NEEDED,),
        (
            "What should be subtracted if no number is below 0?",
            "Subtract the minimum, but never more than 0, and divide by the maximum, but never by less than 1: there "
            "is an operator that limits a tensor.",
        ),
        "def f(x):\n    x = x - x.min().clamp(max=0)\n    return x / x.max().clamp(min=1)",
        fitted,
    ),
    Exercise(
        "14.2",
        "Write a dropout whose mask is the same compiled and eager. Its input has two rows of 1,000 numbers, "
        "x[0] to drop from and x[1] with the random numbers: where x[1] is below 0.5 the result is 0, elsewhere "
        "it is twice x[0]. Forward and backward make one launch each.",
        (Input((2, 1000), grad=True),),
        (Need("forward_launches", EXACTLY, 1), Need("backward_launches", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("forward_launches", AT_LEAST, 2),),
                "More than one kernel runs in the forward. Random numbers that the function draws itself take a "
                "launch.",
            ),
        ),
        (
            "You already have the random numbers, in x[1]. What is left is a comparison and a choice.",
            "torch.where chooses element by element.",
        ),
        "def f(x):\n    return torch.where(x[1] < 0.5, 0, 2 * x[0])",
        masked,
    ),
    Exercise(
        "14.3",
        "Write `scaled` of the lesson so that a GPU records all of it as one CUDA graph.",
        (Input((64, 64)),),
        (Need("recorded_parts", EXACTLY, 1), Need("unrecorded_parts", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (Need("breaks", AT_LEAST, 1),),
                "A number for Python ends the graph that Dynamo makes, and each graph is recorded by itself.",
            ),
            Slip(
                (Need("unrecorded_parts", AT_LEAST, 1),),
                "Something still runs on the CPU, or is copied there: the recording ends before it.",
            ),
        ),
        (
            "Who needs the largest number on the CPU?",
            "A tensor of one number can divide a matrix on the GPU, where both are.",
        ),
        "def f(x):\n    return torch.exp(x / x.abs().max()) @ x",
        scaled,
        target="h100",
    ),
)
