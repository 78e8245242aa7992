"""Joints of a body from the output of a network: rotations, positions along the limbs, errors."""

import torch
import torch.nn.functional as F

TARGET = "h100"
LIMITS = {"graphs": 1, "breaks": 0, "device_launches": 21, "device_bytes": 4571600}

LIMBS = [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15)]


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def matrix_of_two_vectors(six: torch.Tensor) -> torch.Tensor:
    """Return rotations of which six numbers give the first two axes."""
    first = F.normalize(six[..., :3], dim=-1)
    second = six[..., 3:] - (first * six[..., 3:]).sum(-1, keepdim=True) * first
    second = F.normalize(second, dim=-1)
    return torch.stack([first, second, torch.linalg.cross(first, second)], -2)


def turned(points: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Return points of each body, turned by its quaternion."""
    w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
    cells = [
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    ]
    return torch.einsum("bij,bnj->bni", torch.stack(cells, -1).view(-1, 3, 3), points)


class Chain(torch.nn.Module):
    """Positions of the joints of a limb, each in the frame of the one before."""

    def __init__(self, joints: tuple[int, ...]) -> None:
        super().__init__()
        self.joints = list(joints)
        self.bones = torch.nn.Parameter(0.3 * torch.randn(len(joints), 3))

    def forward(self, turns: torch.Tensor) -> torch.Tensor:
        place, frame, places = 0.0, None, []
        for n, joint in enumerate(self.joints):
            turn = turns[:, joint]
            frame = turn if frame is None else frame @ turn
            place = place + torch.einsum("bij,j->bi", frame, self.bones[n])
            places.append(place)
        return torch.stack(places, 1)


class Errors(torch.nn.Module):
    """How far the body is from what a camera saw."""

    def forward(
        self, joints: torch.Tensor, seen: torch.Tensor, shown: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        far = (joints - seen).square().sum(-1).sqrt()
        near = torch.cdist(joints, seen).amin(-1)
        weight = shown.cumprod(-1).clamp(min=0.1)
        worst = far.topk(3, -1).values.mean(-1)
        middle = far.median(-1).values
        error = (far * weight).sum(-1) / weight.sum(-1)
        return {"error": error, "near": near.mean(-1), "worst": worst, "middle": middle}


class Body(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.chains = torch.nn.ModuleList(Chain(one) for one in LIMBS)
        self.errors = Errors()

    def forward(
        self,
        six: torch.Tensor,
        root: torch.Tensor,
        shift: torch.Tensor,
        seen: torch.Tensor,
        shown: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        turns = matrix_of_two_vectors(six)
        limbs = torch.cat([chain(turns) for chain in self.chains], 1)
        joints = turned(limbs, root) + shift[:, None]
        return {"joints": joints, **self.errors(joints, seen, shown)}


def make() -> torch.nn.Module:
    return Body().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [
        (
            rand(seed + n, 512, 16, 6),
            rand(seed + n + 50, 512, 4),
            rand(seed + n + 60, 512, 3),
            rand(seed + n + 70, 512, 16, 3),
            torch.sigmoid(rand(seed + n + 80, 512, 16) + 3),
        )
        for n in range(2)
    ]
