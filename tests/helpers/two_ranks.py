"""A program of two ranks for torchrun; each writes what it did, without compile_lens, for tests to compare.

``same`` is DDP and two collectives; with ``shape`` rank 1 calls one function with another size, with ``order`` rank 1
calls its collectives in the opposite order, so both wait until gloo times out.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.nn as nn


def reduced(x: torch.Tensor) -> torch.Tensor:
    return fc.all_reduce(x.sin(), "sum", dist.group.WORLD).cos()


def gathered(x: torch.Tensor) -> torch.Tensor:
    return fc.all_gather_tensor(x * 2, 0, dist.group.WORLD).relu()


def local(x: torch.Tensor) -> torch.Tensor:
    return x.tan() + 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def main(how: str, folder: Path) -> None:
    if not dist.is_initialized():
        timeout = datetime.timedelta(seconds=4 if how == "order" else 300)
        dist.init_process_group("gloo", timeout=timeout)
    rank = dist.get_rank()
    handed: list[list[str]] = []
    sizes: list[list[int]] = []

    def noting(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        """Record the graphs and parameter sizes that Dynamo passes to this backend."""
        targets = [str(n.target) for n in gm.graph.nodes if "c10d" in str(n.target)]
        handed.append([t.split(".")[1] for t in targets if "wait" not in t])
        sizes.append([x.numel() * x.element_size() for x in inputs if isinstance(x, nn.Parameter)])
        return gm.forward

    one, other = torch.compile(reduced, backend=noting), torch.compile(gathered, backend=noting)
    for call in (one, other) if how != "order" or rank == 0 else (other, one):
        with contextlib.suppress(*([RuntimeError] if how == "order" else [])):
            call(torch.ones(8))
    torch.compile(local, backend=noting)(torch.ones(9 if how == "shape" and rank == 1 else 8))
    if how == "same":
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=2)
        before = len(sizes)
        torch.compile(model, backend=noting)(torch.ones(4, 512)).sum().backward()
        pieces = sizes[before:]
    else:
        pieces = []
    (folder / f"told{rank}.json").write_text(json.dumps({"handed": handed, "pieces": pieces}))
    dist.destroy_process_group()


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    main(sys.argv[1], Path(sys.argv[2]))
