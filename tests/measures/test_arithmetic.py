"""Arithmetic, against torch's own counter for matrix products, and the speed of this machine."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from compile_lens import capture
from compile_lens.errors import UsageError
from compile_lens.measures.roofline import COMPUTE, MEMORY
from compile_lens.trials.speed import measure_speed


def grad(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "mm": (lambda a, b: (a @ b).relu(), (grad(24, 40), grad(40, 56))),
    "bmm": (lambda a, b: (a @ b).sin(), (grad(3, 24, 40), grad(3, 40, 56))),
    "convolution": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=1).relu(),
        (grad(2, 4, 16, 16), grad(8, 4, 3, 3)),
    ),
    "transposed": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2).relu(),
        (grad(2, 4, 8, 8), grad(4, 6, 3, 3)),
    ),
    "attention": (
        lambda q, k, v: torch.softmax(torch.tanh(q @ k.transpose(-1, -2)), -1) @ v,
        (grad(1, 4, 64, 32), grad(1, 4, 64, 32), grad(1, 4, 64, 32)),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_products_are_those_that_torch_counts(name: str) -> None:
    f, args = CASES[name]
    with FlopCounterMode(display=False) as forward:
        result = f(*args)
    with FlopCounterMode(display=False) as backward:
        result.sum().backward()
    found = capture(f, *args).traffic().kernels
    for phase, counter in (("forward", forward), ("backward", backward)):
        assert sum(k.products for k in found if k.phase == phase) == counter.get_total_flops(), phase


def test_the_backward_of_a_macs_linear_counts_the_same() -> None:
    x, w = grad(3, 24, 40), grad(56, 40)
    with FlopCounterMode(display=False) as counter:
        F.linear(x, w).sin().sum().backward()
    found = capture(lambda x, w: F.linear(x, w).sin(), x, w, target="mps").traffic().kernels
    assert any("linear_backward" in k.name for k in found)
    assert sum(k.products for k in found) == counter.get_total_flops()


def test_attention_that_became_one_call_counts_the_same() -> None:
    inputs = (grad(1, 4, 64, 32), grad(1, 4, 64, 32), grad(1, 4, 64, 32))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        F.scaled_dot_product_attention(*inputs)
    found = capture(F.scaled_dot_product_attention, *inputs).traffic().kernels
    assert any("flash" in k.name for k in found)
    forward, backward = (sum(k.products for k in found if k.phase == p) for p in ("forward", "backward"))
    assert forward == counter.get_total_flops()
    assert backward == 5 * forward // 2, "two products forward, five backward: one is computed again"


def test_the_waves() -> None:
    n = 1 << 20
    seen = capture(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, grad(n))
    traffic = seen.traffic()
    forward, backward = traffic.kernels
    for kernel, moved in zip(seen.kernels, traffic.kernels, strict=True):
        # One iteration of the vectorized loop: the lines that compute. Neither pow(·, 1) of the backward generates one.
        loop = kernel.source.partition(".store(")[0]
        written = re.findall(r"= tmp\d+(?: [*+] tmp\d+|\.(?:sin|cos|neg)\(\));", loop)
        assert moved.flops == len(written) * n, kernel.phase
    assert (forward.before, forward.nbytes, forward.flops) == (46_137_344, 8_388_608, 5 * n)
    assert backward.nbytes == 12_582_912
    assert traffic.nbytes == 20_971_520


def test_dynamic_sizes_count_as_seen() -> None:
    found = capture(lambda a: (a @ a.T).relu(), torch.randn(32, 8), dynamic=True).traffic()
    assert (
        sum(k.products for k in found.kernels) == 2 * 32 * 32 * 8 and found.flops == 2 * 32 * 32 * 8 + 32 * 32
    )


def test_this_machine_is_measured() -> None:
    speed = measure_speed("cpu", seconds=0.01)
    assert speed.measured and speed.device == "cpu" and speed.dtype == "float32"
    # A roof has to lie between a slow single core and the fastest CPU there is.
    assert 1e8 < speed.bandwidth < 5e12 and 1e8 < speed.flops < 1e14
    seen = capture(torch.sin, torch.randn(1000))
    assert [b.bound for b in seen.roofline(speed).bounds] == [MEMORY] or speed.flops < speed.bandwidth
    assert seen.roofline().speed is None


def test_measuring_leaves_the_program_alone() -> None:
    state, grads = torch.get_rng_state(), torch.is_grad_enabled()
    measure_speed(seconds=0.001)
    assert torch.equal(state, torch.get_rng_state()) and torch.is_grad_enabled() == grads


@pytest.mark.parametrize(
    ("device", "dtype"),
    [("tpu", "float32"), ("zz", "float32"), ("meta", "float32"), ("cpu", "int8"), ("cpu", "nn")],
)
def test_what_cannot_be_measured_is_refused(device: str, dtype: str) -> None:
    with pytest.raises(UsageError) as caught:
        measure_speed(device, dtype)
    said = str(caught.value)
    assert (dtype if device == "cpu" else device) in said
    assert device == "cpu" or ("cpu, cuda" in said and "mps" in said and "vulkan" not in said)


@pytest.mark.full
def test_a_chain_of_sines_on_16_bit_numbers_is_bound_by_arithmetic() -> None:
    """Without a product no tensor cores are used: the generated code widens 16-bit numbers before it computes."""

    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(60):
            x = torch.sin(x) * 1.5 + 0.25
        return x

    record = capture(chain, torch.randn(4096, dtype=torch.float16), target="h100")
    assert all(".to(tl.float32)" in k.source for k in record.kernels)
    line = record.roofline()
    assert {b.bound for b in line.bounds} == {COMPUTE}
    assert line.speed.flops == 67e12 and line.speed.dtype == "float32"
    assert sum(b.kernel.special for b in line.bounds) == 60 * 4096
