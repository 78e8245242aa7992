"""A custom operator is a wall"""

import torch


@torch.library.custom_op("compile_lens_gallery::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def plain(x):
    return torch.cos(torch.sin(x) * 2)


def custom(x):
    return torch.cos(twice(torch.sin(x)))


inputs = [torch.rand(2**20)]
