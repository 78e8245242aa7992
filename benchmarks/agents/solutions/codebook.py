"""A solution."""

import torch
import torch.nn.functional as F


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Codes(torch.nn.Module):
    """Codes in two tables: a table for the coarse part of a vector, another for what is left."""

    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.codes = codes
        self.coarse = torch.nn.Parameter(torch.randn(codes, width))
        self.fine = torch.nn.Parameter(0.3 * torch.randn(codes, width))

    def nearest(self, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        # Cause 1: cdist of many points is a product of matrices and six launches around it; of few numbers one will do.
        return (x[:, None] - table).square().sum(-1).argmin(-1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = self.nearest(x, self.coarse)
        rest = x - self.coarse[first]
        second = self.nearest(rest, self.fine)
        return first, second, self.coarse[first] + self.fine[second]


class Use(torch.nn.Module):
    """Evenness of the use of codes."""

    def __init__(self, codes: int) -> None:
        super().__init__()
        self.codes = codes

    def forward(self, codes: torch.Tensor) -> dict[str, torch.Tensor]:
        # Cause 2: one_hot checks its labels on the device and makes int64.
        counts = (codes[:, None] == torch.arange(self.codes, device=codes.device)).float().sum(0)
        share = counts / codes.shape[0]
        entropy = -(share * (share + 1e-9).log()).sum()
        ordered = share.sort(descending=True).values
        return {"perplexity": entropy.exp(), "curve": ordered.cumsum(0), "dead": (counts == 0).sum()}


class Losses(torch.nn.Module):
    """Loss that the codes leave, as a number for training and as numbers to look at."""

    def forward(self, x: torch.Tensor, quantized: torch.Tensor) -> dict[str, torch.Tensor]:
        off = x - quantized
        rows = off.square().sum(-1)
        # Cause 3: means over all elements at once read all of it again, and are split; means of rows are there already.
        smooth = torch.where(off.abs() < 1, 0.5 * off.square(), off.abs() - 0.5).sum(-1)
        loss = (rows.mean() + 0.25 * smooth.mean()) / x.shape[-1]
        length = x.square().sum(-1)
        ratio = 10 * (length.sum() / rows.sum()).log10()
        along = torch.bmm(x[:, None], quantized[:, :, None]).flatten()
        cosine = along / (length * quantized.square().sum(-1)).sqrt()
        return {"loss": loss, "ratio": ratio, "cosine": cosine.mean(), "worst": rows.max()}


class Quantizer(torch.nn.Module):
    def __init__(self, codes: int = 256, width: int = 8) -> None:
        super().__init__()
        self.codes, self.use, self.losses = Codes(codes, width), Use(codes), Losses()
        self.register_buffer("scale", torch.linspace(0.5, 1.5, width))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = F.layer_norm(x, x.shape[-1:]) * self.scale
        x = x.flatten(0, 1)
        first, second, quantized = self.codes(x)
        measures = {**self.use(first), **self.losses(x, quantized)}
        return {"codes": torch.stack([first, second], -1), "quantized": quantized, **measures}


def make() -> torch.nn.Module:
    return Quantizer().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    return [(rand(seed + n, 16, 256, 8),) for n in range(2)]
