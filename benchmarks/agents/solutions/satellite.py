"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Tiles(torch.nn.Module):
    """The middle brightness of each tile, and how often each brightness occurs in a picture."""

    def __init__(self, side: int, levels: int) -> None:
        super().__init__()
        self.side, self.levels = side, levels

    def middle(self, gray: torch.Tensor) -> torch.Tensor:
        tiles = gray.unfold(1, self.side, self.side).unfold(2, self.side, self.side).flatten(3)
        # Cause 1: the median is a library call; a sort of up to 512 elements is generated.
        return tiles.sort(-1).values[..., (self.side**2 - 1) // 2]

    def forward(self, gray: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        level = ((gray.clamp(-2, 2) + 2) * (self.levels - 1) / 4).long().flatten(1)
        # Cause 2: atomic sums of int64 are a library call, with ones made in memory; of float32 they are generated.
        counts = torch.zeros(gray.shape[0], self.levels, device=gray.device)
        counts = counts.scatter_add(1, level, torch.ones(level.shape, device=gray.device))
        return self.middle(gray), counts.cumsum(-1) / level.shape[1]


class Haze(torch.nn.Module):
    """The darkest of the colours around a place, smoothed, as the amount of haze."""

    def __init__(self, near: int, far: int) -> None:
        super().__init__()
        self.near, self.far = near, far

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        dark = -F.max_pool2d(-picture.amin(1, keepdim=True), self.near, 1, self.near // 2)
        # Cause 3: a pool of more than 25 elements is a library call; one along each axis is not.
        half = self.far // 2
        return F.avg_pool2d(F.avg_pool2d(dark, (self.far, 1), 1, (half, 0)), (1, self.far), 1, (0, half))


class Clouds(torch.nn.Module):
    """Pictures in equal light, by groups of colours, and a mask of what shines."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, picture: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        even = F.group_norm(picture, self.groups)
        shine = even.amax(1)
        return even, torch.where(shine > 1.5, shine, 0.0)


class Coarse(torch.nn.Module):
    """A coarse grid of any picture, warped as the camera moved."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, maps: torch.Tensor, grid: torch.Tensor) -> dict[str, torch.Tensor]:
        warped = F.grid_sample(maps, grid, align_corners=False)
        large = F.interpolate(maps[:, :1, ::4, ::4], scale_factor=2, mode="bicubic")
        small = F.adaptive_avg_pool2d(warped, self.side)
        return {"small": small, "large": large}


class Maps(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tiles, self.haze, self.clouds, self.coarse = Tiles(16, 64), Haze(5, 9), Clouds(2), Coarse(12)
        self.register_buffer("gray", torch.tensor([0.1, 0.3, 0.4, 0.2]).view(1, -1, 1, 1))

    def forward(self, picture: torch.Tensor, grid: torch.Tensor) -> dict[str, torch.Tensor]:
        even, shine = self.clouds(picture)
        middle, share = self.tiles((even * self.gray).sum(1))
        haze = self.haze(picture)
        maps = torch.cat([haze, shine[:, None]], 1)
        return {"maps": maps, "middle": middle, "share": share, **self.coarse(maps, grid)}


def make() -> torch.nn.Module:
    return Maps().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [
        (rand(seed + n, 4, 4, 128, 128), torch.tanh(rand(seed + n + 5, 4, 128, 128, 2))) for n in range(2)
    ]
