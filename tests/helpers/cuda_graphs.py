"""Prints torch's own log of CUDA graphs during captures for an H100; ``test_cuda_graphs.py`` runs it as a process.

Prints a line of JSON for each program: the capture's report, and torch's own log of the partitions that it makes of
the same scheduler. The log comes before that of the capture itself, which has CUDA graphs off.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys

import torch
import torch._inductor.config as config
from torch._inductor.scheduler import Scheduler

from compile_lens.devices import models
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.views.findings import findings


def clean(x):
    return torch.softmax(x.sin(), -1)


def item(x):
    n = x.sum().to(torch.int64).item()
    torch._check(n >= 0)
    return x.sin() @ x, torch.arange(n, device=x.device)


def dynamic(x):
    return (x.sin() + 1) @ x.t()


def mutated(x, y):
    x.add_(1)
    return x @ y


@torch.library.custom_op("of_test::unsafe", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def unsafe(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@unsafe.register_fake
def _(x):
    return torch.empty_like(x)


def incompatible(x):
    y = x.sin() @ x
    z = torch.ops.of_test.unsafe(y)
    return z @ x.cos()


def branch(x):
    y = x @ x
    return torch.cond(y.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (y,))


def moved(x):
    y = (x @ x).to("cpu") + 1
    return x.exp() @ x, y


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(16)

    def forward(self, x):
        return self.norm(x).relu()


def programs():
    x = torch.rand(16, 16)
    yield "clean", clean, (x,), {}
    yield "item", item, (x,), {}
    yield "dynamic", dynamic, (x,), {"dynamic": True}
    yield "mutated", mutated, (x.clone(), x), {}
    yield "incompatible", incompatible, (x,), {}
    yield "branch", branch, (x,), {}
    yield "moved", moved, (x,), {}
    yield "parameters", Norm(), (x,), {}


class Heard(logging.Handler):
    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def main():
    names = sys.argv[1:]
    torch._dynamo.config.capture_scalar_outputs = True
    torch._logging.set_logs(cudagraphs=True)
    heard = Heard()
    for module in ("scheduler", "cudagraph_utils"):
        logger = torch._logging.getArtifactLogger(f"torch._inductor.{module}", "cudagraphs")
        logger.addHandler(heard)
        logger.setLevel(logging.DEBUG)
    real = Scheduler.codegen

    def codegen(scheduler):
        from torch._inductor.virtualized import V

        if "cuda" in V.graph.device_types:
            with config.patch({"triton.cudagraphs": True}):
                kept = scheduler.nodes
                if config.triton.reorder_for_reducing_graph_partitions:
                    scheduler.nodes = scheduler.maybe_reorder_for_minimizing_partition(scheduler.nodes)
                    scheduler.nodes = scheduler.reorder_for_partition_with_simple_dependency(scheduler.nodes)
                scheduler.graph_partition()
                scheduler.nodes = kept
        return real(scheduler)

    Scheduler.codegen = codegen
    for name, function, args, options in programs():
        if names and name not in names:
            continue
        heard.lines.clear()
        torch.manual_seed(0)
        with config.patch({"triton.cudagraph_skip_dynamic_graphs": name == "dynamic"}):
            wanted = CaptureOptions(False, target="h100", **options)
            capture, _ = perform(Call.read(function, args, {}, wanted, model=models.resolve("h100")))
        graphs = [dataclasses.asdict(one) for c in capture.compilations for one in c.cuda_graphs]
        (finding,) = [f for f in findings(capture) if f.key == "cuda_graphs"] or [None]
        rows = [r.cells for s in finding.sections for r in getattr(s, "rows", ())] if finding else []
        print(json.dumps({"name": name, "made": graphs, "log": heard.lines, "rows": rows}), flush=True)


if __name__ == "__main__":
    main()
