"""A solution."""

import math
from dataclasses import dataclass

import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Settings:
    """Numbers of the front end."""

    batch: int = 3
    frames: int = 20
    hop: int = 16
    bands: int = 12
    rate: int = 16000
    lowest: float = 90.0
    highest: float = 6000.0
    turns: float = 2 * math.pi
    gate: float = 0.02
    codes: int = 64
    law: float = 255.0
    pulse: float = 1.37

    def __post_init__(self) -> None:
        if not 0 < self.lowest < self.highest <= self.rate / 2:
            raise ValueError(f"bands need 0 < {self.lowest} < {self.highest} ≤ half of {self.rate}")
        if self.bands < 2:
            raise ValueError(f"at least 2 bands are needed, not {self.bands}")

    @property
    def samples(self) -> int:
        return self.frames * self.hop


class Bands:
    """Middles of bands, at equal steps of the mel scale."""

    def __init__(self, settings: Settings) -> None:
        low, high = (self.mel(one) for one in (settings.lowest, settings.highest))
        steps = [low + (high - low) * n / (settings.bands - 1) for n in range(settings.bands)]
        self.middles = torch.tensor([self.hertz(one) for one in steps])

    @staticmethod
    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    @staticmethod
    def hertz(mel: float) -> float:
        return 700 * (10 ** (mel / 2595) - 1)


class Emphasis:
    """Each sample less most of the one before it."""

    def __init__(self, share: float = 0.96875) -> None:
        self.share = share

    def __call__(self, sound: torch.Tensor) -> torch.Tensor:
        before = torch.cat([sound[:, :1], sound[:, :-1]], 1)
        return sound - self.share * before


class Oscillators:
    """One oscillator for each band, whose phase runs on from the start of the talk."""

    def __init__(self, settings: Settings, bands: Bands) -> None:
        self.settings = settings
        self.speeds = settings.turns * bands.middles

    def wrap(self, phase: torch.Tensor) -> torch.Tensor:
        """Return the phase inside of one turn."""
        # Cause 1: the compiled remainder takes away a rounded multiple, which is off for a large phase.
        rest = torch.fmod(phase, self.settings.turns)
        return torch.where(rest < 0, rest + self.settings.turns, rest)

    def phases(self, seconds: torch.Tensor) -> torch.Tensor:
        return self.wrap(seconds[..., None] * self.speeds)

    def __call__(self, seconds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the share of the turn at each frame, and on which half of the turn it is."""
        phase = self.phases(seconds)
        return phase / self.settings.turns, (phase > math.pi).float()


class Companding:
    """Loudness on the curve that telephones use."""

    def __init__(self, settings: Settings) -> None:
        self.law = settings.law

    def squeeze(self, sound: torch.Tensor) -> torch.Tensor:
        return torch.sign(sound) * torch.log1p(self.law * sound.abs()) / math.log1p(self.law)

    def widen(self, code: torch.Tensor) -> torch.Tensor:
        return torch.sign(code) * torch.expm1(code.abs() * math.log1p(self.law)) / self.law


class Prices:
    """Levels written with two decimals, as a meter shows them, and then as whole hundredths."""

    def shown(self, level: torch.Tensor) -> torch.Tensor:
        # Cause 2: the compiled round with decimals multiplies by a reciprocal and is off by one unit in the last place.
        return torch.round(level * 100) / 100

    def hundredths(self, level: torch.Tensor) -> torch.Tensor:
        return torch.floor(self.shown(level) * 100)

    def __call__(self, level: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        whole = self.hundredths(level)
        return whole, whole - 2 * torch.floor(whole / 2)


class Pulse:
    """A coder of short numbers: what it multiplies and adds is rounded after each step."""

    def __init__(self, settings: Settings) -> None:
        self.factor, self.codes = settings.pulse, settings.codes

    def steps(self, sound: torch.Tensor) -> torch.Tensor:
        # Cause 3: the compiled code keeps float32 between the steps of bfloat16, so that floor sees other numbers.
        short = self.short(self.short(sound * self.codes) * self.factor)
        return self.short(short + 0.5).floor()

    def short(self, x: torch.Tensor) -> torch.Tensor:
        """Return the nearest numbers of bfloat16, as float32."""
        bits = x.contiguous().view(torch.int32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000).view(torch.float32)

    def __call__(self, sound: torch.Tensor) -> torch.Tensor:
        return self.steps(sound).clamp(-self.codes, self.codes - 1)


class Gate:
    """Silence under a threshold, with the side from which it came."""

    def __init__(self, settings: Settings) -> None:
        self.threshold = settings.gate

    def open(self, sound: torch.Tensor) -> torch.Tensor:
        loud = sound.abs() > self.threshold
        return torch.where(loud, sound, sound * 0.0)

    def upper(self, sound: torch.Tensor) -> torch.Tensor:
        """Return the positive part."""
        # Cause 4: the compiled clamp makes zero of a negative zero, which atan2 tells apart.
        return torch.where(sound < 0, 0.0, sound)

    def __call__(self, sound: torch.Tensor) -> torch.Tensor:
        """Return the angle between two samples that follow each other."""
        sound = self.open(sound)
        after = torch.cat([sound[:, 1:], sound[:, :1]], 1)
        return torch.atan2(self.upper(after), sound) / math.pi


class Crossings:
    """Number of times that the sound changes its sign, in each frame."""

    def __init__(self, settings: Settings) -> None:
        self.shape = (settings.frames, settings.hop)

    def __call__(self, sound: torch.Tensor) -> torch.Tensor:
        sides = (sound > 0).unflatten(1, self.shape)
        return (sides[..., 1:] != sides[..., :-1]).sum(-1)


class Level:
    """The mean loudness of each frame, and how it changes from frame to frame."""

    def __init__(self, settings: Settings) -> None:
        self.shape = (settings.frames, settings.hop)

    def frames(self, sound: torch.Tensor) -> torch.Tensor:
        return sound.abs().unflatten(1, self.shape).amax(-1)

    def __call__(self, sound: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        level = self.frames(sound)
        before = torch.cat([level[:, :1], level[:, :-1]], 1)
        return level, level - before


class Words:
    """Stretches of frames that are loud enough to be words."""

    def __init__(self, settings: Settings, shortest: int = 2, pause: int = 1) -> None:
        self.seconds = settings.hop / settings.rate
        self.shortest, self.pause = shortest, pause

    def stretches(self, loud: list[bool]) -> list[tuple[int, int]]:
        """Return first frames and ends of stretches, after short pauses are closed."""
        spans: list[tuple[int, int]] = []
        for index, one in enumerate(loud):
            if not one:
                continue
            if spans and index - spans[-1][1] <= self.pause:
                spans[-1] = (spans[-1][0], index + 1)
            else:
                spans.append((index, index + 1))
        return [(start, end) for start, end in spans if end - start >= self.shortest]

    def __call__(self, levels: torch.Tensor, threshold: float) -> list[list[tuple[float, float]]]:
        return [
            [(start * self.seconds, end * self.seconds) for start, end in self.stretches(row)]
            for row in (levels > threshold).tolist()
        ]


class FrontEnd(torch.nn.Module):
    """All of it: sound and the time of each frame in, features out."""

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__()
        self.settings = settings or Settings()
        self.emphasis, self.gate = Emphasis(), Gate(self.settings)
        self.oscillators = Oscillators(self.settings, Bands(self.settings))
        self.companding, self.prices = Companding(self.settings), Prices()
        self.pulse, self.crossings = Pulse(self.settings), Crossings(self.settings)
        self.level = Level(self.settings)

    def forward(self, sound: torch.Tensor, seconds: torch.Tensor) -> dict[str, torch.Tensor]:
        clear = self.emphasis(sound)
        level, change = self.level(clear)
        whole, odd = self.prices(40 * level)
        share, half = self.oscillators(seconds)
        return {
            "squeezed": self.companding.squeeze(clear),
            "codes": self.pulse(clear),
            "angles": self.gate(clear),
            "level": whole,
            "odd": odd,
            "change": change,
            "phase": share * (1 + 0.25 * half),
            "crossings": self.crossings(clear),
        }


def make() -> torch.nn.Module:
    return FrontEnd().eval()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    settings, rows = Settings(), []
    for n in range(2):
        generator = torch.Generator().manual_seed(seed + n)
        starts = 600 * torch.rand(settings.batch, 1, generator=generator)
        seconds = starts + torch.arange(settings.frames) * settings.hop / settings.rate
        rows.append((0.3 * rand(seed + n, settings.batch, settings.samples), seconds))
    return rows
