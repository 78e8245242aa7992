"""Attention, and attention with a tanh

Written by hand, plain attention is recognised and becomes one call of a fused library kernel. A tanh on the scores is
enough: the pattern does not match, and two matrix products stand around a softmax.
"""

import torch


def plain(q, k, v):
    scores = q @ k.transpose(-1, -2) / 8
    return torch.softmax(scores, -1) @ v


def with_tanh(q, k, v):
    scores = torch.tanh(q @ k.transpose(-1, -2) / 8)
    return torch.softmax(scores, -1) @ v


INPUTS = [torch.rand(2, 4, 128, 64) for _ in range(3)]
CASES = {"plain": (plain, INPUTS, "cpu:avx2"), "with tanh": (with_tanh, INPUTS, "cpu:avx2")}
DRAWN = {"plain": ("inference",), "with tanh": ("inference",)}
