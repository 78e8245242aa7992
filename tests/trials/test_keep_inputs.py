"""Temporary inputs: ``verify`` names the option that keeps them, and uses the kept ones."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from compile_lens import UsageError, capture

pytestmark = pytest.mark.torch


@pytest.mark.full
def test_inputs_that_are_gone_are_reported_with_the_option_that_keeps_them() -> None:
    record = capture(lambda x, *, y: x * y, torch.rand(4), kwargs={"y": torch.rand(4)})
    gc.collect()
    with pytest.raises(UsageError, match=r"is gone.*keep_inputs=True"):
        record.verify()


@pytest.mark.full
def test_kept_inputs_are_verified_and_go_with_the_capture() -> None:
    x = torch.rand(4)
    gone = weakref.ref(x)
    record = capture(lambda x, *, y: x.sin() * y[0], x, kwargs={"y": [torch.rand(4)]}, keep_inputs=True)
    del x
    gc.collect()
    assert gone() is not None and record.verify().ok is True
    del record
    gc.collect()
    assert gone() is None


@pytest.mark.full
def test_a_capture_keeps_no_inputs_by_itself() -> None:
    x = torch.rand(4)
    gone = weakref.ref(x)
    record = capture(lambda x: x.sin(), x)
    del x
    gc.collect()
    assert gone() is None and record.kernels


def test_the_option_is_checked() -> None:
    with pytest.raises(UsageError, match="keep_inputs"):
        capture(lambda x: x.sin(), torch.rand(4), keep_inputs="yes")  # type: ignore[arg-type]


@pytest.mark.exhaustive
def test_inputs_are_kept_of_a_capture_for_a_target() -> None:
    pytest.importorskip("triton")
    record = capture(lambda x: x.sin() * 2, torch.rand(4), target="h100", keep_inputs=True)
    gc.collect()
    assert record.verify().ok is True
