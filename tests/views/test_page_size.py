"""How large the page of a small capture is: what a notebook holds for each cell that shows one."""

from __future__ import annotations

import pytest
import torch

from compile_lens import capture
from compile_lens.views.html.page import fragment

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def test_a_cell_of_sin_and_cos_is_small() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    found = capture(f, torch.rand(1000, requires_grad=True))
    assert {"forward", "backward"} <= set(found.code)
    assert len(fragment(found).encode()) < 180_000
