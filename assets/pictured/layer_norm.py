"""A layer norm with a GELU: many loops, few kernels."""

import torch
from torch import nn


def f(x, weight, bias):
    normal = nn.functional.layer_norm(x, (64,), weight, bias)
    return nn.functional.gelu(normal)


INPUTS = [torch.rand(*shape, requires_grad=True) for shape in ((8, 64), (64,), (64,))]
