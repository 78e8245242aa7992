"""Errors of operators that only the CPU raises, where the captured graph runs: the target does not have its limits.

``svd`` takes ``driver=`` on CUDA only (``BatchLinearAlgebra.cpp``); an index out of range raises on the CPU,
and is a device-side assertion elsewhere.
"""

from __future__ import annotations

import pytest
import torch

from compile_lens import CaptureError, capture
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def values(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.svdvals(x, driver="gesvd") * 2


def taken(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return x[i]


def test_what_the_cpu_refuses_is_no_error_of_the_device() -> None:
    x = torch.randn(4, 4)
    with pytest.raises(RuntimeError, match="only supported on CUDA"):
        values(x)
    made, outcome = perform(
        Call.read(values, (x,), None, CaptureOptions(target="h100"), model=resolve("h100"))
    )
    assert made.failure is None and made.kernels and torch.equal(outcome.result, torch.zeros(4))
    assert made.target is not None
    (said,) = made.target.queries
    assert said.kind == "zeros" and "linalg_svdvals" in said.query and "only supported on CUDA" in said.answer
    assert said.frame is not None and said.frame.function == "values"


def test_an_error_of_the_program_is_said_to_be_raised_on_the_cpu() -> None:
    with pytest.raises(CaptureError, match="index 9 is out of bounds") as raised:
        capture(taken, torch.randn(4), torch.tensor([9]), target="h100", backward=False)
    words = " ".join(str(raised.value).split())
    assert (
        "The captured graph ran on the CPU, operator by operator: whether NVIDIA H100 SXM raises this too"
        in words
    )
