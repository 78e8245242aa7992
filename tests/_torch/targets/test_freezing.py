"""Weights that Inductor would freeze are on an absent device: the code takes them, and the record says so."""

from __future__ import annotations

import pytest
import torch
import torch._inductor.config as config

from compile_lens import capture
from compile_lens.views.words import stamp

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


@pytest.mark.parametrize("wish", ["setting", "option"])
def test_freezing_is_left_out_and_said(wish: str) -> None:
    """A batch norm with frozen weights would mix them with those on the CPU."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8)).eval()
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        plain = capture(model, x, target="h100")
        with config.patch(freezing=wish == "setting"):
            frozen = capture(
                model, x, target="h100", options={"freezing": True} if wish == "option" else None
            )
    assert [k.source for k in frozen.kernels] == [k.source for k in plain.kernels]
    assert frozen.target is not None and plain.target is not None
    said = " ".join(stamp.of_target(frozen.target))
    assert "freezing computes with the weights on the device" in said
    assert not any("freezing" in words for words in stamp.of_target(plain.target))


def test_with_a_gradient_nothing_is_frozen() -> None:
    """``compile_fx`` has the same condition."""
    model = torch.nn.Linear(4, 4)
    with config.patch(freezing=True):
        found = capture(model, torch.randn(2, 4), target="h100", backward=False)
    assert found.target is not None and not any("freezing" in words for words in found.target.may_differ)
