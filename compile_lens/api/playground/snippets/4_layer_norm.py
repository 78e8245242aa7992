"""Layer norm"""

import torch


def f(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (256,), weight, bias)


inputs = [torch.rand(64, 256), torch.rand(256), torch.rand(256)]
