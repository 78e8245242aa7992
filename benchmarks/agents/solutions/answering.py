"""A solution."""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Shape:
    """Sizes of the decoder."""

    words: int = 256
    width: int = 64
    heads: int = 4
    inner: int = 160
    depth: int = 1
    window: int = 96
    batch: int = 3

    @property
    def head(self) -> int:
        return self.width // self.heads


@dataclass
class Options:
    """Settings of the draw of the next word."""

    temperature: float = 1.0
    coolest: float = 0.6
    cooling: float = 0.95
    best: int = 12
    mass: float = 0.9
    penalty: float = 1.3
    banned: tuple[int, ...] = (0, 1)
    stops: tuple[int, ...] = (2,)
    memory: int = 3
    biases: dict[int, float] = field(default_factory=lambda: {7: -1.5, 9: 0.5})


class Window:
    """The keys and values of the last words."""

    def __init__(self, shape: Shape) -> None:
        size = (shape.batch, shape.heads, shape.window, shape.head)
        # Cause 1: joining the rest of the window with one word copies all of it at each word.
        self.keys, self.values = torch.zeros(size), torch.zeros(size)
        self.filled = torch.zeros(shape.window, dtype=torch.bool)
        self.next = torch.zeros(1, dtype=torch.long)

    def add(self, key: torch.Tensor, value: torch.Tensor) -> None:
        self.keys.index_copy_(2, self.next, key)
        self.values.index_copy_(2, self.next, value)
        self.filled.index_fill_(0, self.next, True)
        self.next.copy_((self.next + 1) % len(self.filled))

    def look(self, query: torch.Tensor) -> torch.Tensor:
        scores = (query * self.keys).sum(-1) / math.sqrt(query.shape[-1])
        weights = scores.masked_fill(~self.filled, -math.inf).softmax(-1)
        return (weights[..., None] * self.values).sum(2)


class Rate:
    """A slow change of the temperature, word by word."""

    def __init__(self, options: Options) -> None:
        self.options = options
        # Cause 2: the temperature is a Python float that a guard compares at each word.
        self.current = torch.tensor(options.temperature)

    def move(self) -> None:
        self.current.copy_((self.current * self.options.cooling).clamp(min=self.options.coolest))

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return logits / self.current


class History:
    """The words that were said, for a penalty on saying them again."""

    def __init__(self, options: Options, shape: Shape) -> None:
        self.options = options
        # Cause 3: a list that grows has another length for each word.
        self.recent = torch.full((options.memory, shape.batch), -1)

    def note(self, word: torch.Tensor) -> None:
        self.recent.copy_(torch.cat([self.recent[1:], word[None]]))

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        recent_words = (torch.arange(logits.shape[-1]) == self.recent[..., None]).any(0)
        softer = torch.where(logits > 0, logits / self.options.penalty, logits * self.options.penalty)
        return torch.where(recent_words, softer, logits)


class Choice:
    """The steps from logits to the next word."""

    def __init__(self, options: Options, shape: Shape) -> None:
        self.options = options
        self.rate, self.history = Rate(options), History(options, shape)
        offsets = torch.zeros(shape.words)
        for word, bias in options.biases.items():
            offsets[word] += bias
        offsets[list(options.banned)] = -1e4
        self.offsets = offsets

    def nucleus(self, logits: torch.Tensor) -> torch.Tensor:
        """Keep the best words up to a share of the probability."""
        # Cause 4: the order of all words is computed where a few of them decide.
        ordered, _ = logits.topk(self.options.best, -1)
        shares = (ordered - logits.logsumexp(-1, keepdim=True)).exp()
        earlier = torch.ones(self.options.best, self.options.best).triu(1)
        before = (shares[..., None] * earlier).sum(-2)
        last = ordered.masked_fill(before > self.options.mass, math.inf).amin(-1, keepdim=True)
        return logits.masked_fill(logits < last, -math.inf)

    def __call__(self, logits: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        logits = self.history.apply(logits + self.offsets)
        logits = self.nucleus(self.rate.apply(logits))
        gumbel = -torch.log(-torch.log(noise.clamp(1e-6, 1 - 1e-6)))
        word = (logits + gumbel).argmax(-1)
        self.history.note(word)
        self.rate.move()
        return word


class Norm(torch.nn.Module):
    """Division by the root of the mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(torch.nn.Module):
    """Attention to the window, and a gated layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape, self.window = shape, Window(shape)
        self.first, self.second = Norm(shape.width), Norm(shape.width)
        self.qkv = torch.nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.out = torch.nn.Linear(shape.width, shape.width, bias=False)
        self.up = torch.nn.Linear(shape.width, 2 * shape.inner, bias=False)
        self.down = torch.nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.first(x)).view(len(x), 3, self.shape.heads, 1, self.shape.head)
        query, key, value = parts.unbind(1)
        self.window.add(key, value)
        x = x + self.out(self.window.look(query).flatten(1))
        gate, up = self.up(self.second(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Place(torch.nn.Module):
    """Waves that tell at which word the decoder is."""

    def __init__(self, width: int) -> None:
        super().__init__()
        speeds = torch.exp(-math.log(1000.0) * torch.arange(width // 2) / (width // 2))
        self.register_buffer("speeds", speeds)
        # Cause 5: the number of the word is a Python integer of a module, on which each variant is specialised.
        self.register_buffer("spoken", torch.zeros(()))

    def forward(self) -> torch.Tensor:
        angles = self.spoken * self.speeds
        self.spoken += 1
        return torch.cat([angles.sin(), angles.cos()])


class Gauge:
    """Figures of an answer: how sure each word was, and which answers have ended."""

    def __init__(self, options: Options) -> None:
        self.stops = options.stops

    def surprise(self, logits: torch.Tensor, word: torch.Tensor) -> torch.Tensor:
        return -logits.log_softmax(-1).gather(-1, word[:, None]).squeeze(-1)

    def ended(self, word: torch.Tensor) -> torch.Tensor:
        ended = torch.zeros_like(word, dtype=torch.bool)
        for stop in self.stops:
            ended = ended | (word == stop)
        return ended

    def __call__(self, logits: torch.Tensor, word: torch.Tensor) -> dict[str, torch.Tensor]:
        shares = logits.softmax(-1)
        return {
            "surprise": self.surprise(logits, word),
            "spread": -(shares * logits.log_softmax(-1)).sum(-1),
            "ended": self.ended(word),
        }


def cut(words: list[int], stops: tuple[int, ...]) -> list[int]:
    """Return the words of an answer up to the first that ends it."""
    for index, word in enumerate(words):
        if word in stops:
            return words[:index]
    return words


def table(answers: list[list[int]], names: dict[int, str]) -> str:
    """Return answers as lines of text; a word without a name is written as its number."""
    lines = [" ".join(names.get(word, f"<{word}>") for word in answer) for answer in answers]
    width = max((len(line) for line in lines), default=0)
    return "\n".join(line.ljust(width) for line in lines)


class Answer(torch.nn.Module):
    """The decoder: one word in, the next one out."""

    def __init__(self, shape: Shape | None = None, options: Options | None = None) -> None:
        super().__init__()
        self.shape, self.options = shape or Shape(), options or Options()
        self.words = torch.nn.Embedding(self.shape.words, self.shape.width)
        self.place = Place(self.shape.width)
        self.blocks = torch.nn.ModuleList(Block(self.shape) for _ in range(self.shape.depth))
        self.final = Norm(self.shape.width)
        self.head = torch.nn.Linear(self.shape.width, self.shape.words, bias=False)
        self.choice, self.gauge = Choice(self.options, self.shape), Gauge(self.options)

    def forward(self, word: torch.Tensor, noise: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.words(word) + 0.1 * self.place()
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.final(x)).float()
        chosen = self.choice(logits, noise)
        return {"word": chosen, **self.gauge(logits, chosen)}


def make() -> torch.nn.Module:
    return Answer().eval().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    shape, rows = Shape(), []
    for n in range(4):
        generator = torch.Generator().manual_seed(seed + n)
        word = torch.randint(3, shape.words, (shape.batch,), generator=generator)
        rows.append((word, torch.rand(shape.batch, shape.words, generator=generator)))
    return rows
