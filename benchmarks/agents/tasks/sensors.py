"""Twelve sensors of a machine become one state: gains, phases, votes of groups, an alarm."""

import torch
import torch.nn.functional as F

TARGET = "h100"
LIMITS = {"graphs": 1, "breaks": 0, "device_launches": 10, "device_bytes": 21154900}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Gains(torch.nn.Module):
    """A curve for each sensor, which makes its readings comparable."""

    def __init__(self, sensors: int) -> None:
        super().__init__()
        self.sensors = sensors
        self.gain = torch.nn.Parameter(1 + 0.1 * torch.randn(sensors))
        self.offset = torch.nn.Parameter(0.1 * torch.randn(sensors))

    def curve(self, x: torch.Tensor, gain: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
        return torch.tanh(gain * x + offset) + 0.1 * x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.curve(x[..., n], self.gain[n], self.offset[n]) for n in range(self.sensors)]
        return torch.stack(parts, 1)


class Phase(torch.nn.Module):
    """Pairs of sensors are two parts of a wave: turn it back by the angle of the shaft."""

    def forward(self, x: torch.Tensor, shaft: torch.Tensor) -> torch.Tensor:
        first, second = x[:, 0::2], x[:, 1::2]
        wave = torch.complex(first, second) * torch.polar(torch.ones_like(shaft), -shaft)[:, None]
        return torch.cat([wave.real, wave.imag], 1)


class Calm(torch.nn.Module):
    """The middle of the last readings, and the power of what differs from it."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        recent = x[..., -self.window :]
        middle = recent.median(-1).values
        drift = x.cumsum(-1)[..., -1] / x.shape[-1]
        return middle, (recent - middle[..., None]).square().mean(-1) + drift.abs()


class Votes(torch.nn.Module):
    """Groups of sensors vote, each sensor with a weight by how calm it is."""

    def __init__(self, groups: int, width: int) -> None:
        super().__init__()
        self.groups, self.width = groups, width

    def forward(self, middle: torch.Tensor, power: torch.Tensor) -> torch.Tensor:
        votes = []
        for level, wait in zip(middle.chunk(self.groups, 1), power.chunk(self.groups, 1), strict=True):
            weight = torch.softmax(-wait, -1)
            votes.append((weight * level).sum(-1))
        return torch.stack(votes, -1)


class State(torch.nn.Module):
    def __init__(self, sensors: int = 12) -> None:
        super().__init__()
        self.gains, self.phase, self.calm, self.votes = Gains(sensors), Phase(), Calm(64), Votes(4, 3)
        self.register_buffer("limits", torch.linspace(-1, 1, 9))
        self.out = torch.nn.Linear(4, 16)

    def forward(self, x: torch.Tensor, shaft: torch.Tensor) -> dict[str, torch.Tensor]:
        waves = self.phase(self.gains(x), shaft)
        middle, power = self.calm(waves)
        votes = self.votes(middle, power)
        level = torch.bucketize(votes, self.limits)
        alarm = torch.where(power.amax(-1) > 1.0, level.amax(-1), torch.tensor(0, device=x.device))
        return {"waves": waves[..., ::8], "votes": votes, "alarm": alarm, "state": F.silu(self.out(votes))}


def make() -> torch.nn.Module:
    return State().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 256, 256, 12), rand(seed + n + 3, 256, 256)) for n in range(2)]
