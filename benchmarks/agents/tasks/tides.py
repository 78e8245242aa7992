"""Indicators of many gauges over time: trends, quantiles in windows, sums to come, alarms."""

import torch

TARGET = "h100"
LIMITS = {"graphs": 1, "breaks": 0, "device_launches": 8, "device_bytes": 4952000}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Trend(torch.nn.Module):
    """Means of growing and of moving windows."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, levels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        steps = torch.arange(1, levels.shape[0] + 1, device=levels.device)
        growing = levels.cumsum(0) / steps[:, None]
        moving = levels.T.unfold(-1, self.window, 1)
        return growing, moving.mean(-1) + 0.1 * moving.std(-1)


class Bands(torch.nn.Module):
    """The middle of the last levels of each gauge, and a band around it."""

    def __init__(self, last: int, parts: tuple[float, ...] = (0.1, 0.5, 0.9)) -> None:
        super().__init__()
        self.last, self.parts = last, parts

    def forward(self, levels: torch.Tensor) -> torch.Tensor:
        recent = levels[-self.last :].T
        return torch.stack(
            [recent.kthvalue(1 + int(part * (self.last - 1)), -1).values for part in self.parts], -1
        )


class Coming(torch.nn.Module):
    """Sums of what is still to come, with less weight for what is later."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, flow: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(flow.shape[-1], device=flow.device)
        weighted = flow * torch.exp(-self.rate * steps)
        coming = weighted.flip(-1).cumsum(-1).flip(-1)
        return coming * torch.exp(self.rate * steps)


class Alarms(torch.nn.Module):
    """Classes of levels by thresholds, and a score of each gauge."""

    def __init__(self, gauges: int, features: int) -> None:
        super().__init__()
        self.register_buffer("limits", torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0]))
        self.weight = torch.nn.Parameter(torch.randn(features))

    def forward(
        self, levels: torch.Tensor, features: list[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        classes = torch.searchsorted(self.limits, levels[-64:].contiguous())
        score = torch.stack(features, -1) @ self.weight
        return classes, score


class Station(torch.nn.Module):
    def __init__(self, gauges: int = 256) -> None:
        super().__init__()
        self.trend, self.bands, self.coming = Trend(32), Bands(256), Coming(0.002)
        self.alarms = Alarms(gauges, 5)

    def forward(self, levels: torch.Tensor, flow: torch.Tensor) -> dict[str, torch.Tensor]:
        growing, moving = self.trend(levels)
        coming = self.coming(flow)
        highest = flow.cummax(-1).values
        features = [flow.mean(-1), flow.amax(-1), flow.std(-1), flow.diff(dim=-1).abs().mean(-1), flow[:, -1]]
        classes, score = self.alarms(levels, features)
        return {
            "growing": growing,
            "moving": moving,
            "bands": self.bands(levels),
            "coming": coming,
            "highest": highest[:, ::16],
            "classes": classes,
            "score": score,
        }


def make() -> torch.nn.Module:
    return Station().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 512, 256), rand(seed + n + 5, 256, 512)) for n in range(2)]
