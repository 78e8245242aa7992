"""sin² + cos²"""

import torch


def f(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2
