"""Lesson 12: scale and science."""

from __future__ import annotations

from typing import Any

from ..exercise import (
    AT_LEAST,
    AT_MOST,
    EXACTLY,
    UNBROKEN,
    VALUE_NEEDED,
    Exercise,
    Input,
    Need,
    Question,
    Slip,
)

QUESTIONS = (
    Question("12.loop", "40 determinants, one by one: how many launches?", (("launches", "launches"),)),
    Question("12.batch", "2,000 determinants, all at once: how many launches?", (("launches", "launches"),)),
    Question(
        "12.buckets",
        "Six layers of 1 MiB each, and buckets of 25 MiB: how many graphs are compiled?",
        (("graphs", "handed"),),
    ),
)


def one_by_one(matrices: Any) -> Any:
    """Return the determinants of matrices, computed one at a time."""
    import torch

    return torch.stack([torch.linalg.det(matrix) for matrix in matrices])


def multiplied(x: Any) -> Any:
    """Return the products of complex numbers given as real and imaginary parts."""
    import torch

    return torch.view_as_real(torch.complex(x[0], x[1]) * torch.complex(x[2], x[3]))


def slow_block(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    """Run a small GPT's block head by head, with all scores in memory and an ``.item()`` in the middle."""
    import torch

    def normed(x: Any) -> Any:
        x = x - x.mean(-1, keepdim=True)
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    q, k, v = (normed(x) @ qkv).split(64, -1)
    later = torch.ones(128, 128, dtype=torch.bool).triu(1)
    heads = []
    for at in range(0, 64, 16):
        head = slice(at, at + 16)
        scores = q[..., head] @ k[..., head].transpose(-1, -2) / 4
        weights = torch.softmax(scores.masked_fill(later, -torch.inf), -1)
        heads.append(weights @ v[..., head])
    x = x + torch.cat(heads, -1) @ out
    if x.abs().max().item() > 1_000_000:
        print("this is getting large")
    return x + gelu(normed(x) @ up) @ down


EXERCISES = (
    Exercise(
        "12.1",
        "Write `one_by_one` of the lesson for 20 matrices of 3 × 3 numbers so that it makes one launch.",
        (Input((20, 3, 3)),),
        (Need("launches", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("library_calls", AT_LEAST, 2),),
                "The library is called for each matrix, with or without a Python loop around it.",
            ),
            Slip(
                (Need("launches", AT_LEAST, 2), Need("own_kernels", AT_LEAST, 1)),
                "There is a library call, and the compiler's own code next to it.",
            ),
        ),
        (
            "Does torch.linalg.det need a single matrix?",
            "Dimensions before the last two are a batch. A formula for 3 × 3 numbers would do too.",
        ),
        "def f(x):\n    return torch.linalg.det(x)",
        one_by_one,
    ),
    Exercise(
        "12.2",
        "Write torch.view_as_real(torch.complex(x[0], x[1]) * torch.complex(x[2], x[3])) for 4 × 1,000 numbers so that "
        "it becomes one launch, with no library call.",
        (Input((4, 1000)),),
        (Need("launches", EXACTLY, 1), Need("library_calls", EXACTLY, 0), *UNBROKEN),
        (
            Slip(
                (
                    Need("library_calls", AT_LEAST, 1),
                    Need("own_kernels", EXACTLY, 0),
                    Need("complex_values", AT_LEAST, 1),
                ),
                "All of it is library calls: the compiler generates no code of its own for a product of complex "
                "numbers.",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1), Need("complex_values", AT_LEAST, 1)),
                "Some of it is the compiler's own code now, but there is still a complex tensor somewhere.",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "There is no complex tensor, but still a library call.",
            ),
        ),
        (
            "What is (a + bi) · (c + di)?",
            "The result has a last dimension of two: put the real parts and the imaginary parts together along it.",
        ),
        "def f(x):\n    a, b, c, d = x\n    return torch.stack((a * c - b * d, a * d + b * c), -1)",
        multiplied,
    ),
    Exercise(
        "12.3",
        "Write a function of one matrix of 512 × 512 numbers in which at least one kernel would wait for arithmetic, "
        "not for memory, on an H100.",
        (Input((512, 512)),),
        (Need("compute_bound", AT_LEAST, 1), *UNBROKEN),
        (
            Slip(
                (Need("not_modelled", AT_LEAST, 1),),
                "A kernel here has no verdict: how much arithmetic it does is not modelled. Take work "
                "whose operations can be counted.",
            ),
            Slip(
                (Need("library_calls", EXACTLY, 0),),
                "There is too little work for each loaded number, even if it is many operators.",
            ),
            Slip(
                (Need("short_products", AT_LEAST, 1),),
                "There is a product, but its numbers have so few bits that the device multiplies them many times "
                "faster than those of x: to stay busy it would need that much more work for each byte.",
            ),
            Slip(
                (Need("library_calls", AT_LEAST, 1),),
                "There is a library call, but it does too few operations for each byte that it moves.",
            ),
        ),
        (
            "How often is a number used after it is loaded? You need about twenty operations for each byte.",
            "In a product of two matrices, every number of a row meets every column.",
        ),
        "def f(x):\n    return x @ x",
        target="h100",
    ),
    Exercise(
        "12.4",
        "Write `slow_block` of the lesson so that all of it is one graph that makes at most 9 launches and moves at "
        "most 5,100,000 bytes. x has 4 × 128 × 64 numbers.",
        (Input((4, 128, 64)), Input((64, 192)), Input((64, 64)), Input((64, 256)), Input((256, 64))),
        (
            *UNBROKEN,
            Need("graphs", EXACTLY, 1),
            Need("launches", AT_MOST, 9),
            Need("bytes_after", AT_MOST, 5_100_000),
        ),
        (
            VALUE_NEEDED,
            Slip(
                (Need("library_calls", AT_LEAST, 12),),
                "Each head has two products of its own. Can one batched operator do the same work for all heads?",
            ),
            Slip(
                (Need("bytes_after", AT_LEAST, 5_100_001),),
                "Something large still goes through memory: look for the largest tensor between two launches.",
            ),
        ),
        (
            "Who needs the number in the middle? And are four heads four calls, or a batch?",
            "`q.unflatten(-1, (4, 16)).transpose(1, 2)` makes the heads a batch. "
            "Lesson 5 shows an operator that does all of attention, and lesson 10 shows what it does not store.",
            "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), and then the way back: "
            "transpose(1, 2).flatten(2).",
        ),
        """\
import torch.nn.functional as F


def f(x, qkv, out, up, down):
    qkv = F.layer_norm(x, (64,), eps=1e-6) @ qkv
    q, k, v = (one.unflatten(-1, (4, 16)).transpose(1, 2) for one in qkv.split(64, -1))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.transpose(1, 2).flatten(2) @ out
    return x + F.gelu(F.layer_norm(x, (64,), eps=1e-6) @ up, approximate="tanh") @ down""",
        slow_block,
    ),
)
