"""Lesson 6: inlining and fusion."""

from __future__ import annotations

from ..exercise import AT_LEAST, EXACTLY, MATRIX, UNBROKEN, Exercise, Need, Question, Slip

QUESTIONS = (
    Question(
        "6.square",
        "square(square(x)): how many loops are there before fusion, and how many launches in the end?",
        (("loops", "loops"), ("launches", "launches")),
    ),
    Question(
        "6.three",
        "sin(x), cos(x) and exp(x), all three returned: how many loops before fusion, and how many groups after it?",
        (("loops", "loops"), ("groups", "groups")),
    ),
)

EXERCISES = (
    Exercise(
        "6.1",
        "Write a function of one matrix for which eager PyTorch dispatches at least four operators, and that lowering "
        "turns into exactly one loop.",
        MATRIX,
        (
            Need("eager_ops", AT_LEAST, 4),
            Need("loops", EXACTLY, 1),
            Need("library_calls", EXACTLY, 0),
            *UNBROKEN,
        ),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library call reads and writes memory: no loop is inlined into it.",
            ),
            Slip(
                (Need("loops", AT_LEAST, 2),),
                "More than one value got a buffer of its own: each result of the graph does, and each sum or "
                "maximum. Fusing these loops later is another step.",
            ),
        ),
        (
            "An inlined value has one reader, or is cheap to recompute, and needs no memory of its own.",
            "Return one tensor, computed by elementwise operators.",
        ),
        "def f(x):\n    return torch.relu(torch.sin(x) * 2 + torch.cos(x))",
    ),
    Exercise(
        "6.2",
        "Write a function of one matrix that lowering turns into at least four loops, and fusion into one group.",
        MATRIX,
        (Need("loops", AT_LEAST, 4), Need("groups", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 1), Need("groups", EXACTLY, 1)),
                "There is only a library call: it is not a loop, and no loop is fused with it.",
            ),
            Slip(
                (Need("loops", EXACTLY, 1),),
                "Lowering inlined everything into one loop: there was nothing left for fusion to join.",
            ),
            Slip(
                (Need("groups", AT_LEAST, 2),),
                "Some loops were not fused. Ask capture.why about two of them: are their sizes the same, does one wait "
                "for the other, is one a library call?",
            ),
        ),
        (
            "A loop exists because its value has to be in memory. Which values have to be?",
            "Every result does. Let all of them read the same x.",
        ),
        "def f(x):\n    return x.sin(), x.cos(), x.exp(), x.tanh()",
    ),
    Exercise(
        "6.3",
        "Write a function of one matrix, without library calls and graph breaks, whose loops do not become one group.",
        MATRIX,
        (Need("groups", AT_LEAST, 2), Need("library_calls", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library call does separate groups, but here all loops must be Inductor's own.",
            ),
            Slip(
                (Need("loops", EXACTLY, 1),),
                "All of it became one loop: there is no second one to fuse with. What has to be finished before the "
                "rest can begin?",
            ),
            Slip(
                (Need("groups", EXACTLY, 1),),
                "Its loops became one group: each needs only the same number, or the same row, from another. What "
                "has to be finished for all rows before the rest can begin?",
            ),
        ),
        (
            "Think of a number that is known only after all others have been read.",
            "Then use that number with every element.",
        ),
        "def f(x):\n    return x / x.sum()",
    ),
)
