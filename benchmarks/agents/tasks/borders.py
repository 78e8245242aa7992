"""Losses and measures of a network that draws borders in pictures of cells."""

import torch
import torch.nn.functional as F

TARGET = "h100"
LIMITS = {"graphs": 1, "breaks": 0, "device_launches": 13, "device_bytes": 14909600}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Confusion(torch.nn.Module):
    """Counts of each class taken for each other, and what follows from them."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, best: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        pairs = (labels * self.classes + best).flatten()
        counts = torch.zeros(self.classes**2, dtype=torch.int64, device=pairs.device)
        counts = counts.index_add(0, pairs, torch.ones_like(pairs)).view(self.classes, -1).float()
        hits = counts.diagonal()
        union = counts.sum(0) + counts.sum(1) - hits
        return {"overlap": hits / (union + 1), "right": hits.sum() / counts.sum()}


class Dice(torch.nn.Module):
    """The overlap of chances and labels, for each class."""

    def forward(self, chances: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        classes = chances.shape[1]
        wanted = F.one_hot(labels, classes).movedim(-1, 1).to(chances.dtype)
        both = (chances * wanted).sum(-1).sum(-1)
        size = (chances + wanted).sum(-1).sum(-1)
        return 1 - ((2 * both + 1) / (size + 1)).mean()


class Hard(torch.nn.Module):
    """The loss of each place, and of the hardest rows of each picture."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        each = F.cross_entropy(logits, labels, reduction="none", label_smoothing=0.05)
        rows = each.mean(-1)
        loss = each.mean()
        steps = rows.cumsum(-1) / rows.sum(-1, keepdim=True)
        hardest = rows.topk(self.rows, -1).values.mean(-1)
        return {"loss": loss, "steps": steps[:, 7::8], "hardest": hardest}


class Rim(torch.nn.Module):
    """Borders of the labels, thick enough to be seen, and how sharp the chances are there."""

    def forward(self, chances: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        shown = labels[:, None].float()
        high = F.max_pool2d(shown, 3, 1, 1)
        low = -F.max_pool2d(-shown, 3, 1, 1)
        rim = (high != low).squeeze(1)
        sharp = chances.sort(1).values
        sharp = sharp[:, -1] - sharp[:, -2]
        return torch.where(rim, sharp, 0.0).sum(-1) / rim.sum(-1).clamp(min=1)


class Measures(torch.nn.Module):
    def __init__(self, classes: int = 8) -> None:
        super().__init__()
        self.confusion, self.dice, self.hard, self.rim = Confusion(classes), Dice(), Hard(16), Rim()
        self.register_buffer("scale", torch.linspace(0.8, 1.2, classes).view(-1, 1, 1))

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = logits * self.scale + torch.tensor(0.1, device=logits.device)
        chances = logits.softmax(1)
        out = {"dice": self.dice(chances, labels), "rim": self.rim(chances, labels)}
        return {**out, **self.hard(logits, labels), **self.confusion(logits.argmax(1), labels)}


def make() -> torch.nn.Module:
    return Measures().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    rows = []
    for n in range(2):
        generator = torch.Generator().manual_seed(seed + n)
        rows.append((rand(seed + n, 4, 8, 128, 128), torch.randint(0, 8, (4, 128, 128), generator=generator)))
    return rows
