"""Memory of a comparison with eager, and comparisons of large tensors part by part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from unittest import mock

import pytest
import torch

import compile_lens
from compile_lens.record.verification import CHANGED
from compile_lens.trials import snapshot
from compile_lens.trials.agreement import compare
from compile_lens.trials.kernel_values import _relative, _ulps
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

def eager(model, x):
    result = model(x)
    if result.requires_grad:
        result.sum().backward()

gradients = sys.argv[1] == "with gradients"
model = Chain()
small, x = (torch.rand(size, requires_grad=gradients) for size in (64, 2**23))
eager(Chain(), torch.rand(8))
before = now()
eager(model, x)
of_eager = peak() - before
x.grad = None
assert compile_lens.divergence(model, small)
before = now()
assert compile_lens.divergence(model, x)
given = x.nbytes / 2**20
print(json.dumps({"eager": of_eager + given, "divergence": peak() - before + given}))
"""


@pytest.mark.torch
@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
@pytest.mark.parametrize("kind", ["inference", "with gradients"])
def test_a_comparison_takes_at_most_five_times_the_memory_of_eager(kind: str) -> None:
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT, kind],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=600,
    )
    figures = json.loads(child.stdout.splitlines()[-1])
    assert figures["eager"] > 100, "activations that are large beside what Python takes"
    assert figures["divergence"] <= 5 * figures["eager"], figures


def filled(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (40,), (1, 1, 33), (5, 7), (3, 2, 11), (23, 1, 2)])
def test_parts_are_the_whole_in_order(shape: tuple[int, ...]) -> None:
    x = torch.arange(int(torch.Size(shape).numel())).reshape(shape)
    with mock.patch.object(snapshot, "PIECE", 4):
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
    whole = compare("x", actual, want, truth)
    with mock.patch.object(snapshot, "PIECE", 5), mock.patch("compile_lens.trials.agreement.PIECE", 5):
        parts = compare("x", actual, want, truth)
        assert parts == whole
        relative, ulps = _relative(actual, truth), _ulps(want, truth) if dtype.is_floating_point else None
    assert relative == pytest.approx(_relative(actual, truth))
    if ulps is not None:
        assert ulps == _ulps(want, truth)
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


@pytest.mark.torch
def test_a_change_in_place_is_compared_although_originals_are_shared() -> None:
    x, y = filled(4), filled(4)
    capture = compile_lens.capture(in_place, x, y)
    before = x.clone()
    verification = capture.verify()
    changed = {c.name: c for c in verification.comparisons if c.kind == CHANGED}
    assert set(changed) == {"input 0"} and changed["input 0"].ok
    assert torch.equal(x, before), "the call's own input was written to"
