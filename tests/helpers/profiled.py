"""Profiles a program in its own process, and writes its capture, the program and the trace to a folder.

python profiled.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch._inductor.config
from torch.profiler import ProfilerActivity, profile

import compile_lens


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(8, 16)
        self.b = torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(self.b(torch.relu(self.a(x))).sin(), -1)
        return (y @ y.t()).sum()


def other(x: torch.Tensor) -> torch.Tensor:
    return x.exp().sum(-1)


def main() -> None:
    folder = Path(sys.argv[1])
    torch.manual_seed(0)
    model, x = Net(), torch.rand(4, 8)
    with torch._inductor.config.patch({"cpp.enable_kernel_profile": "marked" in sys.argv}):
        with compile_lens.watch() as program:
            compiled, compiled_other = torch.compile(model), torch.compile(other)
            compiled(x).backward()
            compiled_other(x)
            with profile(activities=[ProfilerActivity.CPU]) as profiler:
                for _ in range(3):
                    compiled(x).backward()
                    compiled_other(x)
        profiler.export_chrome_trace(str(folder / "trace.json"))
        program.join(folder / "trace.json").save(folder / "program.json")
        program.save(folder / "alone.json")
    compile_lens.capture(model, x).save(folder / "capture.json")


if __name__ == "__main__":
    main()
