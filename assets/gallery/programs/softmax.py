"""softmax over either dimension

The same operator on the same 512 × 512 tensor. Over the last dimension a row is read once by the threads that reduce
it; over the first, rows are far apart, and the reduction wants passes of its own.
"""

import torch


def first(x):
    return torch.softmax(x, 0)


def last(x):
    return torch.softmax(x, -1)


CASES = {
    f"dim {dim}, {target}": (fn, [torch.rand(512, 512)], target)
    for target in ("cpu:avx2", "h100", "mps")
    for dim, fn in ((0, first), (-1, last))
}
DRAWN = {"dim 0, mps": ("groups",), "dim -1, mps": ("groups",)}
