"""Features of recordings of birds: frames, spectra, noise, loudness."""

import math

import torch
import torch.nn.functional as F

TARGET = "h100"
LIMITS = {"graphs": 1, "breaks": 0, "device_launches": 13, "device_bytes": 6076700}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Emphasis(torch.nn.Module):
    """A filter that lifts high tones, and the slow drift of the microphone taken away."""

    def __init__(self, taps: tuple[float, ...] = (-0.2, 1.0, -0.75)) -> None:
        super().__init__()
        self.register_buffer("taps", torch.tensor(taps).view(1, 1, -1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        drift = x.cumsum(-1) / torch.arange(1, x.shape[-1] + 1, device=x.device)
        return F.conv1d(F.pad((x - 0.5 * drift)[:, None], (1, 1)), self.taps).squeeze(1)


class Spectrum(torch.nn.Module):
    """Power of each tone in each frame, by tables of waves."""

    def __init__(self, frame: int, hop: int, tones: int) -> None:
        super().__init__()
        self.frame, self.hop, self.tones = frame, hop, tones
        angle = 2 * math.pi * torch.outer(torch.arange(frame), torch.arange(1, tones + 1)) / frame
        self.register_buffer("waves", torch.cat([angle.cos(), -angle.sin()], -1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        frames = x.unfold(-1, self.frame, self.hop)
        frames = frames * torch.hann_window(self.frame, device=x.device)
        both = frames @ self.waves
        tones = torch.view_as_complex(torch.stack(both.chunk(2, -1), -1))
        return tones.abs().square(), tones.angle()


class Calm(torch.nn.Module):
    """Power beside its mean over neighbouring frames and tones, so that a steady noise counts for little."""

    def __init__(self, frames: int, tones: int) -> None:
        super().__init__()
        self.window = (frames, tones)

    def forward(self, power: torch.Tensor) -> torch.Tensor:
        frames, tones = self.window
        around = F.pad(power[:, None], (tones // 2, tones // 2, frames // 2, frames // 2), mode="reflect")
        noise = F.avg_pool2d(around, self.window, 1).squeeze(1)
        return power / (noise + 0.1)


class Loudness(torch.nn.Module):
    """Levels of each recording, and how it dies away."""

    def forward(self, x: torch.Tensor, power: torch.Tensor) -> dict[str, torch.Tensor]:
        energy = power.sum(-1)
        loudest = energy.sort(-1, descending=True).values[:, :5].mean(-1)
        decay = energy.flip(-1).cumsum(-1).flip(-1)
        return {
            "level": 10 * (loudest + 1e-6).log10(),
            "decay": decay / decay[:, :1],
            "mean": x.abs().mean(-1),
        }


class Whistle(torch.nn.Module):
    def __init__(self, frame: int = 128, hop: int = 64, tones: int = 48) -> None:
        super().__init__()
        self.emphasis, self.spectrum = Emphasis(), Spectrum(frame, hop, tones)
        self.calm, self.loudness = Calm(5, 7), Loudness()

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.emphasis(x)
        power, phase = self.spectrum(x)
        calm = self.calm(power)
        turn = torch.diff(phase, dim=1).cos()
        return {"features": torch.log1p(calm), "turn": turn, **self.loudness(x, calm)}


def make() -> torch.nn.Module:
    return Whistle().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 4, 16384),) for n in range(2)]
