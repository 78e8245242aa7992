"""Eager operators and their bytes, against plain eager PyTorch on real tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from eager_bytes import is_work
from eager_patterns import MODULES, PATTERNS, grad
from eager_sweep import PARTS, differences, entries, of_entry
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode

from compile_lens import capture, versions

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


@pytest.mark.full
@pytest.mark.cases(quick=3, full=10)
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_dispatches_and_moves_what_eager_pytorch_does(name: str) -> None:
    if name == "add_ with alpha" and versions.torch_version() < (2, 13):
        pytest.skip("Dynamo makes a product and a sum of it, and these are what counts")
    function, inputs = PATTERNS[name]
    torch.manual_seed(0)
    parameters = MODULES[name].parameters() if name in MODULES else ()
    assert differences(function, inputs(), {}, parameters) == ("", [])


@pytest.mark.parametrize("trains", [True, False])
@pytest.mark.parametrize("frozen", ["input", "weight", "input and weight"])
def test_the_backward_of_a_batch_norm_writes_the_gradients_that_are_wanted(frozen: str, trains: bool) -> None:
    """Eager PyTorch computes only the requested gradients; the reads of its kernels do not depend on them."""
    norm = torch.nn.BatchNorm2d(3).train(trains)
    norm.weight.requires_grad_("weight" not in frozen)  # type: ignore[union-attr]
    x = torch.rand(2, 3, 4, 4, requires_grad="input" not in frozen)
    writes = sum(4 * one.numel() for one in (x, norm.weight, norm.bias) if one.requires_grad)
    reads = 4 * (2 * x.numel() + 3 + 2 * 3)  # gradient and input; weight; mean and variance, saved or running
    row = next(row for row in capture(norm, x).ledger.rows if row.name == "backward")
    assert row.eager_bytes is not None and int(row.eager_bytes) == reads + writes


def rows_of_a_view(x: Any) -> Any:
    y = x.sin()
    rows = y[1:3]
    row = rows[0]
    rows.mul_(2)
    row.add_(1)
    return rows.exp(), row.sin(), y.cos()


def without_gradient(x: Any) -> Any:
    y = x.clone()
    turned = y.t()
    with torch.no_grad():
        y[0] = 0
    return turned.sin()


def read_twice(x: Any) -> Any:
    y = x.clone()
    flat = y.view(-1)
    flat[2:5] = 1.0
    return flat * 2 + flat.sin()


def complex_view(x: Any) -> Any:
    y = torch.complex(x, x)
    pairs = torch.view_as_real(y)
    pairs.mul_(2)
    return torch.view_as_complex(pairs).abs()


def expanded(x: Any) -> Any:
    y = x.clone()
    many = y.expand(3, *y.shape)
    y.mul_(2)
    return many * many


def columns(x: Any) -> Any:
    y = x.clone()
    every_second = y[:, ::2]
    every_second.zero_()
    every_second.add_(x[:, ::2])
    return every_second.sum()


@pytest.mark.parametrize(
    "function", [rows_of_a_view, without_gradient, read_twice, complex_view, expanded, columns]
)
def test_a_view_written_in_place_has_the_derivative_that_eager_pytorch_gives_it(
    function: Callable[..., Any],
) -> None:
    assert differences(function, (grad(4, 6),), {}) == ("", [])


SAMPLE = (
    "index_put",
    "linalg.det",
    "nn.functional.interpolate.bilinear",
    "nn.functional.max_pool2d",
    "nn.functional.nll_loss",
    "scatter_add",
    "sort",
)

DIFFER: dict[str, str] = {
    "istft": "DataDependentOutputException: aten.equal.default, which checks the window on real numbers",
    **{
        f"nn.functional.linear_cross_entropy.{variant}": "torch registers it as a custom operator (torch_nn): what it "
        "reads is not seen"
        for variant in ("chunked", "chunked_none")
    },
    "addcdiv": "with a value, handle_addcdiv of Dynamo decomposes it, to prevent a graph break",
    "nn.functional.embedding_bag torch.bfloat16": "is_fast_path_index_select of _meta_registrations.py knows float and "
    "half: it gives offset2bag elements where the CPU's kernel, which is as fast for bfloat16, leaves it empty",
}
"""Entries of OpInfo, or one type of an entry, whose eager operators or bytes differ, with the reason that torch
gives."""


def unlike(names: Sequence[str]) -> list[str]:
    """Differences between a capture and eager PyTorch for samples of OpInfo entries."""
    pytest.importorskip("expecttest", reason="torch's list of operators needs it: pip install expecttest")
    known = entries()
    rows = [
        row for name in names if name in known and name not in DIFFER for row in of_entry(name, known[name])
    ]
    assert any(not row["unlike"] for row in rows)
    differing = [(f"{r['name']} {r['dtype']}", r) for r in rows if r["rows"]]
    return [f"{name} {r['sample']}: {r['rows']}" for name, r in differing if name not in DIFFER]


@pytest.mark.full
def test_a_sample_of_opinfo_dispatches_and_moves_what_eager_pytorch_does() -> None:
    assert unlike(SAMPLE) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
def test_all_of_opinfo_dispatches_and_moves_what_eager_pytorch_does(part: int) -> None:
    assert unlike(sorted(entries())[part::PARTS]) == []


class Dispatched(TorchDispatchMode):
    """Counts every dispatch, including those that a tensor subclass handles and the operators that it then calls."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if is_work(func):
            self.counts[str(func)] += 1
        plain = all(kind in (torch.Tensor, torch.nn.Parameter) for kind in types)
        return func(*args, **(kwargs or {})) if plain else NotImplemented


def three_operators(x: Any) -> Any:
    return x.sin().cos() + x


@pytest.mark.parametrize("target", [None, "h100"])
def test_a_subclass_of_tensors_counts_the_operators_that_it_calls(target: str | None) -> None:
    pairs = [TwoTensor(torch.randn(8, 8), torch.randn(8, 8)) for _ in range(2)]
    with Dispatched() as mode:
        three_operators(pairs[0])
    ops = capture(three_operators, pairs[1], target=target).compilations[0].eager
    assert {op.name: op.count for op in ops} == dict(mode.counts) and mode.counts.total() == 9
    assert sum(op.nbytes for op in ops) == 2 * (2 + 2 + 3) * 8 * 8 * 4, "one of the pair moves, not the pair"


NORMALISATIONS = {
    "layer": (torch.nn.LayerNorm(6), (4, 6)),
    "group": (torch.nn.GroupNorm(2, 4), (3, 4, 5)),
    "batch": (torch.nn.BatchNorm1d(4), (3, 4, 5)),
    "batch in evaluation": (torch.nn.BatchNorm1d(4).eval(), (3, 4, 5)),
    "without parameters": (torch.nn.LayerNorm(6, elementwise_affine=False), (4, 6)),
}


@pytest.mark.full
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", NORMALISATIONS)
@pytest.mark.cases(full=4)
def test_a_normalisation_has_results_in_the_types_of_its_kernel(name: str, dtype: torch.dtype) -> None:
    """Parameters in float32 and an input in bfloat16, as under autocast."""
    module, shape = NORMALISATIONS[name]
    x = torch.rand(shape, dtype=dtype, requires_grad=True)
    assert differences(lambda x: module(x) * 2, (x,), {}, module.parameters()) == ("", [])
