"""Lesson 2: what Dynamo captures, where the graph breaks, and what guards protect."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, EXACTLY, UNBROKEN, VALUE_NEEDED, Exercise, Input, Need, Question, Slip

_WHOLE = (*UNBROKEN, Need("graphs", EXACTLY, 1))
_X = (Input((8,)),)

QUESTIONS = tuple(
    Question(
        f"2.{key}",
        f"How many graphs does Dynamo make of a function with {what} in the middle?",
        (("graphs", "graphs"),),
    )
    for key, what in (("print", "a print"), ("item", "x.sum().item()"), ("if", "an if x.sum() > 0:"))
)


def shifted(x: Any) -> Any:
    """Branch on the value of a tensor."""
    if x.sum() > 0:
        return x + 1
    return x - 1


def scaled(x: Any) -> Any:
    """Read a number with ``.item()`` and continue with it."""
    return x * x.abs().max().item() + 1


EXERCISES = (
    Exercise(
        "2.1",
        "Write a function of one tensor that has a graph break, but for which Dynamo makes only one graph.",
        _X,
        (Need("breaks", AT_LEAST, 1), Need("graphs", EXACTLY, 1)),
        (
            Slip(
                (Need("breaks", EXACTLY, 0),),
                "Dynamo could trace all of it: nothing had to run eagerly.",
            ),
            Slip(
                (Need("graphs", AT_LEAST, 2),),
                "There are tensor operations both before the break and after it, and each side is a graph.",
            ),
        ),
        (
            "A break cuts the function in two. Dynamo makes no graph of a part that does nothing with tensors.",
            "Where does the break have to be for one side to have no tensor operation?",
        ),
        'def f(x):\n    y = torch.sin(x)\n    print("done")\n    return y',
    ),
    Exercise(
        "2.2",
        "Write this function so that it becomes one graph without a break: x + 1 if x.sum() > 0, else x - 1.",
        _X,
        _WHOLE,
        (VALUE_NEEDED,),
        (
            "The `if` needs a number in Python. What chooses between two tensors, element by element?",
            "Compute both ways, and let torch.where choose.",
        ),
        "def f(x):\n    return torch.where(x.sum() > 0, x + 1, x - 1)",
        shifted,
    ),
    Exercise(
        "2.3",
        "Write this function so that it becomes one graph without a break: x * x.abs().max().item() + 1.",
        _X,
        _WHOLE,
        (VALUE_NEEDED,),
        (
            "What does .item() give you that the tensor itself does not?",
            "A tensor of one element multiplies as well as a number does.",
        ),
        "def f(x):\n    return x * x.abs().max() + 1",
        scaled,
    ),
)
