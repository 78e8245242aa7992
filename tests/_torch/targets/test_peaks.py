"""Peak memory of a training step, against the allocator of a real H100 (torch 2.11.0, CUDA 13.0).

Plain ``torch.compile`` ran two steps there; the figures are ``max_memory_allocated`` of a third one, less the memory
allocated before it, plus the bytes of the inputs and the parameters. The result, which the caller keeps, is subtracted
if the backward does not read it. Libraries used no workspace in these programs.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from device_programs import programs
from full_text import full

from compile_lens import capture
from compile_lens.measures.memory_budget import memory_budget

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

ALLOCATED = {
    "suite: softmax": 2_048_000,
    "suite: wide softmax": 51_200_512,
    "suite: layer norm": 1_586_176 - 128 * 768 * 4,
    "suite: attention by hand": 2_621_440 - 2 * 4 * 128 * 64 * 4,
    "suite: outer product": 2_105_344 - 512 * 512 * 4,
    "suite: matrix by vector": 2_105_344 - 512 * 4,
    "suite: mean square": 8_001_280,
    "models: MLP, bf16": 79_732_736 - 512 * 1024 * 2,
}
ROUNDED = 4 * 512
"""The allocator takes 512 bytes at the least, for each of a few small tensors."""


@pytest.mark.parametrize("name", ALLOCATED)
def test_a_step_needs_what_the_allocator_held(name: str) -> None:
    (program,) = [p for p in programs() if full(p) == name]
    fn, args = program.make("cpu")
    found: Any = capture(fn, *args, target="h100")
    (compilation,) = found.compilations
    needed = [
        there.needed_bytes for held in compilation.memory if (there := memory_budget(found, held)) is not None
    ]
    assert 0 <= ALLOCATED[name] - max(needed) <= ROUNDED


def test_there_are_programs_for_each_group() -> None:
    found = programs()
    assert len({full(p) for p in found}) == len(found) > 200
    for program in found[::40]:
        fn, args = program.make("cpu")
        assert callable(fn) and all(a.device.type == "cpu" for a in args if isinstance(a, torch.Tensor))
