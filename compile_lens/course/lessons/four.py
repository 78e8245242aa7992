"""Lesson 4: the joint graph, the cut, and what the forward keeps."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, EXACTLY, TRAINED, UNBROKEN, Exercise, Need, Question, Slip

QUESTIONS = (
    Question(
        "4.kept",
        "How many tensors does the forward of sin²(x) + cos²(x) keep for its backward, by the default partitioner and "
        "by Inductor's?",
        (("default", "kept_by_default"), ("Inductor's", "saved")),
    ),
)


def product(x: Any) -> Any:
    """Return the sine of a matrix product, which the forward keeps for the backward."""
    return (x @ x).sin()


_NO_BACKWARD = Slip(
    (Need("backward_ops", EXACTLY, 0),),
    "There is no backward that computes anything: nothing depends on x in a way that has a derivative.",
)

EXERCISES = (
    Exercise(
        "4.1",
        "Write a function of one square matrix whose backward recomputes at least three operators, and whose "
        "forward keeps no memory of its own.",
        TRAINED,
        (Need("recomputed", AT_LEAST, 3), Need("kept_bytes", EXACTLY, 0), *UNBROKEN),
        (
            _NO_BACKWARD,
            Slip(
                (Need("kept_bytes", AT_LEAST, 1),),
                "Something in it is expensive to recompute, or would need all numbers again, so its result "
                "is kept.",
            ),
            Slip(
                (Need("kept_bytes", EXACTLY, 0), Need("recomputed", EXACTLY, 0)),
                "The derivatives need no intermediate value: they need an input, a result, or nothing at all.",
            ),
        ),
        (
            "Which derivatives need the operator's input?",
            "Chain elementwise operators, none of them linear.",
        ),
        "def f(x):\n    return torch.sin(torch.cos(torch.sin(torch.cos(x))))",
    ),
    Exercise(
        "4.2",
        "Write a function of one square matrix whose forward keeps memory of its own, besides inputs and results.",
        TRAINED,
        (Need("kept_bytes", AT_LEAST, 1), *UNBROKEN),
        (
            _NO_BACKWARD,
            Slip(
                (Need("saved", EXACTLY, 0),),
                "The forward saves nothing at all: the derivative is the same for every x.",
            ),
            Slip(
                (Need("saved", AT_LEAST, 1), Need("kept_bytes", EXACTLY, 0)),
                "What is kept is in memory anyway, as an input or a result; the rest is cheap enough to recompute.",
            ),
        ),
        (
            "The partitioner recomputes what is cheap. What is not?",
            "After a product of matrices, put an operator whose gradient needs that product.",
        ),
        "def f(x):\n    return torch.cos(x @ x)",
    ),
    Exercise(
        "4.3",
        "Write torch.sin(x @ x) so that its forward keeps no memory of its own.",
        TRAINED,
        (Need("kept_bytes", EXACTLY, 0), Need("backward_ops", AT_LEAST, 1), *UNBROKEN),
        (
            _NO_BACKWARD,
            Slip(
                (Need("kept_bytes", AT_LEAST, 1),),
                "The product is still kept: the partitioner finds it too expensive to compute twice. You have to "
                "request it explicitly.",
            ),
        ),
        (
            "Who can overrule the partitioner?",
            "torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False) recomputes function.",
        ),
        "from torch.utils.checkpoint import checkpoint\n\n\ndef f(x):\n"
        "    return checkpoint(lambda x: torch.sin(x @ x), x, use_reentrant=False)",
        product,
    ),
)
