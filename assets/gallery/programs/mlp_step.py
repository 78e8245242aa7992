"""A training step of an MLP

Loss and gradients of a small network. Matrix products are library calls; what stands between them, forward and
backward, is fused around them.
"""

import torch
from torch.nn.functional import gelu, mse_loss


def f(x, y, first, second):
    return mse_loss(gelu(x @ first) @ second, y)


INPUTS = [
    torch.rand(64, 32),
    torch.rand(64, 8),
    torch.rand(32, 128, requires_grad=True),
    torch.rand(128, 8, requires_grad=True),
]
CASES = {"cpu:avx2": (f, INPUTS, "cpu:avx2")}
DRAWN = {"cpu:avx2": ("forward", "backward")}
