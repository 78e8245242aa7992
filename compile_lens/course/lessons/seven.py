"""Lesson 7: C++ and SIMD."""

from __future__ import annotations

from ..exercise import AT_LEAST, EXACTLY, OWN, Exercise, Input, Need, Question, Slip

_X = (Input((1000,)),)
_TARGET = "cpu:avx512"

QUESTIONS = tuple(
    Question(
        f"7.{key}",
        f"How many {dtype} numbers does the kernel of sin(x) * 2 take at a time, with AVX-512?",
        (("numbers", "step"),),
        _TARGET,
    )
    for key, dtype in (("single", "float32"), ("half", "bfloat16"))
)

EXERCISES = (
    Exercise(
        "7.1",
        "Write a function of one vector of 1,000 float32 numbers whose kernel takes 32 numbers at a time.",
        _X,
        (Need("step", EXACTLY, 32), *OWN),
        (
            Slip(
                (Need("step", EXACTLY, 16),),
                "A register of 512 bits holds 16 numbers of 32 bits. What would it hold 32 of?",
            ),
            Slip(
                (Need("step", EXACTLY, 1),),
                "This kernel takes one number at a time: its inputs are not adjacent in memory, or "
                "Inductor has no vector registers for their type.",
            ),
        ),
        (
            "The type of the computation can differ from that of x.",
            "Convert x to a shorter type before you do anything else with it.",
        ),
        "def f(x):\n    return torch.sin(x.bfloat16())",
        target=_TARGET,
    ),
    Exercise(
        "7.2",
        "Write a function of one vector of 1,000 float32 numbers whose kernel takes one number at a time.",
        _X,
        (Need("step", EXACTLY, 1), *OWN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "A library call is not one of Inductor's kernels: nobody can see how it works inside.",
            ),
            Slip(
                (Need("step", AT_LEAST, 2),),
                "An expensive or rare operator is no obstacle: it is computed for a whole register anyway. What "
                "matters is where the numbers are in memory.",
            ),
        ),
        (
            "A register is filled from adjacent places in memory.",
            "Take every second number, or take them in another order.",
        ),
        "def f(x):\n    return torch.sin(x[::2])",
        target=_TARGET,
    ),
    Exercise(
        "7.3",
        "Write a function of one vector of 1,000 float32 numbers whose kernel takes 16 numbers at a time and has no "
        "tail.",
        _X,
        (Need("step", EXACTLY, 16), Need("tails", EXACTLY, 0), *OWN),
        (
            Slip(
                (Need("step", EXACTLY, 1),),
                "A kernel that takes one at a time has no tail either, but the task is about registers of 16.",
            ),
            Slip(
                (Need("tails", AT_LEAST, 1),),
                "The number of elements that the loop goes over is not a multiple of 16, so something is left over.",
            ),
        ),
        (
            "The loop goes over the numbers of the result.",
            "Let the result have fewer numbers than x, or more.",
        ),
        "def f(x):\n    return torch.sin(x[:992])",
        target=_TARGET,
    ),
)
