"""square ∘ square"""

import torch


def f(x):
    return torch.square(torch.square(x))
