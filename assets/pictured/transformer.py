"""A small transformer of three equal layers."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        sizes = 3, self.heads, -1
        parts = self.qkv(x).unflatten(-1, sizes)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT * self.scale
        found = scores.softmax(-1) @ v
        found = found.transpose(1, 2).flatten(2)
        return self.out(found)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        wide = 4 * width
        self.mlp = nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, layers=3, width=64, heads=4):
        super().__init__()
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        return self.head(self.layers(x))


f = Transformer()
INPUTS = [torch.rand(2, 16, 64)]
