"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Starts(torch.nn.Module):
    """When each job of a machine starts, if one follows the other."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.register_buffer("before", torch.tril(torch.ones(jobs, jobs), -1))

    def forward(self, length: torch.Tensor) -> torch.Tensor:
        # Cause 1: on this device a scan is a library call; a masked sum over few jobs is generated.
        return (length[:, None] * self.before).sum(-1)


class Slots(torch.nn.Module):
    """The slot of the day in which a time lies, and how full the slots are."""

    def __init__(self, slots: int, day: float) -> None:
        super().__init__()
        self.slots, self.day = slots, day
        self.register_buffer("edges", torch.linspace(0, day, slots + 1)[1:-1])

    def forward(self, start: torch.Tensor) -> torch.Tensor:
        return torch.bucketize(start, self.edges)

    def load(self, slot: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        inside = slot[..., None] == torch.arange(self.slots, device=slot.device)
        return (inside * length[..., None]).sum(1)


class Costs(torch.nn.Module):
    """Cost of a job on a machine: heat, tools, lateness."""

    def __init__(self, kinds: int) -> None:
        super().__init__()
        self.heat = torch.nn.Parameter(torch.rand(1, kinds))
        self.tools = torch.nn.Parameter(torch.rand(kinds))

    def forward(self, length: torch.Tensor, due: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
        flat = length.reshape(-1, 1)
        # Cause 2: a product over a dimension of one is a library call on this device, and no other.
        heat = flat * self.heat
        kinds = torch.softmax(heat + self.tools, -1)
        cost = (kinds * torch.log1p(heat)).sum(-1).view_as(length)
        return cost + F.softplus(end - due) + 0.1 * torch.erf(length)


class Waiting(torch.nn.Module):
    """The longest wait so far, and the job that is worst."""

    def forward(self, wait: torch.Tensor, cost: torch.Tensor) -> dict[str, torch.Tensor]:
        # Cause 3: topk is a library call also for one element; a maximum is generated.
        worst, index = cost.max(-1)
        spread = wait.std(-1) / (wait.mean(-1) + 1)
        return {
            "worst": worst,
            "index": index,
            "spread": spread,
            "norm": torch.linalg.vector_norm(cost, dim=-1),
        }


class Plan(torch.nn.Module):
    def __init__(self, jobs: int = 48) -> None:
        super().__init__()
        self.starts, self.slots, self.costs, self.waiting = (
            Starts(jobs),
            Slots(24, 60.0),
            Costs(12),
            Waiting(),
        )

    def forward(
        self, length: torch.Tensor, due: torch.Tensor, order: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        length = F.softplus(length.gather(-1, order))
        start = self.starts(length)
        slot = self.slots(start)
        cost = self.costs(length, due, start + length)
        idle = F.pad(start[:, 1:] - start[:, :-1] - length[:, :-1], (0, 1)).clamp(min=0)
        return {
            "start": start,
            "load": self.slots.load(slot, length),
            "idle": idle,
            **self.waiting(start, cost),
        }


def make() -> torch.nn.Module:
    return Plan().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    rows = []
    for n in range(2):
        order = rand(seed + n + 7, 256, 48).argsort(-1)
        rows.append((rand(seed + n, 256, 48), 30 + 10 * rand(seed + n + 3, 256, 48), order))
    return rows
