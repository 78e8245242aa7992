"""Memory of a comparison with eager, and comparisons of large tensors in parts."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from unittest import mock

import pytest
import torch

import compile_lens
from compile_lens._torch.graphs.packed_values import PackedValue, pack, unpacked
from compile_lens.record.verification import CHANGED
from compile_lens.trials import snapshot
from compile_lens.trials.agreement import compare
from compile_lens.trials.distances import distances
from compile_lens.trials.snapshot import Snapshot, pieces

SCRIPT = """
import json, resource, sys
import torch
import compile_lens

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def now():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20

class Chain(torch.nn.Module):
    def forward(self, x):
        for _ in range(4):
            x = torch.sin(x) * 1.1 + 0.1
        return x

class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.ModuleList(torch.nn.Linear(256, 1024) for _ in range(3))
        self.down = torch.nn.ModuleList(torch.nn.Linear(1024, 256) for _ in range(3))

    def forward(self, x):
        for up, down in zip(self.up, self.down):
            x = x + down(torch.nn.functional.gelu(up(x)))
        return x

def eager(model, x):
    result = model(x)
    if result.requires_grad:
        result.sum().backward()

kind, gradients, dtype = sys.argv[1], sys.argv[2] == "gradients", getattr(torch, sys.argv[3])
sizes = ((64,), (2**23,)) if kind == "Chain" else ((16, 256), (2**13, 256))
model = globals()[kind]().to(dtype)
small, x = (torch.rand(size, dtype=dtype, requires_grad=gradients) for size in sizes)
eager(model, small)
before = now()
eager(model, x)
of_eager = peak() - before
for one in (x, small, *model.parameters()):
    one.grad = None
assert compile_lens.divergence(model, small)
before = now()
assert compile_lens.divergence(model, x)
given = sum(one.nbytes for one in (x, *model.parameters())) / 2**20
print(json.dumps({"eager": of_eager + given, "divergence": peak() - before + given}))
"""


@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
@pytest.mark.parametrize(("model", "kind", "dtype"), [
    pytest.param("Chain", "inference", "float32", marks=pytest.mark.exhaustive),
    pytest.param("Chain", "gradients", "float32", marks=pytest.mark.full),
    pytest.param("Perceptron", "gradients", "float32", marks=pytest.mark.exhaustive),
    pytest.param("Perceptron", "gradients", "bfloat16", marks=pytest.mark.exhaustive),
])  # fmt: skip
def test_a_comparison_takes_at_most_five_times_the_memory_of_eager(model: str, kind: str, dtype: str) -> None:
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT, model, kind, dtype],
        # Large blocks are returned to the system at once; the C library keeps some smaller ones, on either side.
        env=os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "1048576"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=600,
    )
    figures = json.loads(child.stdout.splitlines()[-1])
    assert figures["eager"] > 100, "activations that are large beside what Python takes"
    assert figures["divergence"] <= 5 * figures["eager"], figures


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_packed_value_is_nearer_to_float64_than_its_own_type_by_far(dtype: torch.dtype) -> None:
    graph = torch.fx.Graph()
    first, second, whole, turned = (graph.call_function(torch.add) for _ in range(4))
    exact = filled(64, 512).double() * 1e-3 + 1
    own = exact.to(dtype)
    pair = filled(2, 2**15).double()
    large = torch.full((2**15,), 1e300, dtype=torch.float64)
    wide: dict[torch.fx.Node, object] = {first: exact.clone(), whole: (pair, 3), turned: large}
    wide[second] = wide[first].t()  # type: ignore[attr-defined]
    given = {first: own, second: own.t(), whole: (pair.to(dtype), 3), turned: large.to(dtype)}
    pack(wide, given)
    assert isinstance(wide[first], PackedValue) and wide[turned] is large
    for value, want in ((wide[first], exact), (wide[second], exact.t()), (wide[whole][0], pair)):  # type: ignore[index]
        value = unpacked(value)
        error, of_own = ((x.double() - want).abs().max() for x in (value, want.to(dtype)))
        assert value.dtype == torch.float64 and value.stride() == want.stride()
        assert error <= of_own * (2.0**-23 if dtype == torch.float32 else 2.0**-8)
    assert unpacked(wide[whole])[1] == 3


def filled(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (40,), (1, 1, 33), (5, 7), (3, 2, 11), (23, 1, 2)])
def test_parts_are_the_whole_in_order(shape: tuple[int, ...]) -> None:
    x = torch.arange(int(torch.Size(shape).numel())).reshape(shape)
    with mock.patch.object(snapshot, "PIECE_ELEMENTS", 4):
        parts = [(a, b) for a, b in pieces(x, x)]
    assert torch.equal(torch.cat([a.reshape(-1) for a, _ in parts]), x.reshape(-1))
    assert all(a.numel() <= 4 and torch.equal(a, b) for a, b in parts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int64])
def test_a_tensor_is_compared_in_parts_as_it_is_whole(dtype: torch.dtype) -> None:
    want = (filled(9, 14) * 4).to(dtype).t()
    actual = want.clone()
    actual[3, 2] += 1
    if dtype.is_floating_point:
        actual[5, 7] = float("nan")
        actual[13, 8] = float("inf")
    truth = want if dtype == torch.int64 else want.to(torch.promote_types(dtype, torch.float64)) + 1e-3
    floating = dtype.is_floating_point
    whole, far = (
        compare("x", actual, want, truth),
        distances(actual, want, truth, (1e-5, 1e-5), ulps=floating),
    )
    with (
        mock.patch.object(snapshot, "PIECE_ELEMENTS", 5),
        mock.patch("compile_lens.trials.agreement.PIECE_ELEMENTS", 5),
    ):
        assert compare("x", actual, want, truth) == whole
        parts = distances(actual, want, truth, (1e-5, 1e-5), ulps=floating)
    exact, wide = (x.to(torch.promote_types(dtype, torch.float64)) for x in (truth, want))
    assert parts.norm == pytest.approx(float(exact.norm())) == pytest.approx(far.norm)
    error = parts.error_of_eager
    assert error.norm == pytest.approx(float((wide - exact).norm())) == pytest.approx(far.error_of_eager.norm)
    assert (error.largest, error.ulps) == (far.error_of_eager.largest, far.error_of_eager.ulps)
    assert parts.apart == (math.inf if floating else pytest.approx(1.0, abs=0.05)) == far.apart
    if floating:
        spacing = 2.0 ** torch.floor(torch.log2(exact.abs())) * torch.finfo(dtype).eps
        assert error.ulps == float(((wide - exact).abs() / spacing).max())
        assert (parts.special, parts.special_of_eager, parts.error.norm) == (2, 0, math.inf)
        assert "at [5, 7] (and 1 more)" in whole.special


def test_a_snapshot_shares_the_values_of_another_only_where_they_are_the_same() -> None:
    x = filled(6)
    first = Snapshot.of(x)
    wide = x.double()
    shared = Snapshot.of(wide, first)
    assert shared.parts[0][1] is first.parts[0][1]
    assert shared.is_of(wide) and not first.is_of(wide)
    wide[2] += 1e-12
    assert shared.is_of(wide) is False
    other = Snapshot.of(x + 1, first)
    assert other.parts[0][1] is not first.parts[0][1] and other.is_of(x + 1)


RING = torch.zeros(4)


def with_a_ring(x: torch.Tensor) -> torch.Tensor:
    RING.copy_(x * 2)
    return RING


def with_a_part(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, x * 3])[:1]


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.parametrize("f", [with_a_ring, with_a_part])
def test_results_in_the_memory_of_the_program_keep_their_values(f: object) -> None:
    x = filled(4)
    capture = compile_lens.capture(f, x)
    RING.zero_()
    verification = capture.verify()
    assert verification.ok, str(verification)
    assert not RING.any(), "the call left its change behind"


def in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return x.detach() * 2


@pytest.mark.full
@pytest.mark.torch
def test_a_change_in_place_is_compared_although_originals_are_shared() -> None:
    x, y = filled(4), filled(4)
    capture = compile_lens.capture(in_place, x, y)
    before = x.clone()
    verification = capture.verify()
    changed = {c.name: c for c in verification.comparisons if c.kind == CHANGED}
    assert set(changed) == {"input 0"} and changed["input 0"].ok
    assert torch.equal(x, before), "the call's own input was written to"
