"""Lesson 1: one line, four stages."""

from __future__ import annotations

from ..exercise import AT_LEAST, EXACTLY, REPEATED, UNBROKEN, Exercise, Input, Need, Question, Slip

QUESTIONS = (
    Question(
        "1.kernels",
        "How many kernels does sin²(x) + cos²(x) launch, forward and backward?",
        (("forward", "forward_launches"), ("backward", "backward_launches")),
    ),
)

EXERCISES = (
    Exercise(
        "1.1",
        "Write a function of one tensor for which eager PyTorch dispatches at least six operators, and that becomes "
        "one launch.",
        (Input((1000,)),),
        (Need("eager_ops", AT_LEAST, 6), Need("launches", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("breaks", AT_LEAST, 1),),
                "A graph break splits the function: each part is compiled by itself, and nothing is fused across.",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library call is a launch of its own: Inductor does not write its code, and cannot fuse anything "
                "into it.",
            ),
        ),
        (
            "An elementwise operator can be computed inside the one that uses it.",
            "Chain such operators: the result of one is the input of the next. Count them as you write.",
        ),
        "def f(x):\n    for _ in range(6):\n        x = torch.sin(x)\n    return x",
    ),
    Exercise(
        "1.2",
        "Write a function of one square matrix that makes exactly two launches, with no graph break.",
        (Input((64, 64)),),
        (Need("launches", EXACTLY, 2), *UNBROKEN),
        (
            Slip(
                (Need("breaks", AT_LEAST, 1),),
                "A graph break does separate the launches, but the task is to do it inside one graph.",
            ),
            Slip(
                (Need("loops", EXACTLY, 1), Need("launches", EXACTLY, 1), Need("library_calls", EXACTLY, 0)),
                "All of it became one loop, however many operators there are, and one loop is one launch. What can "
                "Inductor not generate itself?",
            ),
            Slip(
                (Need("groups", EXACTLY, 1), Need("launches", EXACTLY, 1), Need("library_calls", EXACTLY, 0)),
                "Several operators, or several results, need not be several launches: all of their loops were fused "
                "into one group. What can Inductor not generate itself?",
            ),
            Slip(
                (
                    Need("groups", AT_LEAST, 2),
                    Need("launches", EXACTLY, 1),
                    Need("library_calls", EXACTLY, 0),
                ),
                "Several groups were not fused, but on a CPU Inductor generates such groups, one after the other, into "
                "one function of C++, which is one launch. What can Inductor not generate itself?",
            ),
            Slip(
                (Need("launches", EXACTLY, 1), Need("adding_calls", EXACTLY, 1)),
                "The library call here is addmm, which multiplies and adds in one go: an addition to a product is not "
                "a launch of its own. What would be one?",
            ),
            Slip(
                (Need("launches", EXACTLY, 1), Need("library_calls", EXACTLY, 1)),
                "One library call is one launch. What else could be a launch?",
            ),
        ),
        (
            "You need something that Inductor does not write itself, but calls.",
            "On a CPU, a product of two matrices is such a call.",
        ),
        "def f(x):\n    return torch.relu(x @ x)",
    ),
    Exercise(
        "1.3",
        "Write a function with a backward that computes something, and whose forward saves nothing.",
        (Input((1000,), grad=True),),
        (Need("backward_ops", AT_LEAST, 1), Need("saved", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (Need("saved", AT_LEAST, 1),),
                "Its derivative depends on x, or on a value that came from x: the backward needs it, so it is saved.",
            ),
            REPEATED,
            Slip(
                (Need("backward_ops", EXACTLY, 0),),
                "Its backward computes nothing: it passes the gradient on unchanged, or there is no backward.",
            ),
        ),
        (
            "What does a backward need from x? It depends on the derivative.",
            "Look for a function whose derivative is a number, the same for every x, and not 1.",
        ),
        "def f(x):\n    return 3 * x",
    ),
)
