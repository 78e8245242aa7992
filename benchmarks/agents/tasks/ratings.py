"""A model that ranks things to buy: tables of words, crosses of features, two heads, a list of the best."""

import torch
import torch.nn.functional as F

TARGET = "h100"
LIMITS = {"graphs": 1, "breaks": 0, "device_launches": 11, "device_bytes": 5607400}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Tables(torch.nn.Module):
    """A vector for each field of a thing: single values, and the mean of a bag of words."""

    def __init__(self, rows: int, width: int, fields: int) -> None:
        super().__init__()
        self.rows, self.fields = rows, fields
        self.table = torch.nn.Parameter(torch.randn(rows, width) / width**0.5)
        self.words = torch.nn.Parameter(torch.randn(rows, width) / width**0.5)

    def hashed(self, values: torch.Tensor) -> torch.Tensor:
        """Return rows of the table for values of any size."""
        salt = torch.arange(self.fields, device=values.device) * 7919 + 13
        return ((values * 2654435761 + salt) % 1000003) % self.rows

    def forward(self, values: torch.Tensor, bag: torch.Tensor) -> torch.Tensor:
        single = F.embedding(self.hashed(values), self.table)
        words = F.embedding_bag(bag, self.words, mode="mean")
        return torch.cat([single, words[:, None]], 1)


class Crosses(torch.nn.Module):
    """Products of pairs of fields, and the distance of each field from the mean."""

    def __init__(self, fields: int) -> None:
        super().__init__()
        pairs = torch.triu_indices(fields, fields, 1)
        self.register_buffer("left", pairs[0])
        self.register_buffer("right", pairs[1])

    def forward(self, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        crosses = (vectors[:, self.left] * vectors[:, self.right]).sum(-1)
        middle = vectors.mean(1)
        nearness = torch.matmul(vectors, middle[:, :, None]).squeeze(-1)
        return crosses, nearness


class Heads(torch.nn.Module):
    """The chance of a click and the price that is paid."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(width, 128)
        self.click = torch.nn.Linear(128, 1)
        self.price = torch.nn.Linear(128, 1)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = F.gelu(self.inner(features))
        click, price = self.click(hidden).squeeze(-1), self.price(hidden).squeeze(-1)
        return torch.sigmoid(click), F.softplus(price)


class Page(torch.nn.Module):
    """The best of each page of things, and numbers about the page."""

    def __init__(self, length: int, shown: int) -> None:
        super().__init__()
        self.length, self.shown = length, shown

    def forward(self, click: torch.Tensor, price: torch.Tensor) -> dict[str, torch.Tensor]:
        value = (click * price).view(-1, self.length)
        best, order = value.topk(self.shown, -1)
        middle = value.median(-1).values
        falling = 1 / torch.log2(torch.arange(2, self.shown + 2, device=value.device))
        gain = (best * falling).sum(-1)
        ideal = value.sort(-1).values[:, -self.shown :].sum(-1)
        rank = torch.searchsorted(value.cumsum(-1).contiguous(), value.sum(-1, keepdim=True) / 2)
        return {"best": best, "order": order, "gain": gain / (ideal + 1e-6), "half": rank, "middle": middle}


class Ranker(torch.nn.Module):
    def __init__(self, fields: int = 15, width: int = 16) -> None:
        super().__init__()
        self.tables, self.crosses = Tables(5000, width, fields), Crosses(fields + 1)
        self.heads, self.page = Heads((fields + 1) * (fields + 2) // 2), Page(64, 8)

    def forward(self, values: torch.Tensor, bag: torch.Tensor) -> dict[str, torch.Tensor]:
        vectors = self.tables(values, bag)
        crosses, nearness = self.crosses(vectors)
        features = torch.cat([crosses, nearness], -1)
        click, price = self.heads(F.layer_norm(features, features.shape[-1:]))
        return {"click": click, "price": price, **self.page(click, price)}


def make() -> torch.nn.Module:
    return Ranker().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    rows = []
    for n in range(2):
        generator = torch.Generator().manual_seed(seed + n)
        values = torch.randint(0, 10**6, (1024, 15), generator=generator)
        rows.append((values, torch.randint(0, 5000, (1024, 12), generator=generator)))
    return rows
