"""Settings of torch cross to the process that compiles for a target, also those that torch has no one word for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from compile_lens import capture
from compile_lens._torch.targets import torch_settings

pytestmark = pytest.mark.torch


def precisions() -> list[str]:
    return [
        torch.backends.fp32_precision,
        torch.backends.cuda.matmul.fp32_precision,
        torch.backends.cudnn.conv.fp32_precision,
        torch.backends.mkldnn.matmul.fp32_precision,
        torch.backends.mkldnn.conv.fp32_precision,
    ]


@pytest.fixture
def set_apart() -> Iterator[list[str]]:
    """Precisions of float32 for which torch has no one word: it raises when it is asked."""
    before = torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        yield precisions()
    finally:
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = before


def test_precisions_that_are_set_apart_are_put_in_place_and_back(set_apart: list[str]) -> None:
    with pytest.raises(RuntimeError):
        torch.get_float32_matmul_precision()
    settings, _ = torch_settings.snapshot()
    torch.backends.cuda.matmul.fp32_precision = torch.backends.mkldnn.matmul.fp32_precision = "none"
    before = precisions()
    assert before != set_apart
    with torch_settings.restored(settings):
        assert precisions() == set_apart
    assert precisions() == before and torch.get_float32_matmul_precision() == "highest"


def test_one_word_is_put_in_place_and_back() -> None:
    before = precisions()
    # The word sets these two, to ``ieee`` where it is put back: what another test left is none of this one's.
    own = torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision
    torch.set_float32_matmul_precision("high")
    try:
        there = precisions()
        settings, _ = torch_settings.snapshot()
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = own
    assert precisions() == before
    with torch_settings.restored(settings):
        assert precisions() == there and torch.get_float32_matmul_precision() == "high"
    assert precisions() == before and torch.get_float32_matmul_precision() == "highest"


def test_a_capture_for_a_target_with_precisions_set_apart(set_apart: list[str]) -> None:
    found = capture(lambda x: (x @ x).relu(), torch.rand(16, 16), target="h100")
    assert found.kernels and precisions() == set_apart
