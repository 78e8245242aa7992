"""A solution."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Options:
    """Settings of a step."""

    rate: float = 0.02
    warm: int = 3
    total: int = 40
    first: float = 0.9
    second: float = 0.99
    decay: float = 0.01
    longest: float = 1.0
    trust: tuple[float, float] = (0.05, 10.0)
    average: float = 0.9
    floor: float = 1e-8

    def __post_init__(self) -> None:
        if not 0 <= self.first < 1 or not 0 <= self.second < 1:
            raise ValueError(f"averages need 0 ≤ share < 1, not {self.first} and {self.second}")
        if self.warm >= self.total:
            raise ValueError(f"{self.warm} steps of warming do not fit into {self.total}")
        if self.trust[0] > self.trust[1]:
            raise ValueError(f"the range of trust is empty: {self.trust}")


class Schedule:
    """A rate that rises for a few steps and then falls along a cosine."""

    def __init__(self, options: Options) -> None:
        self.options = options

    # Cause 1: the number of the step goes through Python's math, and each of its values is compiled.
    def shape(self, step: torch.Tensor) -> torch.Tensor:
        warm, total = self.options.warm, self.options.total
        rising = ((step + 1) / warm).clamp(max=1.0)
        share = (step - warm).clamp(min=0.0) / (total - warm)
        return rising * 0.5 * (1 + torch.cos(math.pi * share))

    def __call__(self, step: int) -> float:
        return self.options.rate * self.shape(step)


class Clock:
    """The number of the step, and what depends on it alone."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.schedule = Schedule(options)
        # Cause 1, here too.
        self.step = torch.zeros(())

    def corrections(self) -> tuple[float, float]:
        """Return by what the two averages are too small in early steps."""
        return 1 - self.options.first ** (self.step + 1), 1 - self.options.second ** (self.step + 1)

    def rate(self) -> float:
        return self.schedule(self.step)

    def tick(self) -> None:
        self.step += 1


@dataclass
class Moments:
    """Averages of one matrix: of its gradient, and of the squares of rows and columns."""

    mean: torch.Tensor
    rows: torch.Tensor
    columns: torch.Tensor
    smooth: torch.Tensor

    @classmethod
    def of(cls, weight: torch.Tensor) -> "Moments":
        return cls(
            torch.zeros_like(weight),
            torch.zeros(weight.shape[0]),
            torch.zeros(weight.shape[1]),
            weight.clone(),
        )


class Factored:
    """The mean square of a matrix, as a product of one number for each row and one for each column."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def update(self, moments: Moments, gradient: torch.Tensor) -> None:
        square = gradient.square() + self.options.floor
        moments.rows.lerp_(square.mean(1), 1 - self.options.second)
        moments.columns.lerp_(square.mean(0), 1 - self.options.second)

    def root(self, moments: Moments, correction: float) -> torch.Tensor:
        product = torch.outer(moments.rows, moments.columns)
        return (product / (moments.rows.mean() * correction)).sqrt()


class Whiten:
    """Strengths of rows: the first ones learn a little more slowly."""

    def __init__(self, sizes: Iterable[tuple[int, int]]) -> None:
        self.tables = {}
        for size in sizes:
            ramp = 1 - 0.2 * np.exp(-np.arange(size[0]) / 8)
            # Cause 2: the table of numpy is float64, and with it each update of a matrix.
            self.tables[size] = torch.from_numpy(ramp).float()

    def __call__(self, update: torch.Tensor) -> torch.Tensor:
        return update * self.tables[tuple(update.shape)][:, None]


class Clip:
    """A limit for the length of all gradients together."""

    def __init__(self, options: Options) -> None:
        self.longest = options.longest

    def length(self, gradients: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack([one.square().sum() for one in gradients]).sum().sqrt()

    def __call__(self, gradients: list[torch.Tensor]) -> tuple[list[torch.Tensor], torch.Tensor]:
        length = self.length(gradients)
        # Cause 3: whether gradients are too long is asked of a tensor by a condition of Python.
        factor = (self.longest / length).clamp(max=1.0)
        return [one * factor for one in gradients], length


class Trust:
    """A step is scaled by the length of its matrix."""

    def __init__(self, options: Options) -> None:
        self.low, self.high = options.trust

    def __call__(self, weight: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        own, other = weight.norm(), update.norm()
        ratio = (own / (other + 1e-12)).clamp(self.low, self.high)
        return torch.where((own > 0) & (other > 0), ratio, 1.0)


@dataclass
class Log:
    """Figures of one step."""

    length: torch.Tensor
    ratios: list[torch.Tensor] = field(default_factory=list)
    changes: list[torch.Tensor] = field(default_factory=list)

    def result(self) -> dict[str, torch.Tensor]:
        return {
            "length": self.length,
            "ratios": torch.stack(self.ratios).float(),
            "changes": torch.stack(self.changes).float(),
        }


class Optimizer:
    """Steps of matrices: clipped, factored, scaled by trust, with decay and an average of the weights."""

    def __init__(self, weights: list[torch.Tensor], options: Options | None = None) -> None:
        self.options = options or Options()
        self.weights = weights
        self.moments = [Moments.of(one) for one in weights]
        self.clock = Clock(self.options)
        self.clip, self.trust = Clip(self.options), Trust(self.options)
        self.factored = Factored(self.options)
        self.whiten = Whiten({tuple(one.shape) for one in weights})

    def size(self) -> dict[str, int]:
        """Return the numbers that the optimizer keeps, by their kind."""
        kinds = {"mean": 0, "rows": 0, "columns": 0, "smooth": 0}
        for moments in self.moments:
            for kind in kinds:
                kinds[kind] += getattr(moments, kind).numel()
        return kinds

    def state(self) -> dict[str, list[torch.Tensor]]:
        """Return copies of all averages, to go on from later."""
        kinds = ("mean", "rows", "columns", "smooth")
        return {kind: [getattr(one, kind).clone() for one in self.moments] for kind in kinds}

    @torch.no_grad()
    def load(self, state: dict[str, list[torch.Tensor]]) -> None:
        """Go on from averages that were kept."""
        for kind, values in state.items():
            if len(values) != len(self.moments):
                raise ValueError(f"{kind} has {len(values)} tensors for {len(self.moments)} matrices")
            for moments, value in zip(self.moments, values, strict=True):
                getattr(moments, kind).copy_(value)

    def direction(self, moments: Moments, gradient: torch.Tensor) -> torch.Tensor:
        """Return the step of a matrix before its scale."""
        first, second = self.clock.corrections()
        self.factored.update(moments, gradient)
        moments.mean.lerp_(gradient, 1 - self.options.first)
        root = self.factored.root(moments, second)
        return self.whiten(moments.mean / first / (root + self.options.floor))

    def change(self, weight: torch.Tensor, moments: Moments, gradient: torch.Tensor, log: Log) -> None:
        update = self.direction(moments, gradient)
        ratio = self.trust(weight, update)
        weight.mul_(1 - self.clock.rate() * self.options.decay)
        weight.sub_((self.clock.rate() * ratio * update).to(weight.dtype))
        moments.smooth.lerp_(weight, 1 - self.options.average)
        log.ratios.append(ratio)
        log.changes.append((self.clock.rate() * ratio * update).abs().mean())

    def step(self, gradients: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        gradients, length = self.clip(gradients)
        log = Log(length)
        for weight, moments, gradient in zip(self.weights, self.moments, gradients, strict=True):
            self.change(weight, moments, gradient, log)
        self.clock.tick()
        return log.result()


class Training:
    """Two matrices of a small network, with its gradients by hand."""

    def __init__(self) -> None:
        self.first = torch.randn(48, 64) / 8
        self.second = torch.randn(64, 96) / 8
        self.optimizer = Optimizer([self.first, self.second])

    def gradients(self, x: torch.Tensor, y: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        hidden = torch.tanh(x @ self.first)
        error = hidden @ self.second - y
        back = (error @ self.second.T) * (1 - hidden.square())
        return [x.T @ back / len(x), hidden.T @ error / len(x)], error.square().mean()

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        gradients, loss = self.gradients(x, y)
        log = self.optimizer.step(gradients)
        smooth = [moments.smooth.clone() for moments in self.optimizer.moments]
        return {"loss": loss, **log, "smooth": smooth}


def make():
    return Training()


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    rows = [(rand(seed + n, 24, 48), 2 * rand(seed - n, 24, 96)) for n in range(5)]
    return [(x, y * scale) for (x, y), scale in zip(rows, (1.0, 0.1, 0.02, 0.01, 1.0), strict=True)]
