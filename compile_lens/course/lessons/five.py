"""Lesson 5: decompositions, lowering, and patterns."""

from __future__ import annotations

from ..exercise import AT_LEAST, EXACTLY, MATRIX, UNBROKEN, Exercise, Input, Need, Question, Slip

QUESTIONS = tuple(
    Question(
        f"5.{key}",
        f"How many ATen operators does {call} become?",
        (("ATen operators", "aten_ops"),),
    )
    for key, call in (
        ("mse", "F.mse_loss(x, y)"),
        ("gelu", "F.gelu(x)"),
        ("norm", "F.layer_norm(x, (64,))"),
    )
)

EXERCISES = (
    Exercise(
        "5.1",
        "Write a function of one matrix that is a single call in Dynamo's graph, and that becomes at least four "
        "ATen operators.",
        MATRIX,
        (Need("dynamo_calls", EXACTLY, 1), Need("aten_ops", AT_LEAST, 4), *UNBROKEN),
        (
            Slip(
                (Need("dynamo_calls", AT_LEAST, 2),),
                "Each operator that you write, `+` and `*` too, is a call of its own. Let one of PyTorch's functions "
                "do more.",
            ),
            Slip(
                (Need("dynamo_calls", EXACTLY, 1), Need("aten_ops", EXACTLY, 1)),
                "Inductor gets this operator unchanged: it is already in the smaller set.",
            ),
        ),
        (
            "Which function of torch.nn.functional is a whole formula?",
            "Activations and normalisations are good candidates.",
        ),
        "import torch.nn.functional as F\n\n\ndef f(x):\n    return F.gelu(x)",
    ),
    Exercise(
        "5.2",
        "Write a function of one matrix that becomes exactly one ATen operator, and that lowering turns into at least "
        "two loops of its own.",
        MATRIX,
        (
            Need("aten_ops", EXACTLY, 1),
            Need("loops", AT_LEAST, 2),
            Need("library_calls", EXACTLY, 0),
            *UNBROKEN,
        ),
        (
            Slip(
                (Need("aten_ops", AT_LEAST, 2),),
                "It became several ATen operators: there could be one loop for each. Which single operator needs two "
                "steps, one after the other?",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "Inductor calls a library here and writes no loop.",
            ),
            Slip(
                (Need("loops", EXACTLY, 1),),
                "One loop was enough: it can finish each number of the result in one pass.",
            ),
        ),
        (
            "Which number needs a finished sum before it can be computed?",
            "Think of statistics.",
        ),
        "def f(x):\n    return x.mean(1)",
    ),
    Exercise(
        "5.3",
        "Write a function of one tensor of shape 2 × 4 × 16 × 64 in which a pattern of Inductor's passes finds a "
        "match.",
        (Input((2, 4, 16, 64)),),
        (Need("patterns", AT_LEAST, 1), *UNBROKEN),
        (
            Slip(
                (Need("patterns", EXACTLY, 0), Need("library_calls", AT_LEAST, 2)),
                "The products of matrices are there, but something between them does not match the pattern: "
                "compilations[0].passes names the operator, under misses.",
            ),
            Slip(
                (Need("patterns", EXACTLY, 0), Need("library_calls", EXACTLY, 1)),
                "A pattern matches several pieces. This graph has a single library call: an attention that you called "
                "yourself has no pieces left, and one product alone has too few.",
            ),
        ),
        (
            "The lesson has one function with a match. Which parts of it does the pattern need?",
            "Scores are scaled, then a softmax over the last dimension, then a product.",
        ),
        "def f(x):\n    return torch.softmax(x @ x.transpose(-1, -2) * 0.125, -1) @ x",
    ),
)
