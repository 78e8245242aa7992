"""How large the page of a small capture is: what a notebook holds for each cell that shows one."""

from __future__ import annotations

import pytest
import torch
import torch._inductor.config

from compile_lens import capture
from compile_lens.views.html.page import fragment

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def test_a_cell_of_sin_and_cos_is_small() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    # With vectors of 512 bits, 1000 elements leave a rest, whose code is 3 kB of the page: the same ones everywhere.
    with torch._inductor.config.patch({"cpp.simdlen": 256}):
        found = capture(f, torch.rand(1000, requires_grad=True))
    assert {"forward", "backward"} <= set(found.code)
    assert len(fragment(found).encode()) < 180_000
