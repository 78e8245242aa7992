"""The router of a mixture of experts launches too much for the little that it computes."""

import torch
import torch.nn.functional as F

TARGET = "h100"
LIMITS = {"graphs": 1, "breaks": 0, "device_launches": 15, "device_bytes": 14514300}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Gate(torch.nn.Module):
    """Scores of experts for each token, with a bias that balances them and a temperature for each group of experts."""

    def __init__(self, width: int, experts: int, groups: int) -> None:
        super().__init__()
        self.experts, self.groups = experts, groups
        self.weight = torch.nn.Parameter(torch.randn(experts, width) / width**0.5)
        self.query = torch.nn.Parameter(torch.randn(width) / width**0.5)
        self.register_buffer("balance", torch.linspace(-0.1, 0.1, experts))

    def temperature(self, x: torch.Tensor) -> torch.Tensor:
        """Return a temperature for each token."""
        sharp = torch.bmm(x[:, None], self.query.expand(x.shape[0], -1)[:, :, None]).flatten()
        return 0.5 + torch.sigmoid(sharp)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = x @ self.weight.T
        scale = torch.tensor([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0, 1.0], device=x.device)
        logits = logits.view(-1, self.groups, self.experts // self.groups) * scale[:, None]
        return logits.flatten(1) / self.temperature(x)[:, None]


class Choice(torch.nn.Module):
    """The experts of each token, their weights, and the tokens' places in the experts' queues."""

    def __init__(self, experts: int, chosen: int) -> None:
        super().__init__()
        self.experts, self.chosen = experts, chosen

    def best(self, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights, experts = scores.topk(self.chosen, -1)
        return weights / weights.sum(-1, keepdim=True), experts

    def places(self, experts: torch.Tensor) -> torch.Tensor:
        """Return each token's place in the queue of its first expert, counted within its sequence."""
        taken = (experts[..., :1] == torch.arange(self.experts, device=experts.device)).to(torch.int32)
        return (taken.cumsum(-2) * taken).sum(-1) - 1

    def forward(self, logits: torch.Tensor, balance: torch.Tensor, length: int) -> tuple[torch.Tensor, ...]:
        scores = torch.softmax(logits, -1) + balance
        weights, experts = self.best(scores)
        return weights, experts, self.places(experts.view(-1, length, self.chosen))


class Report(torch.nn.Module):
    """Numbers that tell whether experts are used evenly."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        self.experts = experts

    def share(self, experts: torch.Tensor) -> torch.Tensor:
        """Return the share of tokens that have each expert first."""
        return F.one_hot(experts[:, 0], self.experts).float().mean(0)

    def forward(self, logits: torch.Tensor, experts: torch.Tensor) -> dict[str, torch.Tensor]:
        rows = logits.logsumexp(-1)
        probability = (logits - rows[:, None]).exp()
        entropy = -(probability * (logits - rows[:, None])).sum() / logits.shape[0]
        spread = logits.sort(-1).values[:, -1] - logits.sort(-1).values[:, self.experts // 2]
        return {
            "balance": self.experts * (self.share(experts) * probability.mean(0)).sum(),
            "z": rows.square().mean(),
            "entropy": entropy,
            "spread": spread.mean(),
        }


class Router(torch.nn.Module):
    def __init__(self, width: int = 128, experts: int = 64, chosen: int = 2, length: int = 256) -> None:
        super().__init__()
        self.gate, self.choice = Gate(width, experts, 8), Choice(experts, chosen)
        self.report, self.length = Report(experts), length

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = F.rms_norm(x, x.shape[-1:])
        logits = self.gate(x)
        weights, experts, places = self.choice(logits, self.gate.balance, self.length)
        return {"weights": weights, "experts": experts, "places": places, **self.report(logits, experts)}


def make() -> torch.nn.Module:
    return Router().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 2048, 128),) for n in range(2)]
