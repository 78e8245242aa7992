"""Results of functional collectives: eager PyTorch returns a wrapper that waits, compiled code a plain tensor."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import torch

from compile_lens.trials.observation import _direction, aliases
from compile_lens.trials.snapshot import Snapshot

pytestmark = pytest.mark.torch


def pending(tensor: torch.Tensor) -> Any:
    """The result of a completed collective."""
    from torch.distributed._functional_collectives import AsyncCollectiveTensor

    wrapper = AsyncCollectiveTensor(tensor)
    wrapper.completed = True
    return wrapper


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed package")
def test_a_pending_result_is_looked_at_as_what_it_gives() -> None:
    plain = torch.rand(3, 4)
    wrapper = pending(plain)
    first = Snapshot.of(wrapper)
    assert (first.kind, [name for name, _ in first.parts]) == ("Tensor", [""])
    assert torch.equal(first.parts[0][1], plain) and first.is_of(wrapper) is True
    assert first.is_of(pending(plain + 1)) is False
    assert torch.equal(_direction("result", wrapper), _direction("result", plain))
    both = [("result[0]", plain), ("result[1]", plain.view(-1))]
    assert aliases([(n, pending(x)) for n, x in both], []) == aliases(both, []) != {}


PROGRAM = """
import json, sys, torch, torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
import compile_lens

dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
group = dist.group.WORLD

def gathered(x):
    y = fc.all_gather_tensor(x.cos(), 0, group)[:4]
    return {"y": y, "view": y.view(-1)}

def both(x):
    return fc.all_reduce(x.sin(), "sum", group), x + 1

def wrong(x):
    y = fc.all_reduce(x.sin(), "sum", group)
    return y + 1 if torch.compiler.is_compiling() else y

model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
verdicts = {}
for name, fn in {"gathered": gathered, "both": both, "wrong": wrong, "model": model}.items():
    x = torch.rand(4, 8, requires_grad=name == "both")
    verdicts[name] = compile_lens.capture(fn, x).verify(fn, x).verdict
print(json.dumps(verdicts))
"""


@pytest.mark.full
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed package")
def test_results_of_collectives_are_compared() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    verdicts = json.loads(done.stdout.splitlines()[-1])
    assert verdicts == {"gathered": "agrees", "both": "agrees", "wrong": "DISAGREES", "model": "agrees"}
