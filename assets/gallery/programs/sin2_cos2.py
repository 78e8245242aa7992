"""sin² + cos²

One line becomes one kernel forward and one backward. The value is 1 and the gradient is 0, and the compiler computes
both: it fuses, it does no trigonometry.
"""

import torch


def f(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


CASES = {
    target: (f, [torch.rand(1000, requires_grad=True)], target) for target in ("cpu:avx2", "h100", "mps")
}
DRAWN = {"cpu:avx2": ("dynamo", "joint", "forward", "backward", "groups")}
BESIDE = True
