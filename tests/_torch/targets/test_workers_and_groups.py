"""Captures for a target from multiprocessing workers, and of objects that have a process group.

The oracle is the same capture in its own process, and the capture for the CPU in the same process.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.full]

WORKERS = """
import multiprocessing, sys
import torch, compile_lens

SCALE = 3.0

def helper(x):
    return x + 1

def function(x):
    return helper(x.sin()) * SCALE

class Module(torch.nn.Module):
    def forward(self, x):
        return helper(x).cos()

def broken(x):
    y = helper(x)
    torch._dynamo.graph_break()
    return y * SCALE

def captured():
    texts = []
    for one in (function, Module(), broken, lambda x: helper(x)):
        seen = compile_lens.capture(one, torch.ones(8), target="h100")
        texts.append([k.source for k in seen.kernels])
    return texts

def work(queue):
    queue.put(captured())

if __name__ == "__main__":
    here = captured()
    assert all(here)
    for method in sys.argv[1:] or ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        assert queue.get(timeout=200) == here, method
        worker.join()
    print("done")
"""

GROUPS = """
import torch, compile_lens
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.b(self.a(x).relu())

distributed.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
model = DistributedDataParallel(Two())

def step(x):
    y = model(x).sin()
    return y * distributed.get_rank() + distributed.get_world_size()

def alone(x):
    return x.sin() * distributed.get_rank()

for function in (model, step, alone):
    here = compile_lens.capture(function, torch.ones(4, 8))
    there = compile_lens.capture(function, torch.ones(4, 8), target="h100")
    assert [c.function for c in here.compilations] == [c.function for c in there.compilations]
    dynamo = [
        [[n.target for n in c.graphs["dynamo"].calls] for c in s.compilations if "dynamo" in c.graphs]
        for s in (here, there)
    ]
    assert dynamo[0] == dynamo[1] != [] and there.kernels
    assert any("has no other processes here" in text for text in there.target.may_differ)
assert distributed.get_backend() == "fake" and distributed.get_world_size() == 4
distributed.destroy_process_group()
plain = compile_lens.capture(torch.sin, torch.ones(4), target="h100")
assert not any("processes" in text for text in plain.target.may_differ)
print("done")
"""


@pytest.mark.exhaustive
def test_a_function_of_the_script_crosses_from_a_worker(child: Callable[..., str]) -> None:
    assert child(WORKERS).split() == ["done"]


def test_what_holds_a_process_group_crosses(child: Callable[..., str]) -> None:
    assert child(GROUPS).split()[-1] == "done"
