"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Sales(torch.nn.Module):
    """Sales of the days to come, and how many are expected until each day."""

    def __init__(self, days: int) -> None:
        super().__init__()
        self.days = days
        self.season = torch.nn.Parameter(0.1 * torch.randn(days))

    def forward(self, past: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        level = past.mean(-1, keepdim=True)
        slope = (past[:, -7:].mean(-1, keepdim=True) - level) / past.shape[-1]
        day = torch.arange(1, self.days + 1, device=past.device)
        sales = F.softplus(level + slope * day + self.season)
        return sales, sales.cumsum(-1)


class Shelf(torch.nn.Module):
    """The day on which the stock is gone, and the risk of it."""

    def forward(
        self, until: torch.Tensor, stock: torch.Tensor, risk: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # Cause 1: searchsorted is a library call on this device; a count of days that lie below is generated.
        gone = (until < stock[:, None]).sum(-1)
        chance = 1 - (1 - risk).prod(-1)
        return gone, chance


class Prices(torch.nn.Module):
    """How far offers are from each other, and the two best of each thing."""

    def forward(self, offers: torch.Tensor) -> dict[str, torch.Tensor]:
        # Cause 2: a sort is a library call on this device; its ends are a maximum and a minimum, which are generated.
        spread = offers.amax(-1) - offers.amin(-1)
        near = torch.softmax(-offers, -1)
        # Cause 3: topk is a library call; the second is the least of what is left when one place is taken out.
        first = offers.min(-1)
        places = torch.arange(offers.shape[-1], device=offers.device)
        left = torch.where(places == first.indices[:, None], float("inf"), offers)
        two = torch.stack([first.values, left.amin(-1)], -1)
        return {"spread": spread, "two": two, "mean": (near * offers).sum(-1)}


class Orders(torch.nn.Module):
    def __init__(self, days: int = 28) -> None:
        super().__init__()
        self.sales, self.shelf, self.prices = Sales(days), Shelf(), Prices()
        self.register_buffer("weights", torch.linspace(1.0, 0.5, days))

    def forward(
        self, past: torch.Tensor, stock: torch.Tensor, risk: torch.Tensor, offers: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        sales, until = self.sales(past)
        gone, chance = self.shelf(until, stock, risk)
        prices = self.prices(offers)
        need = torch.where(gone < sales.shape[-1], until[:, -1] - stock, torch.zeros((), device=past.device))
        norm = past / (past.std(-1, keepdim=True) + 1)
        turns = torch.logsumexp(norm, -1) + torch.special.erfcx(chance) * torch.lgamma(stock + 1)
        best = (sales * self.weights).argmax(-1)
        return {"gone": gone, "chance": chance, "need": need, "turns": turns, "best": best, **prices}


def make() -> torch.nn.Module:
    return Orders().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    rows = []
    for n in range(2):
        past = 5 + rand(seed + n, 512, 90).abs()
        stock = 20 + 40 * rand(seed + n + 3, 512).abs()
        risk = 0.05 * torch.sigmoid(rand(seed + n + 4, 512, 20))
        rows.append((past, stock, risk, 10 + rand(seed + n + 5, 512, 24)))
    return rows
