"""Reported differences due to timing or the number of multiprocessors are those that can occur: the oracle is torch's
own functions in another process."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

PADDED, SPLIT = "whether matrices are padded", "whether and how a reduction is split"

PRODUCTS = {
    "aligned": ((64, 128), (128, 256), "float32"),
    "aligned halves": ((64, 128), (128, 256), "bfloat16"),
    "odd": ((2047, 2047), (2047, 2047), "float32"),
    "of four": ((2044, 2044), (2044, 2044), "float32"),
    "of four, halves": ((2044, 2044), (2044, 2044), "float16"),
    "odd doubles": ((2047, 2047), (2047, 2047), "float64"),
    "vector": ((1, 128), (128, 256), "float32"),
    "batched": ((4, 511, 2047), (4, 2047, 1023), "float32"),
}

REDUCTIONS: dict[str, tuple[tuple[int, ...], int]] = {
    "ten": ((10,), 0),
    "million": ((1_000_000,), 0),
    "twenty million": ((20_000_000,), 0),
    "long rows": ((64, 65_536), 1),
    "longer rows": ((64, 655_360), 1),
    "many rows": ((40_960, 1024), 1),
    "columns": ((65_536, 64), 0),
    "longer columns": ((655_360, 64), 0),
}

BY_TORCH = """
import json, sys, torch
from torch._inductor.choices import InductorChoices
from torch._inductor.fx_passes import pad_mm
from torch._inductor.runtime.hints import DeviceProperties
def splits(shape, dim, count):
    found = DeviceProperties("cuda", 0, count, 90, 9, 65536, 2048, 1024, 32)
    DeviceProperties.create = staticmethod(lambda device: found)
    outer = torch.Size(shape).numel() // shape[dim]
    return InductorChoices().reduction_split_factor(torch.device("cuda"), shape[dim], outer, dim == len(shape) - 1)
def padded(left, right, dtype):
    size = pad_mm.get_alignment_size_dtype(getattr(torch, dtype))
    return any(pad_mm.get_padded_length(one, size) for one in (*left[-2:], right[-1]))
products, reductions = json.loads(sys.argv[1])
print(json.dumps([
    {name: padded(*given) for name, given in products.items()},
    {name: len({splits(*given, count) for count in (66, 132, 264)}) > 1 for name, given in reductions.items()},
]))
"""


@functools.cache
def by_torch() -> list[dict[str, bool]]:
    command = [sys.executable, "-c", BY_TORCH, json.dumps([PRODUCTS, REDUCTIONS])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, bool]] = json.loads(done.stdout)
    assert {True, False} == set(found[0].values()) == set(found[1].values())
    return found


def as_there(fn: Callable[..., Any], *args: Any, **asked: Any) -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target="h100", **asked), model=resolve("h100")))[
        0
    ]


def said(found: Capture, what: str) -> bool:
    return any(
        line.startswith(what)
        for c in found.compilations
        for code in c.code.values()
        for line in code.may_differ
    )


@pytest.mark.full
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.cases(full=4)
def test_padding_is_said_where_torch_would_pad(name: str) -> None:
    left, right, dtype = PRODUCTS[name]
    matrices = [torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for shape in (left, right)]
    found = as_there(torch.matmul, *matrices)
    assert [k.kind for k in found.kernels] == ["extern"] or name == "vector"
    assert said(found, PADDED) == by_torch()[0][name]


def test_a_small_product_may_be_padded_as_well() -> None:
    """An H100 with torch 2.11 padded this one, which has two rows."""
    left, right = (torch.empty(n, 32, dtype=torch.bfloat16, device="meta") for n in (2, 32))
    assert said(as_there(torch.matmul, left, right), PADDED)


@pytest.mark.parametrize("backend", [{"shape_padding": False}, {"force_shape_pad": True}])
def test_what_the_program_decided_is_not_timed(backend: dict[str, bool]) -> None:
    """With force, torch pads without timing (``pad_mm._should_pad``), following plain torch's rule."""
    x = torch.empty(2047, 2047, device="meta")
    found = as_there(torch.matmul, x, x, options=backend)
    assert not said(found, PADDED)
    padded = any(
        "constant_pad_nd" in n.target for n in found.compilations[0].graphs["inference.post_grad"].calls
    )
    assert padded == ("force_shape_pad" in backend)


@pytest.mark.full
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_split_is_said_where_the_count_decides_it(name: str) -> None:
    shape, dim = REDUCTIONS[name]
    found = as_there(lambda x: x.sum(dim), torch.empty(shape, device="meta"))
    assert {k.kind for k in found.kernels} == {"reduction"}
    assert said(found, SPLIT) == by_torch()[1][name]


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (lambda x: x.cumsum(0), (1000,)),
        (lambda x: x.sort()[0], (8, 100)),
        (lambda x: x.argmax(1), (64, 655_360)),  # ``num_splits`` lists it among those that are never split
        (lambda x: x.softmax(1), (40_960, 1024)),
    ],
    ids=["scan", "sort", "argmax", "softmax"],
)
def test_what_is_never_split_has_no_such_line(fn: Callable[..., Any], shape: tuple[int, ...]) -> None:
    found = as_there(fn, torch.empty(shape, device="meta"))
    assert found.kernels and not said(found, SPLIT)


def test_of_two_phases_each_has_its_own() -> None:
    x = torch.empty(2_000_000, 8, device="meta", requires_grad=True)
    found = as_there(lambda x, y: (x * y).sum(1).sin(), x, torch.empty(8, device="meta", requires_grad=True))
    (compilation,) = found.compilations
    lines = {
        phase: any(line.startswith(SPLIT) for line in code.may_differ)
        for phase, code in compilation.code.items()
    }
    assert lines == {"forward": False, "backward": True}


VECTOR_PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], torch.dtype, Callable[..., Any]]] = {
    "one row": ((1, 64), (64, 32), torch.float32, lambda x, w: (x @ w).relu()),
    "one column": ((16, 64), (64, 1), torch.bfloat16, torch.matmul),
    "batched": ((4, 1, 64), (4, 64, 32), torch.float32, torch.bmm),
    "several rows": ((16, 64), (64, 32), torch.float32, torch.matmul),
    "int8 weight": ((1, 64), (32, 64), torch.int8, lambda x, w: x.bfloat16() @ w.t().bfloat16()),
}


@pytest.mark.cases(full=3)
@pytest.mark.parametrize("name", VECTOR_PRODUCTS)
def test_coordinate_descent_decides_which_products_are_generated(name: str) -> None:
    """With it, Inductor's decomposition generates a product of one row or column, and calls a library otherwise."""
    left, right, dtype, fn = VECTOR_PRODUCTS[name]
    tensors = [torch.ones(shape, dtype=dtype) for shape in (left, right)]
    tuned = as_there(fn, *tensors, options={"coordinate_descent_tuning": True})
    with torch._inductor.config.patch(coordinate_descent_tuning=True):
        by_setting = as_there(fn, *tensors)
    plain = as_there(fn, *tensors)
    assert any(k.kind == "extern" for k in plain.kernels)
    assert any(k.kind == "extern" for k in tuned.kernels) == (name == "several rows")
    assert [k.source for k in by_setting.kernels] == [k.source for k in tuned.kernels]
    assert tuned.target is not None and plain.target is not None
    assert any("coordinate descent" in line for line in tuned.target.may_differ)
    assert not any("coordinate descent" in line for line in plain.target.may_differ)
