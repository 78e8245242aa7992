"""Torch logs some errors before it raises them; a capture for a target reports each once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import compile_lens

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROGRAM = """
import logging, torch, compile_lens

def product(x):
    return torch.relu(x) @ x

def eighths(x):
    return x.to(torch.float8_e4m3fn).to(torch.float32) + 1

def raised(call):
    try:
        call()
    except compile_lens.CaptureError as error:
        print(error.capture.failure.stage, error.capture.failure.type)
    except compile_lens.UsageError as error:
        print("shapes cannot be multiplied" in str(error))

if __name__ == "__main__":
    x = torch.rand(8, 8)
    found = compile_lens.capture(product, x, target="h100")
    raised(lambda: found.verify(product, torch.rand(8, 9)))
    raised(lambda: compile_lens.capture(product, torch.rand(8, 9), target="h100"))
    raised(lambda: compile_lens.capture(eighths, x, target="mps"))
    logging.getLogger("torch._inductor.scheduler").critical("Error in codegen for %s", "another")
"""

PLAIN = """
import torch
try:
    torch.compile(lambda x: torch.relu(x) @ x)(torch.rand(8, 9))
except Exception:
    pass
"""


def ran(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"
    file.write_text(program)
    root = str(Path(compile_lens.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(file)],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.exhaustive
def test_an_error_that_is_raised_is_not_logged_as_well(tmp_path: Path) -> None:
    pytest.importorskip("triton")  # its interpreter raises the first of the errors as it runs the kernel
    done = ran(PROGRAM, tmp_path)
    assert done.stdout.splitlines() == ["True", "dynamo TorchRuntimeError", "inference.code KeyError"], (
        done.stderr
    )
    assert [line.rpartition("] ")[2] for line in done.stderr.splitlines()] == ["Error in codegen for another"]


def test_torch_itself_logs_it(tmp_path: Path) -> None:
    assert "failed while attempting to run meta for aten.mm.default" in ran(PLAIN, tmp_path).stderr
