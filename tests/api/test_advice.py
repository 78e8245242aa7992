"""The advice of a failing ``expect`` or ``generate`` is applied here, and has the promised effect."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from short_programs import around_a_sort, one

import compile_lens
from compile_lens import Capture, ExpectationError, NotOneKernelError, capture, expect, what_if

pytestmark = [pytest.mark.torch, pytest.mark.slow]

X = torch.rand(64, 64)


def product(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.linear(x, x))


def read_twice(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, e: torch.Tensor) -> Any:
    y = a * b + c * d + e
    return y.sum(0), y.sum(1), y + 1


@pytest.fixture(scope="module")
def sorted_() -> Capture:
    return capture(around_a_sort, X)


@pytest.fixture(scope="module")
def multiplied() -> Capture:
    return capture(product, X)


def said(holds: Any) -> tuple[list[str], list[str]]:
    """Return the reasons and the advice of an expectation that fails."""
    with pytest.raises(ExpectationError) as error:
        holds()
    return parts(str(error.value))


def parts(text: str) -> tuple[list[str], list[str]]:
    found: dict[str, list[str]] = {"why:": [], "to try:": []}
    title = ""
    for line in text.split("\n"):
        title = title if line.startswith("  ") else line
        if title in found and line != title:
            found[title].append(line.strip())
    return found["why:"], found["to try:"]


SORTS = "compile_lens.support('aten.sort.stable') says which of its backends can"


@pytest.mark.parametrize("asked", ["launches", "groups", "bytes", "fused", "extern"])
def test_across_a_sort(asked: str, sorted_: Capture) -> None:
    held = expect(sorted_)
    why, to_try = said(lambda: held.fused("gelu", "sort") if asked == "fused" else getattr(held, asked)(0))
    assert to_try == [SORTS]
    assert any(line.startswith("aten.sort.stable: Inductor generates sorts itself") for line in why), why


def test_the_backend_that_can_is_one_kernel() -> None:
    answer = " ".join(str(eval(SORTS.partition(" says")[0], {"compile_lens": compile_lens})).split())
    assert "Inductor can generate for cuda" in answer and "for cpu, mps it calls the library" in answer
    expect(around_a_sort, X, target="h100").launches(1).extern(0).fused("gelu", "sort")
    expect(around_a_sort, X, target="mps").extern(1)


@pytest.mark.parametrize("asked", ["launches", "fused", "extern"])
def test_across_a_matrix_product(asked: str) -> None:
    held = expect(capture(product, X, target="h100"))
    why, to_try = said(lambda: held.fused("linear", "gelu") if asked == "fused" else getattr(held, asked)(0))
    (advice,) = to_try
    assert advice.startswith("mode='max-autotune' times Inductor's own templates") and "the device" in advice
    assert "extern_kernels.mm: by default a library computes it" in " ".join(why)
    (mode,) = re.findall(r"mode='([a-z-]+)'", advice)
    (contest,) = capture(product, X, target="h100", mode=mode).autotuning
    assert contest.operator.endswith("mm") and len(contest.templates) > 1
    assert not capture(product, X, target="h100").autotuning


@pytest.mark.parametrize(("target", "reason"), [
    ("mps", "no templates for Metal"), ("l4", "only with 68 multiprocessors or more, and NVIDIA L4 has"),
    (None, "on a CPU Inductor has templates only for weights that are constants"),
])  # fmt: skip
@pytest.mark.parametrize("asked", ["launches", "fused", "extern"])
@pytest.mark.cases(full=4)
def test_what_changes_nothing_is_not_advised(target: str | None, reason: str, asked: str) -> None:
    """If it is set anyway, max-autotune keeps the library call and has no template to time."""
    held = expect(capture(product, X, target=target))
    why, to_try = said(lambda: held.fused("linear", "gelu") if asked == "fused" else getattr(held, asked)(0))
    assert not any("max-autotune" in line for line in to_try), to_try
    assert reason in " ".join(why)
    tuned = capture(product, X, target=target, mode="max-autotune")
    assert not tuned.autotuning and any(k.language == "extern" for k in tuned.kernels)


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler")
@pytest.mark.parametrize("name", ["mm", "bmm", "baddbmm"])
@pytest.mark.exhaustive
def test_on_a_cpu_what_torch_times_is_advised(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Plain torch prints a table of the timed choices, if it has templates in C++."""
    x = torch.rand(8, 64, 64) if "b" in name else torch.rand(64, 64)
    args = (x, x, x) if name == "baddbmm" else (x, x)
    fn = getattr(torch, name)
    torch._dynamo.reset()
    with torch._inductor.utils.fresh_cache():
        torch.compile(lambda *given: fn(*given).relu(), mode="max-autotune")(*args)
    timed = "cpp_CppMicroGemm" in capfd.readouterr().err
    assert timed is (name == "bmm")
    _, to_try = said(lambda: expect(capture(lambda *given: fn(*given).relu(), *args)).extern(0))
    assert any("max-autotune" in line for line in to_try) is timed


def test_an_operator_of_the_users_is_no_librarys() -> None:
    @torch.library.custom_op("advice::own", mutates_args=())
    def own(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    own.register_fake(torch.empty_like)
    _, to_try = said(lambda: expect(lambda x: own(x.sin()) + 1, X).fused("sin", "add"))
    assert not any("support(" in line or "max-autotune" in line for line in to_try), to_try


def test_the_peak_has_what_is_held_and_a_switch_that_lowers_it(sorted_: Capture) -> None:
    why, to_try = said(lambda: expect(sorted_).peak(at_most=1))
    # By hand: the argument, the result of gelu, and both results of sort: 3 × 16,384, and 8 bytes per index.
    assert sorted_.compilations[0].memory[0].peak == 3 * 64 * 64 * 4 + 64 * 64 * 8
    (held,) = [line.rpartition("live then: ")[2] for line in why if "live then: " in line]
    assert len(held.split(", ")) == 4 and "arg0_1" in held
    assert to_try == [
        "compile_lens.what_if turns the switches of the compiler one at a time, and says which lower the peak"
    ]
    tensors = [torch.rand(64, 64) for _ in range(5)]
    result = what_if(
        read_twice, *tensors, target="h100", switches=["realize_reads_threshold"], show_progress=False
    )
    (trial,) = result.helpful
    assert "peak" in trial.lower
    before, after = dict(trial.figures)["peak"]
    assert before is not None and after is not None
    expect(result.base).peak(before)
    expect(read_twice, *tensors, target="h100", **(trial.arguments or {})).peak(after)


def test_where_an_operator_comes_from_is_told(multiplied: Capture) -> None:
    why, to_try = said(lambda: expect(multiplied).no("erf"))
    assert why[0].endswith("aten.erf comes of torch.nn.functional.gelu") and not to_try
    why, _ = said(lambda: expect(multiplied).no("mm"))
    assert all(line.endswith("aten.mm comes of torch.nn.functional.linear") for line in why) and why


def view(x: torch.Tensor) -> torch.Tensor:
    return x.t()


@pytest.mark.parametrize("fn", [lambda x: x, view])
def test_nothing_to_compute_is_no_kernel_and_a_copy_is_one(fn: Any) -> None:
    with pytest.raises(NotOneKernelError) as error:
        compile_lens.generate(fn, X)
    _, (advice,) = parts(str(error.value))
    assert advice.endswith("one that returns a copy, x.clone(), is one")
    assert "kernel" in compile_lens.generate(lambda x: fn(x).clone(), X)


def test_no_advice_where_something_else_is_the_reason() -> None:
    with torch._dynamo.config.patch(disable=True), pytest.raises(NotOneKernelError) as error:
        compile_lens.generate(one, X)
    assert "switched off" in str(error.value) and "x.clone()" not in str(error.value)
