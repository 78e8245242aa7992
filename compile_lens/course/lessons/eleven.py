"""Lesson 11: honest timing."""

from __future__ import annotations

from typing import Any

from ..exercise import (
    AT_LEAST,
    AT_MOST,
    EXACTLY,
    OWN,
    REPEATED,
    TRAINED,
    UNBROKEN,
    Exercise,
    Input,
    Need,
    Question,
    Slip,
)

_VECTOR = (Input((1024,)),)

QUESTIONS = (
    Question(
        "11.sines",
        "How many sines are there in the kernel of a function that computes sin(x) a hundred times, and returns one?",
        (("sines", "sines"),),
    ),
    Question(
        "11.graphs",
        "How many graphs does Dynamo make of a loop of four iterations, with .item() in each?",
        (("graphs", "graphs"),),
    ),
    Question(
        "11.roundings",
        "How many times does the kernel of tanh(x * sigmoid(x) / 3) * x round a number to bfloat16?",
        (("roundings", "roundings"),),
    ),
)


def followed(x: Any) -> Any:
    """Call ``.item()`` on a sum in every iteration."""
    total = 0.0
    for _ in range(4):
        x = x.sin()
        total += x.sum().item()
    return x * total


def score(x: Any) -> Any:
    """Apply five operators; eager PyTorch rounds the result of each to the dtype of x."""
    y = x * x.sigmoid()
    return (y / 3).tanh() * x


EXERCISES = (
    Exercise(
        "11.1",
        "Write a function of one vector of 1,024 numbers whose kernel computes at least ten sines.",
        _VECTOR,
        (Need("sines", AT_LEAST, 10), *OWN),
        (
            Slip(
                (Need("eager_ops", AT_LEAST, 10), Need("sines", EXACTLY, 1)),
                "You wrote many, and one is computed: the others had the same input, or nobody used them.",
            ),
            Slip(
                (Need("sines", AT_MOST, 9),),
                "There are fewer. A sine is computed only if its input is new and the result depends on it.",
            ),
        ),
        (
            "Which of your sines could be left out without changing the result?",
            "Let each iteration use the result of the iteration before it.",
        ),
        "def f(x):\n    for _ in range(10):\n        x = torch.sin(x)\n    return x",
    ),
    Exercise(
        "11.2",
        "Write `followed` of the lesson so that all of it becomes one graph and nothing runs eagerly.",
        _VECTOR,
        (Need("graphs", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("skipped", AT_LEAST, 1),),
                "Python still needs a number inside the loop, so the loop runs eagerly.",
            ),
            Slip(
                (Need("breaks", AT_LEAST, 1),),
                "Python needs a number only once now, but the code after it is a graph of its own.",
            ),
        ),
        (
            "Who needs the sum as a Python number? The next line can use a tensor.",
            "You can add and multiply tensors just like numbers.",
        ),
        "def f(x):\n    total = 0.0\n    for _ in range(4):\n        x = torch.sin(x)\n        total += x.sum()\n"
        "    return x * total",
        followed,
    ),
    Exercise(
        "11.3",
        "Write a function of one square matrix that needs a gradient, whose forward makes one launch and whose "
        "backward makes at least two: a clock around the forward alone would miss most of them.",
        TRAINED,
        (Need("forward_launches", EXACTLY, 1), Need("backward_launches", AT_LEAST, 2), *UNBROKEN),
        (
            Slip(
                (Need("forward_launches", AT_LEAST, 2),),
                "The forward has work besides the one launch. Remove it.",
            ),
            REPEATED,
            Slip(
                (Need("backward_ops", EXACTLY, 0),),
                "The backward computes nothing: it passes the gradient on unchanged, or there is no backward.",
            ),
            Slip(
                (Need("forward_launches", EXACTLY, 1), Need("backward_launches", EXACTLY, 1)),
                "Its backward is one kernel too, as it is for every elementwise operator.",
            ),
        ),
        (
            "In which operator does each number of x meet many others?",
            "A product of two matrices has two derivatives, one for each of them.",
        ),
        "def f(x):\n    return x @ x",
    ),
    Exercise(
        "11.4",
        "Write `score` of the lesson for 1,024 bfloat16 numbers so that exactly one ATen operator has a bfloat16 "
        "result: then eager PyTorch rounds once, as the kernel does.",
        (Input((1024,), dtype="bfloat16"),),
        (Need("bfloat16_values", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("bfloat16_values", EXACTLY, 0),),
                "Nothing is rounded to bfloat16 now, not even the result: the caller gets another type.",
            ),
            Slip(
                (Need("bfloat16_values", AT_LEAST, 2),),
                "An operator in between still has a bfloat16 result. It is rounded before the next operator reads it.",
            ),
        ),
        (
            "What is the type of the result of an operator whose input is float32?",
            "Convert x before the first operator, and the result after the last one.",
        ),
        "def f(x):\n    x = x.float()\n    y = x * torch.sigmoid(x)\n    return (torch.tanh(y / 3) * x).bfloat16()",
        score,
    ),
)
