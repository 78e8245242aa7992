"""A solution."""

import torch
import torch.nn.functional as F

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
    # Cause 1: nine cells are stacked in memory for a library call; without a matrix all is one kernel.
    axis = torch.stack([x, y, z], -1)[:, None].expand_as(points)
    across = torch.linalg.cross(axis, points)
    return points + 2 * (w[:, None, None] * across + torch.linalg.cross(axis, across))


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
            # Cause 2: products of small matrices are library calls; as products and sums they are generated.
            frame = turn if frame is None else (frame[..., None] * turn[:, None]).sum(-2)
            place = place + (frame * self.bones[n]).sum(-1)
            places.append(place)
        return torch.stack(places, 1)


class Errors(torch.nn.Module):
    """How far the body is from what a camera saw."""

    def forward(
        self, joints: torch.Tensor, seen: torch.Tensor, shown: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        far = (joints - seen).square().sum(-1).sqrt()
        # Cause 3: cdist takes a matrix product from 26 points on, or a library call, whatever the width.
        near = (joints[:, :, None] - seen[:, None]).square().sum(-1).sqrt().amin(-1)
        weight = shown.cumprod(-1).clamp(min=0.1)
        # Cause 4: topk and median are library calls; a short sort is generated, and fuses.
        order = far.sort(-1).values
        worst, middle = order[:, -3:].mean(-1), order[:, (far.shape[-1] - 1) // 2]
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
