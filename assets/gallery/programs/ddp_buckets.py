"""DDP's buckets

DistributedDataParallel sends gradients in buckets while the backward still runs. So that it can, a graph is split where
a bucket ends: six layers of 1 MiB are one graph or six, by the size of a bucket alone.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512, bias=False) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def setup():
    """One process is group enough: it sends to itself."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def teardown():
    dist.destroy_process_group()


def cases():
    return {
        f"{megabytes} MB": (DistributedDataParallel(Net(), bucket_cap_mb=megabytes), [torch.rand(8, 512)], "")
        for megabytes in (25, 3, 2, 1)
    }


DRAWN = {}
