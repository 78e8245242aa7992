"""A solution."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Shape:
    """Sizes of the film and of the model."""

    batch: int = 2
    frames: int = 2
    side: int = 4
    width: int = 32
    heads: int = 2
    slots: int = 16
    classes: int = 6
    drop: float = 0.1
    sharpness: float = 0.5
    notches: float = 12.0
    flow: float = 3.0

    @property
    def head(self) -> int:
        return self.width // self.heads

    @property
    def places(self) -> int:
        return self.side**2


class Grid(torch.nn.Module):
    """Positions of the places of a frame, as features."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        axis = torch.linspace(-1, 1, shape.side)
        rows, columns = torch.meshgrid(axis, axis, indexing="ij")
        both = torch.stack([rows, columns, -rows, -columns], -1).flatten(0, 1)
        self.register_buffer("both", both)
        self.weight = torch.nn.Parameter(torch.randn(4, shape.width) / 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.both @ self.weight


class Residual(torch.nn.Module):
    """A layer beside its input, with a strength for each channel."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(shape.width, shape.width)
        self.drop = torch.nn.Dropout(shape.drop)
        self.strength = torch.nn.Parameter(torch.linspace(0.5, 1.5, shape.width))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the new features, and how active the layer was."""
        hidden = F.silu(self.layer(x))
        # Cause 1: dropout that is off gives back its input, which the compiled code does not change in place.
        hidden = update = self.drop(hidden) * self.strength
        active = torch.sigmoid(4 * hidden.mean(-1, keepdim=True))
        return x + update * active, active.squeeze(-1)


class Competition(torch.nn.Module):
    """Places are shared among slots: the shares of a place over the slots sum to one."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.query = torch.nn.Linear(shape.width, shape.width, bias=False)
        self.pair = torch.nn.Linear(shape.width, 2 * shape.width, bias=False)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.shape.heads, self.shape.head)).transpose(1, 2)

    def forward(self, slots: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        query = F.normalize(self.split(self.query(slots)), dim=-1)
        key, value = (self.split(part) for part in self.pair(places).chunk(2, -1))
        key = F.normalize(key, dim=-1)
        scores = torch.matmul(query, key.transpose(-2, -1)).div(self.shape.sharpness)
        shares = scores.softmax(dim=-2)
        taken = torch.matmul(shares, value)
        return taken.transpose(1, 2).flatten(2)


class Renewal(torch.nn.Module):
    """A gated change of the slots by what they took."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gates = torch.nn.Linear(2 * shape.width, 2 * shape.width)

    def forward(self, slots: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
        gate, change = self.gates(torch.cat([slots, taken], -1)).chunk(2, -1)
        gate = gate.sigmoid()
        return (1 - gate) * slots + gate * change.tanh()


class Motion:
    """The direction in which the mass of the picture moves, in notches of a wheel."""

    def __init__(self, shape: Shape) -> None:
        axis = torch.linspace(-1, 1, shape.side)
        self.axis, self.notches, self.strength = axis, shape.notches, shape.flow

    def drift(self, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the drift along and across, rounded to what a wheel can tell."""
        change = frames[:, 1:] - frames[:, :-1]
        along = (change[..., :2] * self.strength).round()
        across = (change[..., 2:4] * self.strength / 4).round()
        return along, across

    def forwards(self, drift: torch.Tensor) -> torch.Tensor:
        # Cause 2: the compiled clamp turns negative zero into zero, for which the angle is another.
        return torch.where(drift < 0, 0.0, drift)

    def __call__(self, frames: torch.Tensor) -> torch.Tensor:
        along, across = self.drift(frames)
        angle = torch.atan2(self.forwards(across), along)
        return angle * self.notches / (2 * math.pi)


class Meter:
    """A cheap sensor of brightness: what it gets is rounded to few bits before it is counted in steps."""

    def __init__(self, step: float = 0.0625) -> None:
        self.step = step

    def coarse(self, light: torch.Tensor) -> torch.Tensor:
        # Cause 3: the compiled code drops the way to bfloat16 and back.
        bits = light.contiguous().view(torch.int32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000).view(torch.float32)

    def __call__(self, film: torch.Tensor) -> torch.Tensor:
        light = film[..., 0] * 20.0
        steps = torch.floor(self.coarse(light) / self.step)
        return steps - 2 * torch.floor(steps / 2)


class Classes(torch.nn.Module):
    """The kind of the object of each slot, and how sure it is."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(shape.width, shape.classes + 1)

    def forward(self, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shares = self.layer(slots).softmax(-1)
        return shares[..., :-1], 1 - shares[..., -1]


class Matching:
    """Pairs of slots and labelled objects, the best pair first, for a loss or a score."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def scores(self, kinds: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return how well each slot fits each label, both of one film."""
        return kinds[:, labels].log()

    def pairs(self, scores: torch.Tensor) -> list[tuple[int, int]]:
        """Return pairs of slot and label, by taking the best score that is left."""
        left = scores.clone()
        pairs = []
        for _ in range(min(left.shape)):
            slot, label = divmod(int(left.argmax()), left.shape[1])
            pairs.append((slot, label))
            left[slot, :] = -math.inf
            left[:, label] = -math.inf
        return pairs

    def accuracy(self, kinds: torch.Tensor, labels: list[torch.Tensor]) -> float:
        """Return the share of labelled objects that a slot of the right class was paired with."""
        right = every = 0
        for row, expected in zip(kinds, labels, strict=True):
            for slot, label in self.pairs(self.scores(row, expected)):
                right += int(row[slot].argmax() == expected[label])
                every += 1
        return right / max(every, 1)


class Objects(torch.nn.Module):
    """The model: frames in, slots with their classes out."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape or Shape()
        self.first = torch.nn.Parameter(torch.randn(self.shape.slots, self.shape.width))
        self.grid, self.residual = Grid(self.shape), Residual(self.shape)
        self.competition, self.renewal = Competition(self.shape), Renewal(self.shape)
        self.classes, self.motion, self.meter = Classes(self.shape), Motion(self.shape), Meter()

    def size(self) -> dict[str, int]:
        """Return the number of parameters of each part."""
        parts = {"grid": self.grid, "residual": self.residual, "competition": self.competition}
        parts |= {"renewal": self.renewal, "classes": self.classes}
        return {name: sum(one.numel() for one in part.parameters()) for name, part in parts.items()}

    def frame(self, slots: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Change the slots by one frame."""
        features, active = self.residual(self.grid(places))
        taken = self.competition(slots, features)
        return self.renewal(slots, taken), active

    def forward(self, film: torch.Tensor) -> dict[str, torch.Tensor]:
        slots = self.first.expand(len(film), -1, -1)
        every = []
        for index in range(self.shape.frames):
            slots, active = self.frame(slots, film[:, index])
            every.append(active)
        kinds, sure = self.classes(slots)
        return {
            "kinds": kinds,
            "sure": sure,
            "active": torch.stack(every, 1),
            "motion": self.motion(film),
            "light": self.meter(film),
        }


def make() -> torch.nn.Module:
    return Objects().eval().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    shape = Shape()
    return [(rand(seed + n, shape.batch, shape.frames, shape.places, shape.width),) for n in range(2)]
