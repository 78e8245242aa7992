"""Lesson 9: why it did not fuse."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, AT_MOST, EXACTLY, MATRIX, UNBROKEN, Exercise, Need, Question, Slip

QUESTIONS = tuple(
    Question(f"9.{key}", f"How many launches are there in {what}?", (("launches", "launches"),))
    for key, what in (
        ("plain", "cos(tanh(sin(x)))"),
        ("wrapped", "cos(my_tanh(sin(x))), my_tanh being a custom operator"),
        ("ordered", "cos(sort(sin(x)))"),
    )
)


def accumulated(x: Any) -> Any:
    """Work before and after a library call."""
    return (x * 2).cumsum(0) * 3


EXERCISES = (
    Exercise(
        "9.1",
        "Write a function of one matrix that makes at least three launches, of which exactly one is a library call.",
        MATRIX,
        (Need("launches", AT_LEAST, 3), Need("library_calls", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 2),),
                "Every library call is a launch, but here exactly one launch must be a library call.",
            ),
            Slip(
                (Need("library_calls", EXACTLY, 0),),
                "All of it is Inductor's own code: nothing in it needs a library.",
            ),
            Slip(
                (Need("adding_calls", EXACTLY, 1), Need("launches", AT_MOST, 2)),
                "The library call here is addmm, which multiplies and adds in one go: an addition to a product is not "
                "a launch of its own.",
            ),
            Slip(
                (Need("library_calls", EXACTLY, 1), Need("launches", AT_MOST, 2)),
                "The library call is there, but there is no work on both sides of it.",
            ),
        ),
        (
            "Work before the library call becomes one kernel, work after it another.",
            "Put elementwise work before the call, and more of it after.",
        ),
        "def f(x):\n    return torch.cos(torch.sort(torch.sin(x))[0])",
    ),
    Exercise(
        "9.2",
        "Write torch.cumsum(x * 2, 0) * 3 so that it makes at most two launches. On a CPU, cumsum is a library call.",
        MATRIX,
        (Need("launches", AT_MOST, 2), Need("launches", AT_LEAST, 1), *UNBROKEN),
        (
            Slip(
                (Need("launches", AT_LEAST, 3),),
                "There is work on both sides of the library call. Does all of it have to stay where it is?",
            ),
        ),
        (
            "What is the running sum of numbers that have all been doubled?",
            "A factor can be moved through a sum.",
        ),
        "def f(x):\n    return torch.cumsum(x * 6, 0)",
        accumulated,
    ),
    Exercise(
        "9.3",
        "Write a function of one matrix, without library calls, in which two loops are not fused because they loop "
        "over different numbers of elements.",
        MATRIX,
        (Need("apart_by_size", AT_LEAST, 1), Need("library_calls", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library call is another kind of barrier: here both loops must be Inductor's own.",
            ),
            Slip(
                (Need("groups", EXACTLY, 1),),
                "All of it became one group: everything is fused, whatever the size of its loops.",
            ),
            Slip(
                (Need("groups", AT_LEAST, 2),),
                "Loops are not fused here, but for another reason: ask capture.why about the two.",
            ),
        ),
        (
            "A loop has as many elements as the result that it stores.",
            "Return two results, one of them computed from only a part of x.",
        ),
        "def f(x):\n    return torch.sin(x), torch.cos(x[:32])",
    ),
)
