"""A custom operator is a wall

The compiler knows nothing of what is inside, so nothing fuses across it: two kernels and a call where the same
arithmetic, written with operators of PyTorch, is one kernel.
"""

import torch


@torch.library.custom_op("compile_lens_gallery::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def custom(x):
    return torch.cos(twice(torch.sin(x)))


def plain(x):
    return torch.cos(torch.sin(x) * 2)


CASES = {
    "custom": (custom, [torch.rand(2**20)], "cpu:avx2"),
    "plain": (plain, [torch.rand(2**20)], "cpu:avx2"),
}
DRAWN = {"custom": ("groups",), "plain": ("groups",)}
