"""Lesson 3: recompiles and dynamic shapes."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, AT_MOST, EXACTLY, UNBROKEN, Exercise, Input, Need, Question, Slip

_X = (Input((8,)),)
_LARGER = tuple((Input((size,)),) for size in (16, 32, 64))

QUESTIONS = (
    Question(
        "3.sizes",
        "sin(x) * 2, called with 8, 16, 32 and 64 numbers: how often is it compiled?",
        (("compilations", "compilations"),),
    ),
    Question(
        "3.numbers",
        "x ** s, called with twelve different Python numbers s: how often is it compiled?",
        (("compilations", "compilations"),),
    ),
)


def counted(x: Any) -> Any:
    """Add 1 once per number, in a loop that is unrolled."""
    for _ in range(x.shape[0]):
        x = x + 1
    return x


_BROKEN = Slip(
    (Need("breaks", AT_LEAST, 1),),
    "A graph break splits the function, and each part is compiled by itself: the task is about one graph.",
)

EXERCISES = (
    Exercise(
        "3.1",
        "Write a function of one tensor that is compiled again for each of the four sizes, without a graph break.",
        _X,
        (Need("compilations", EXACTLY, 4), *UNBROKEN),
        (
            _BROKEN,
            Slip(
                (Need("compilations", AT_MOST, 3),),
                "One variant served several sizes: it uses a symbol for the size. What in a function could need "
                "the number itself?",
            ),
        ),
        (
            "While Dynamo traces, Python itself still computes with numbers.",
            "Let Python count to the size of x.",
        ),
        "def f(x):\n    for n in range(x.shape[0]):\n        x = x + n\n    return x",
        again=_LARGER,
    ),
    Exercise(
        "3.2",
        "This function is compiled for each size: `for _ in range(x.shape[0]): x = x + 1`, and then `return x`. "
        "Write it so that at most two variants are compiled.",
        _X,
        (Need("compilations", AT_MOST, 2), *UNBROKEN),
        (
            _BROKEN,
            Slip(
                (Need("compilations", AT_LEAST, 3),),
                "The number of operators in the graph still depends on the size, so each size needs a graph of its "
                "own.",
            ),
        ),
        (
            "What do all of those steps add up to?",
            "You can use a size in arithmetic: Dynamo then records its symbol.",
        ),
        "def f(x):\n    return x + x.shape[0]",
        counted,
        _LARGER,
    ),
    Exercise(
        "3.3",
        "Write a function of one tensor that is compiled exactly three times for the four sizes, without a graph "
        "break.",
        _X,
        (Need("compilations", EXACTLY, 3), *UNBROKEN),
        (
            _BROKEN,
            Slip(
                (Need("compilations", AT_LEAST, 4),),
                "Each size got a variant of its own: none served two of them.",
            ),
            Slip(
                (Need("compilations", AT_MOST, 2),),
                "After the first size one variant served all the others. What would make Dynamo distinguish the others "
                "without needing the exact number?",
            ),
        ),
        (
            "A guard on a size need not be an equality.",
            "Let an `if` on the size of x choose between two branches.",
        ),
        "def f(x):\n    if x.shape[0] < 20:\n        return torch.sin(x)\n    return torch.cos(x)",
        again=_LARGER,
    ),
)
