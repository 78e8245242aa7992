"""A solution."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Settings:
    """Strengths of the changes."""

    batch: int = 4
    side: int = 24
    levels: int = 9
    bend: float = 0.15
    grain: float = 0.02
    veil: float = 0.3
    boxes: int = 2
    steps: float = 6.0
    glare: float = 260.0
    saturation: tuple[float, float] = (0.7, 1.4)


@dataclass
class Draw:
    """One uniform draw for each picture and purpose, in the order in which they are asked for."""

    numbers: torch.Tensor
    used: int = 0

    def take(self, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        value = self.numbers[:, self.used]
        self.used += 1
        return (low + (high - low) * value)[:, None, None, None]


class Planes:
    """Light and two colour planes of a picture, as television has them."""

    forward = ((0.25, 0.5, 0.25), (0.5, 0.0, -0.5), (-0.25, 0.5, -0.25))
    backward = ((1.0, 1.0, -1.0), (1.0, 0.0, 1.0), (1.0, -1.0, -1.0))

    def mix(self, x: torch.Tensor, rows: tuple[tuple[float, ...], ...]) -> torch.Tensor:
        red, green, blue = x.unbind(1)
        return torch.stack([a * red + b * green + c * blue for a, b, c in rows], 1)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return self.mix(x, self.forward)

    def join(self, x: torch.Tensor) -> torch.Tensor:
        return self.mix(x, self.backward)


class Gamma:
    """A curve of brightness that keeps black and white where they are."""

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        bend = draw.take(-0.5, 0.5)
        return x + bend * x * (1 - x)


class Contrast:
    """Distance from the mean, made smaller or larger."""

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        factor = draw.take(0.75, 1.25)
        return 0.5 + (x - 0.5) * factor


class Dither:
    """Places with an odd number of hundredths of brightness become a little brighter."""

    def shown(self, x: torch.Tensor) -> torch.Tensor:
        # Cause 2: the compiled round with decimals multiplies by a reciprocal, so that floor sees other numbers.
        return torch.round(x * 100) / 100

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        hundredths = torch.floor(self.shown(x) * 100)
        odd = hundredths - 2 * torch.floor(hundredths / 2)
        return x + draw.take(0.02, 0.05) * odd


class Posterise:
    """Few levels of brightness, on the grid of a display with short numbers."""

    def __init__(self, settings: Settings) -> None:
        self.levels = settings.levels

    def grid(self, x: torch.Tensor) -> torch.Tensor:
        """Round to the numbers that the display has."""
        # Cause 1: the compiled code drops the way to bfloat16 and back, so that floor sees other numbers.
        bits = x.contiguous().view(torch.int32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000).view(torch.float32)

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        levels = self.levels + 2 * (draw.take() > 0.5)
        stepped = torch.floor(self.grid(x) * levels) / levels
        return torch.where(draw.take() > 0.25, stepped, x)


class Hue:
    """The angle of the colour planes, turned in a few steps, with its sign kept apart."""

    def __init__(self, settings: Settings) -> None:
        self.steps = settings.steps
        self.planes = Planes()

    def above(self, x: torch.Tensor) -> torch.Tensor:
        """Return the part above the axis of the first plane."""
        return torch.relu(x)

    def angles(self, planes: torch.Tensor) -> torch.Tensor:
        first, second = (planes[:, 1:] * self.steps).round().unbind(1)
        return torch.atan2(self.above(second), first)

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        planes = self.planes.split(x)
        turn = draw.take(-0.2, 0.2)[:, 0]
        angle = self.angles(planes) / math.pi
        light, first, second = planes.unbind(1)
        shifted = torch.stack([light + turn * angle / 8, first + turn * second, second - turn * first], 1)
        return self.planes.join(shifted)


class Saturation:
    """Colour planes made weaker or stronger than the light."""

    def __init__(self, settings: Settings) -> None:
        self.range = settings.saturation
        self.planes = Planes()

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        light, *colours = self.planes.split(x).unbind(1)
        factor = draw.take(*self.range)[:, 0]
        return self.planes.join(torch.stack([light, *(factor * plane for plane in colours)], 1))


class Glare:
    """A lamp whose energy is metered by a cheap sensor of half precision."""

    def __init__(self, settings: Settings) -> None:
        self.strength = settings.glare
        axis = torch.linspace(-1, 1, settings.side)
        self.rows, self.columns = axis[:, None], axis[None, :]

    def spot(self, draw: Draw) -> torch.Tensor:
        row, column = draw.take(-0.6, 0.6), draw.take(-0.6, 0.6)
        distance = (self.rows - row).abs() + (self.columns - column).abs()
        return (1.2 - distance).clamp(min=0.0)

    def meter(self, light: torch.Tensor) -> torch.Tensor:
        """Return the share of the light that passes the sensor: none where its energy is out of range."""
        # Cause 3: the compiled code squares in float32, where half precision goes to infinity.
        energy = light.half().float().square()
        return 1 / (1 + torch.where(energy >= 65520, math.inf, energy) / 4096)

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        spot = self.spot(draw)
        share = self.meter(self.strength * spot)
        return x + 0.4 * spot * share + 0.2 * (share == 0)


class Boxes:
    """Grey boxes over parts of the picture."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.axis = torch.arange(settings.side)

    def inside(self, draw: Draw, size: torch.Tensor) -> torch.Tensor:
        start = draw.take(0, self.settings.side - 4).floor()
        return (self.axis >= start) & (self.axis < start + size)

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        for _ in range(self.settings.boxes):
            size = draw.take(2, 6).floor()
            rows, columns = self.inside(draw, size), self.inside(draw, size)
            x = torch.where(rows.transpose(-1, -2) & columns, 0.5, x)
        return x


class Mirror:
    """Left and right changed for half of the pictures."""

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        return torch.where(draw.take() > 0.5, x.flip(-1), x)


class Shift:
    """A move by whole pixels around the edge."""

    def __init__(self, settings: Settings) -> None:
        self.side = settings.side

    def __call__(self, x: torch.Tensor, draw: Draw) -> torch.Tensor:
        offset = draw.take(-3, 4).floor().long()[:, 0, 0]
        index = (torch.arange(self.side) + offset) % self.side
        return x.gather(-1, index[:, None, None].expand_as(x))


class Grain:
    """Noise of a film, weaker where the picture is dark."""

    def __init__(self, settings: Settings) -> None:
        self.strength = settings.grain

    def __call__(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return x + self.strength * noise * (0.25 + x.clamp(0, 1))


class Report:
    """Figures of a varied picture, for a log."""

    def __call__(self, before: torch.Tensor, after: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            "change": (after - before).abs().mean((1, 2, 3)),
            "dark": (after < 0.1).float().mean((1, 2, 3)),
            "bright": (after > 0.9).float().mean((1, 2, 3)),
        }


class Pipeline(torch.nn.Module):
    """The changes in their order."""

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__()
        self.settings = settings or Settings()
        first: list[Callable] = [Gamma(), Contrast(), Dither(), Mirror(), Posterise(self.settings)]
        second: list[Callable] = [Hue(self.settings), Saturation(self.settings), Glare(self.settings)]
        last: list[Callable] = [Boxes(self.settings), Shift(self.settings)]
        self.changes = [*first, *second, *last]
        self.grain, self.report = Grain(self.settings), Report()

    def forward(
        self, pictures: torch.Tensor, numbers: torch.Tensor, noise: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        x, draw = pictures, Draw(numbers)
        for change in self.changes:
            x = change(x, draw)
        x = self.grain(x, noise)
        return x, self.report(pictures, x)


def make() -> torch.nn.Module:
    return Pipeline().eval()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    settings, rows = Settings(), []
    for n in range(2):
        generator = torch.Generator().manual_seed(seed + n)
        size = (settings.batch, 3, settings.side, settings.side)
        pictures = torch.rand(size, generator=generator)
        numbers = torch.rand(settings.batch, 32, generator=generator)
        rows.append((pictures, numbers, rand(seed + n, *size)))
    return rows
