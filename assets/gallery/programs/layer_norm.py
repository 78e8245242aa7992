"""Layer norm

One operator of eager PyTorch is many of ATen's once it is decomposed: mean, variance, their use. They end in one
kernel again, which reads the tensor as often as its statistics need.
"""

import torch


def f(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (256,), weight, bias)


INPUTS = [torch.rand(64, 256), torch.rand(256), torch.rand(256)]
CASES = {target: (f, INPUTS, target) for target in ("cpu:avx2", "h100")}
DRAWN = {"cpu:avx2": ("inference", "groups")}
