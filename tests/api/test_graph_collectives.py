"""Collectives of a graph, against torch's own log of the AOT graph in another process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

PROGRAM = """
import sys, torch, torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("fake", rank=1, world_size=4, store=FakeStore())
mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

def layers(backend, train):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    with torch.set_grad_enabled(train):
        return torch.compile(model, backend=backend)(torch.ones(4, 8, requires_grad=train))

def redistributed(backend, train):
    def function(x):
        y = x.redistribute(placements=[Replicate()])
        return (y * 2).redistribute(placements=[Shard(1)]).sin()
    x = distribute_tensor(torch.ones(4, 8), mesh["tp"], [Shard(0)])
    return torch.compile(function, backend=backend)(x)

def by_hand(backend, train):
    group = mesh["dp"].get_group()
    def function(x):
        y = fc.all_reduce(x, "sum", group)
        return fc.all_gather_tensor(y.sin(), 0, group)
    return torch.compile(function, backend=backend)(torch.ones(4))

def main(name, backend, train):
    globals()[name](backend, train)
"""
WATCHED = """
import compile_lens, json
with compile_lens.watch() as seen:
    main(*arguments)
record = seen.record
graphs = [[[one.name, one.arguments, list(one.group)] for one in g.collectives] for g in record.graphs]
issued = [name for one in record.issued if (name := one.collective.name) not in ("scatter", "broadcast", "new_group")]
lacks = record.lacks("the collectives of graphs")
open(sys.argv[1], "w").write(json.dumps([graphs, issued, lacks]))
"""


def run(folder: Path, name: str, backend: str, train: bool, lines: str) -> str:
    """Run a program, and return its output streams."""
    env = {**os.environ, "TORCH_LOGS": "aot_graphs", "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    command = [
        sys.executable,
        "-c",
        f"{PROGRAM}\narguments = {(name, backend, train)!r}\n{lines}",
        str(folder / "seen"),
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def logged(text: str) -> list[str]:
    """Collectives of the forward graphs that torch logs."""
    forwards = re.split(r"===== (?:Forward|Inference) graph", text)[1:]
    bodies = [one.partition("===== Backward graph")[0] for one in forwards]
    names = (re.findall(r"= torch\.ops\._c10d_functional\.(\w+)\.default", body) for body in bodies)
    return [name for own in names for name in own if name != "wait_tensor"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "train"), [("layers", True), ("layers", False), ("redistributed", False), ("by_hand", False)]
)
@pytest.mark.cases(full=1)
def test_the_collectives_of_a_graph_are_those_of_its_aot_forward(
    tmp_path: Path, name: str, train: bool
) -> None:
    plain = logged(run(tmp_path, name, "aot_eager", train, "main(*arguments)"))
    assert plain
    run(tmp_path, name, "aot_eager", train, WATCHED)
    graphs, issued, lacks = json.loads((tmp_path / "seen").read_text("utf-8"))
    assert [one for graph in graphs for one, _, _ in graph] == plain and not lacks
    assert len(issued) == len(plain), "each is issued once: nothing ran twice"
    group = [1, 3] if name == "by_hand" else [0, 1]
    assert all(ranks == group for graph in graphs for _, _, ranks in graph)


@pytest.mark.full
def test_what_aotautograd_did_not_trace_is_said_to_be_not_known(tmp_path: Path) -> None:
    run(tmp_path, "layers", "eager", False, WATCHED)
    graphs, issued, lacks = json.loads((tmp_path / "seen").read_text("utf-8"))
    assert graphs == [[]] and issued == ["all_reduce"] and "distributed tensors" in lacks
    run(tmp_path, "by_hand", "eager", False, WATCHED)
    graphs, issued, lacks = json.loads((tmp_path / "seen").read_text("utf-8"))
    assert len(graphs[0]) == len(issued) == 2 and not lacks, "Dynamo traced all"
