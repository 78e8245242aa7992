"""Two thousand determinants"""

import torch


def by_lu(a):
    factors, pivots = torch.linalg.lu_factor(a)
    swaps = (pivots != torch.arange(1, 4, dtype=pivots.dtype)).sum(-1) % 2
    return torch.diagonal(factors, dim1=-2, dim2=-1).prod(-1) * (1 - 2 * swaps)


def in_closed_form(a):
    (a00, a01, a02), (a10, a11, a12), (a20, a21, a22) = (row.unbind(-1) for row in a.unbind(-2))
    return a00 * (a11 * a22 - a12 * a21) - a01 * (a10 * a22 - a12 * a20) + a02 * (a10 * a21 - a11 * a20)


inputs = [torch.rand(2000, 3, 3)]
