"""A model of GPT-2's shape in plain ``torch.nn``, with random weights: nothing is downloaded.

The shape (pre-norm blocks, fused QKV projection, GELU in its tanh form, tied embedding) follows "Language
Models are Unsupervised Multitask Learners" (Radford et al., 2019).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Size:
    """Sizes of a model; the defaults are GPT-2 small with a short context and a small vocabulary."""

    layers: int = 12
    heads: int = 12
    width: int = 768
    tokens: int = 64
    vocabulary: int = 512


TINY = Size(layers=2, heads=2, width=32, tokens=16, vocabulary=64)


class Attention(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.qkv = nn.Linear(size.width, 3 * size.width)
        self.out = nn.Linear(size.width, size.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        heads = (t.view(batch, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.attention = Attention(size)
        self.up, self.down = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Maps token ids of shape (batch, tokens) to logits, or to the loss if the next tokens are given."""

    def __init__(self, size: Size = Size()) -> None:
        super().__init__()
        self.wte = nn.Embedding(size.vocabulary, size.width)
        self.wpe = nn.Embedding(size.tokens, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids: torch.Tensor, targets: torch.Tensor | None = None) -> torch.Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def example(size: Size = Size(), batch: int = 1) -> tuple[GPT2, tuple[torch.Tensor, torch.Tensor]]:
    """Return a model with random weights, token ids and the ids that follow them; the same for the same size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2019)
        model = GPT2(size)
        ids = torch.randint(size.vocabulary, (batch, size.tokens + 1))
    return model, (ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
