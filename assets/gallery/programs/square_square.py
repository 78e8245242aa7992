"""square ∘ square

Two operators read and write the whole tensor twice in eager PyTorch. The inner one is inlined into the loop of the
outer one, and half of the traffic is gone.
"""

import torch


def f(x):
    return torch.square(torch.square(x))


CASES = {"cpu:avx2": (f, [torch.rand(2**20)], "cpu:avx2")}
DRAWN = {"cpu:avx2": ("inference", "groups")}
