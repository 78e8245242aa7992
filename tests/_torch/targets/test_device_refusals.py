"""Library calls that the target's library refuses: the capture fails as the program does there.

From torch's source: ``addmm_out_cuda_impl`` and ``baddbmm_out_cuda_impl`` of ``cuda/Blas.cpp`` dispatch
over ``FLOATING_AND_COMPLEX_TYPES_AND2(Half, BFloat16)``; ``_int_mm_out_cuda`` there takes more than 16 rows, and
columns in eights; ``_scaled_mm_allowed_device`` of ``cuda/ScaledBlas.cpp`` requires a capability of 9.0 or 8.9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens import CaptureError
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(torch.accelerator.is_available(), reason="a device that is there answers by itself"),
]


def here(fn: Any, *args: Any, target: str = "h100", **more: Any) -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target, **more), model=resolve(target)))[0]


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b  # here


def added(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.addmm(c, a, b)  # here


def batched(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.baddbmm(c, a, b)  # here


def int_mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch._int_mm(a, b)  # here


def scaled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    one = torch.ones((), device=a.device)
    return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)  # here


def as_numpy(x: torch.Tensor) -> Any:
    return x.numpy() + 1  # here


def ones(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype)


def eighths(rows: int, columns: int) -> torch.Tensor:
    return torch.ones(rows, columns).to(torch.float8_e4m3fn)


INT8, INT32 = torch.int8, torch.int32
NO_FLOAT8 = (
    "torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9, or ROCm MI300+"
)
REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, str, str]] = {
    "int64": (product, (ones(4, 8), ones(8, 4)), "h100", "NotImplementedError", "addmm_cuda Long"),
    "int8": (product, (ones(4, 8, dtype=INT8), ones(8, 4, dtype=INT8)), "t4", "NotImplementedError", "addmm_cuda Char"),
    "addmm": (
        added,
        (ones(4, dtype=INT32), ones(4, 8, dtype=INT32), ones(8, 4, dtype=INT32)),
        "h100",
        "NotImplementedError",
        "addmm_cuda Int",
    ),
    "bmm": (product, (ones(2, 4, 8), ones(2, 8, 4)), "h100", "NotImplementedError", "baddbmm_cuda Long"),
    "baddbmm": (
        batched,
        (ones(2, 4, 4), ones(2, 4, 8), ones(2, 8, 4)),
        "h100",
        "NotImplementedError",
        "baddbmm_cuda Long",
    ),
    "16 rows": (
        int_mm,
        (ones(16, 64, dtype=INT8), ones(64, 64, dtype=INT8)),
        "h100",
        "RuntimeError",
        "self.size(0) needs to be greater than 16, but got 16",
    ),
    "12 columns": (
        int_mm,
        (ones(32, 64, dtype=INT8), ones(64, 12, dtype=INT8)),
        "h100",
        "RuntimeError",
        "mat2.size(1) needs to be greater than 0 and a multiple of 8, but got 12",
    ),
    "float8 on 8.0": (scaled, (eighths(32, 32), eighths(32, 32)), "a100", "RuntimeError", NO_FLOAT8),
    "float8 on 8.6": (scaled, (eighths(32, 32), eighths(32, 32)), "rtx3090", "RuntimeError", NO_FLOAT8),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_call_that_the_device_refuses_fails_as_there(case: str) -> None:
    fn, args, target, kind, said = REFUSED[case]
    if said.startswith(("addmm", "baddbmm")):
        name, dtype = said.split()
        said = f"\"{name}\" not implemented for '{dtype}'"
    with pytest.raises(CaptureError) as raised:
        here(fn, *args, target=target)
    failure = raised.value.capture.failure
    assert failure is not None
    assert (failure.stage, failure.type, failure.message) == ("run", kind, said)
    assert failure.frames[-1].text.endswith("# here")
    assert "rejects it at run time" in str(raised.value)
    assert "ran on the CPU" not in str(raised.value)
    assert any(k.language == "extern" for k in raised.value.capture.kernels)  # the code is still generated


RUNS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "float32": (product, (torch.ones(4, 8), torch.ones(8, 4)), "h100"),
    "complex": (product, (ones(4, 8, dtype=torch.complex64), ones(8, 4, dtype=torch.complex64)), "h100"),
    "a vector": (product, (ones(4, 8), ones(8)), "h100"),  # Inductor has its own kernel for it
    "nothing": (product, (ones(4, 0), ones(0, 4)), "h100"),
    "Metal": (
        product,
        (ones(4, 8), ones(8, 4)),
        "mps",
    ),  # ``LinearAlgebra.mm`` has a kernel for integers
    # Dynamo queries no device there, "as this allows us to execute NumPy code on CUDA" (``method_numpy``).
    "numpy": (as_numpy, (torch.ones(4),), "h100"),
    "17 rows": (int_mm, (ones(17, 64, dtype=INT8), ones(64, 64, dtype=INT8)), "h100"),
    "float8 on 8.9": (scaled, (eighths(32, 32), eighths(32, 32)), "l4"),
    "float8 on 9.0": (scaled, (eighths(32, 32), eighths(32, 32)), "h100"),
}


@pytest.mark.parametrize("case", RUNS)
def test_one_that_runs_there_is_captured(case: str) -> None:
    fn, args, target = RUNS[case]
    found = here(fn, *args, target=target)
    assert found.failure is None and found.kernels


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float8_e5m2])
def test_types_are_named_as_torchs_macro_names_them(dtype: torch.dtype) -> None:
    """The CPU's kernels use the same macro."""
    with pytest.raises(NotImplementedError) as raised:
        torch.geqrf(torch.ones(4, 4).to(dtype))
    name = str(raised.value).rpartition("not implemented for ")[2]
    with pytest.raises(CaptureError) as refused:
        here(product, torch.ones(4, 8).to(dtype), torch.ones(8, 4).to(dtype))
    assert f'"addmm_cuda" not implemented for {name}' in str(refused.value)


def test_where_templates_compete_one_stands_for_it() -> None:
    """Torch counts a choice that raises as infinitely slow (``AlgorithmSelectorCache.benchmark_choices``)."""
    pytest.importorskip("triton")
    args = ones(8, 64, dtype=INT8), ones(64, 64, dtype=INT8)
    found = here(int_mm, *args, mode="max-autotune")
    assert [k.language for k in found.kernels] == ["triton"]
    (contest,) = found.autotuning
    assert contest.choices[contest.in_code].language == "triton"
    assert "extern_kernels._int_mm" in [one.name for one in contest.choices]


def branched(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda a: a @ a, lambda a: a + 1, (a,))  # here


def test_in_a_branch_it_is_said() -> None:
    with torch.no_grad():
        found = here(branched, -torch.ones(4), ones(4, 4))
    assert found.target is not None
    (one,) = found.target.queries
    assert one.kind == "called" and "\"addmm_cuda\" not implemented for 'Long'" in one.answer
    assert one.frame.text.endswith("# here")


def test_a_comparison_has_it_as_a_column() -> None:
    both = compile_lens.compare(product, ones(4, 8), ones(8, 4), targets=["cpu", "h100"])
    there = both.columns[1]
    assert "\"addmm_cuda\" not implemented for 'Long'" in there.failure and both.columns[0].failure == ""


def moved(x: torch.Tensor) -> torch.Tensor:
    return x.to("cuda:1") + 1  # here


def counted(x: torch.Tensor) -> torch.Tensor:
    last = (
        torch.cuda.device_count() - 1
    )  # Dynamo skips the frame here: the eager `x.to` then also contains the move
    return x.to(f"cuda:{last}") + 1


@pytest.mark.full
def test_there_is_no_second_device() -> None:
    """The answer agrees with the device count in the same function."""
    with pytest.raises(CaptureError, match="invalid device ordinal") as raised:
        here(moved, torch.ones(4))
    failure = raised.value.capture.failure
    assert failure is not None and failure.stage == "run" and failure.frames[-1].text.endswith("# here")
    assert here(counted, torch.ones(4)).failure is None


def narrow(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float8_e4m3fn).to(torch.float32) * 2


def test_float8_on_metal_is_said() -> None:
    """Inductor's table of Metal types (``DTYPE_TO_METAL``) has none."""
    from torch._inductor.codegen.mps import DTYPE_TO_METAL

    if torch.float8_e4m3fn in DTYPE_TO_METAL:
        pytest.skip("this torch writes Metal with float8")
    with pytest.raises(
        CaptureError, match="Inductor generates no Metal with float8: compute in float16 or float32"
    ):
        here(narrow, torch.ones(4), target="mps")
