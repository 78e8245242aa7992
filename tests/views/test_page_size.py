"""Bounds the page size of a small capture, which a notebook stores for each cell that shows one."""

from __future__ import annotations

import pytest
import torch
import torch._inductor.config
import torch._inductor.cpu_vec_isa as cpu_vec_isa

from compile_lens import capture
from compile_lens.views.live.page import fragment

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


@pytest.mark.parametrize("width", (256, 512))
def test_a_cell_of_sin_and_cos_is_small(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    # The same on every machine, since nothing is built. With 512 bits, 1000 elements have a tail: 3 kB more of code.
    vectors = {256: cpu_vec_isa.VecAVX2, 512: cpu_vec_isa.VecAVX512}[width]()
    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", lambda: [vectors])
    record = capture(f, torch.rand(1000, requires_grad=True))
    assert {"forward", "backward"} <= set(record.code)
    assert all(f"static_cast<int64_t>({width // 32}L)" in code for code in record.code.values())
    assert len(fragment(record).encode()) < 180_000
