"""A small language model for chapters of a book keeps more for its backward than it should."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

LIMITS = {"saved": 850000, "launches": 50, "graphs": 1, "breaks": 0}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Shape:
    """Sizes of the model."""

    words: int = 384
    width: int = 64
    heads: int = 4
    shared: int = 2
    inner: int = 128
    depth: int = 1
    longest: int = 128
    titles: int = 12
    topic: int = 192

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.heads % self.shared:
            raise ValueError(f"heads {self.heads} is not a multiple of shared {self.shared}")
        if self.head % 2:
            raise ValueError(f"a head of {self.head} channels has no pairs to turn")

    @property
    def head(self) -> int:
        return self.width // self.heads


def follow(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Multiply by a weight in the precision of the activations."""
    return x @ weight.to(x.dtype)


class Rotary:
    """Angles of positions, turned into pairs of factors."""

    def __init__(self, size: int, longest: int, base: float = 10000.0) -> None:
        steps = torch.arange(0, size, 2).float() / size
        angles = torch.arange(longest).float()[:, None] * base**-steps
        self.cos = torch.cat([angles.cos(), angles.cos()], -1)
        self.sin = torch.cat([angles.sin(), angles.sin()], -1)

    def __call__(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        turned = torch.cat([-second, first], -1)
        return x * self.cos[places][:, None] + turned * self.sin[places][:, None]


class Norm(torch.nn.Module):
    """Division by the root of the mean square."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(torch.nn.Module):
    """Attention in which heads share keys and values."""

    def __init__(self, shape: Shape, rotary: Rotary) -> None:
        super().__init__()
        self.shape, self.rotary = shape, rotary
        both = 2 * shape.shared * shape.head
        self.query = torch.nn.Parameter(torch.randn(shape.width, shape.width) / math.sqrt(shape.width))
        self.pair = torch.nn.Parameter(torch.randn(shape.width, both) / math.sqrt(shape.width))
        self.out = torch.nn.Parameter(torch.randn(shape.width, shape.width) / math.sqrt(shape.width))
        self.register_buffer("owner", torch.arange(shape.heads) * shape.shared // shape.heads)

    def split(self, x: torch.Tensor, heads: int) -> torch.Tensor:
        return x.unflatten(-1, (heads, self.shape.head)).transpose(1, 2)

    def forward(self, x: torch.Tensor, places: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        keys, values = follow(x, self.pair).chunk(2, -1)
        query = self.rotary(self.split(follow(x, self.query), self.shape.heads), places)
        keys = self.rotary(self.split(keys, self.shape.shared), places)
        values = self.split(values, self.shape.shared)
        keys, values = keys[:, self.owner], values[:, self.owner]
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return follow(mixed.transpose(1, 2).flatten(2), self.out)


class Inner(torch.nn.Module):
    """A gated layer, whose channels start at slightly different strengths."""

    def __init__(self, shape: Shape, level: int) -> None:
        super().__init__()
        self.gate = torch.nn.Parameter(torch.randn(shape.width, shape.inner) / math.sqrt(shape.width))
        self.up = torch.nn.Parameter(torch.randn(shape.width, shape.inner) / math.sqrt(shape.width))
        self.down = torch.nn.Parameter(torch.randn(shape.inner, shape.width) / math.sqrt(shape.inner))
        strengths = np.linspace(0.9, 1.1, shape.width) / np.sqrt(1 + level)
        self.register_buffer("strengths", torch.from_numpy(strengths))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.strengths
        return follow(F.silu(follow(x, self.gate)) * follow(x, self.up), self.down)


class Block(torch.nn.Module):
    """Attention and the gated layer, each told the topic of the chapter."""

    def __init__(self, shape: Shape, rotary: Rotary, level: int) -> None:
        super().__init__()
        self.first, self.second = Norm(shape.width), Norm(shape.width)
        self.attention = Attention(shape, rotary)
        self.inner = Inner(shape, level)
        self.blend = torch.nn.Parameter(torch.randn(shape.width + shape.topic, shape.width) / 16)

    def topic(self, x: torch.Tensor, title: torch.Tensor) -> torch.Tensor:
        """Blend the title of the chapter into each word."""
        return torch.tanh(follow(torch.cat([x, title[:, None].expand(-1, x.shape[1], -1)], -1), self.blend))

    def forward(
        self, x: torch.Tensor, title: torch.Tensor, places: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        x = x + self.attention(self.first(x), places, mask)
        update = self.inner(self.topic(self.second(x), title))
        return x + update.to(x.dtype)


class Packing:
    """Positions inside of chapters, and which words may see each other."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def places(self, chapters: torch.Tensor) -> torch.Tensor:
        length = chapters.shape[1]
        index = torch.arange(length).expand_as(chapters)
        opens = F.pad(chapters[:, 1:] != chapters[:, :-1], (1, 0), value=True)
        starts = torch.where(opens, index, 0)
        before = index[:, :, None] >= index[:, None, :]
        return index - (starts[:, None, :] * before).amax(-1)

    def mask(self, chapters: torch.Tensor) -> torch.Tensor:
        length = chapters.shape[1]
        past = torch.ones(length, length, dtype=torch.bool).tril()
        return ((chapters[:, :, None] == chapters[:, None, :]) & past)[:, None]


class Criterion:
    """Cross entropy, with terms for the scale of the logits and for the lead of the best word."""

    def __init__(self, smooth: float = 0.05, scale: float = 1e-3, lead: float = 0.02) -> None:
        self.smooth, self.scale, self.lead = smooth, scale, lead

    def leads(self, logits: torch.Tensor) -> torch.Tensor:
        ordered = logits.sort(-1, descending=True).values
        return ordered[..., 0] - ordered[..., 1]

    def __call__(self, logits: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
        norm = logits.logsumexp(-1)
        chosen = logits.gather(-1, targets[..., None]).squeeze(-1)
        smooth = self.smooth * (norm - logits.mean(-1))
        loss = (1 - self.smooth) * (norm - chosen) + smooth
        leads = self.leads(logits)
        terms = {"loss": loss.mean(), "scale": self.scale * norm.pow(2).mean()}
        terms["lead"] = self.lead * F.softplus(1 - leads).mean()
        terms["total"] = terms["loss"] + terms["scale"] + terms["lead"]
        return terms


class Writer(torch.nn.Module):
    """The model: words, blocks, and the same table again for the logits."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape or Shape()
        self.words = torch.nn.Parameter(torch.randn(self.shape.words, self.shape.width) / 8)
        self.titles = torch.nn.Parameter(torch.randn(self.shape.titles, self.shape.topic) / 8)
        rotary = Rotary(self.shape.head, self.shape.longest)
        self.blocks = torch.nn.ModuleList(
            Block(self.shape, rotary, level) for level in range(self.shape.depth)
        )
        self.final = Norm(self.shape.width)
        self.packing, self.criterion = Packing(self.shape), Criterion()
        self.soften()

    def groups(self, decay: float = 0.1) -> list[dict]:
        """Return the parameters for an optimizer: matrices decay, weights of norms and the tables do not."""
        tables = {id(self.words), id(self.titles)}
        matrices = [one for one in self.parameters() if one.dim() > 1 and id(one) not in tables]
        chosen = {id(one) for one in matrices}
        others = [one for one in self.parameters() if id(one) not in chosen]
        return [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]

    def size(self) -> dict[str, int]:
        """Return the number of parameters of each part."""
        parts = {"words": self.words.numel(), "titles": self.titles.numel()}
        for level, block in enumerate(self.blocks):
            for name, part in (("attention", block.attention), ("inner", block.inner)):
                parts[f"{name} {level}"] = sum(one.numel() for one in part.parameters())
        return parts

    @torch.no_grad()
    def soften(self, factor: float = 0.5) -> None:
        """Shrink what each block adds at first, so that a deep model starts near to its table of words."""
        for block in self.blocks:
            block.attention.out.mul_(factor)
            block.inner.down.mul_(factor)

    def forward(
        self, style: torch.Tensor, text: torch.Tensor, chapters: torch.Tensor, title: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        x = self.words[text[:, :-1]] + style[:, None]
        seen = chapters[:, :-1]
        places, mask = self.packing.places(seen), self.packing.mask(seen)
        topic = self.titles[title]
        for block in self.blocks:
            x = block(x, topic, places, mask)
        logits = follow(self.final(x), self.words.T)
        return self.criterion(logits, text[:, 1:])


def make() -> torch.nn.Module:
    return Writer()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    shape, rows = Shape(), []
    for n in range(2):
        generator = torch.Generator().manual_seed(seed + n)
        text = torch.randint(0, shape.words, (2, 65), generator=generator)
        cuts = torch.randint(0, 12, (2, 65), generator=generator) == 0
        title = torch.randint(0, shape.titles, (2,), generator=generator)
        style = 0.1 * rand(seed + n, 2, shape.width)
        rows.append((style.requires_grad_(), text, cuts.long().cumsum(1), title))
    return rows
