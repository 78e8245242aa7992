"""Settings with which Inductor times on the device: a capture for an absent one skips the timing, and reports it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._inductor.config as config
from torch._functorch import config as functorch

from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

pytest.importorskip("triton")


def for_h100(fn: Callable[..., Any], *args: Any, **options: Any) -> Capture:
    call = Call.read(fn, args, None, CaptureOptions(target="h100", options=options), model=resolve("h100"))
    return perform(call)[0]


def sources(capture: Capture) -> list[str]:
    return [k.source for k in capture.kernels]


def differs(capture: Capture, words: str) -> bool:
    assert capture.target is not None
    return any(words in sentence for sentence in capture.target.may_differ)


def several(x: torch.Tensor) -> Any:
    return x.sin(), x.cos().sum(1), (x + 1).softmax(1)


def independent(*xs: torch.Tensor) -> Any:
    return [x.sin() for x in xs]


def gelu(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x @ w) + 1


SIZES = tuple(torch.ones(100 * n) for n in range(1, 5))
SQUARE = torch.ones(64, 64)

PROGRAMS: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "fusion": ("benchmark_fusion", several, (SQUARE,), {}),
    "epilogue": (
        "benchmark_fusion", gelu, (SQUARE, SQUARE), {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"},
    ),
    "combo kernels": ("benchmark_combo_kernel", independent, SIZES, {"combo_kernels": True}),
}  # fmt: skip


@pytest.mark.parametrize("wish", ["option", "setting"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_fusions_are_not_timed_and_that_is_said(name: str, wish: str) -> None:
    setting, fn, args, beside = PROGRAMS[name]
    known = config.get_config_copy()
    if not all(option in known for option in (setting, *beside)):
        pytest.skip(f"this torch has no {setting}")
    plain = for_h100(fn, *args, **beside)
    with config.patch({setting: True}) if wish == "setting" else contextlib.nullcontext():
        timed = for_h100(fn, *args, **beside, **({setting: True} if wish == "option" else {}))
    assert sources(timed) == sources(plain) and timed.kernels
    assert differs(timed, setting) and not differs(plain, setting)


def test_a_setting_that_does_nothing_alone_is_not_said() -> None:
    assert not differs(for_h100(independent, *SIZES, benchmark_combo_kernel=True), "benchmark_combo_kernel")


COLLECTIVES: list[tuple[str, dict[str, Any]]] = [
    ("overlap scheduling", {"aten_distributed_optimizations.enable_overlap_scheduling": True}),
    (
        "times of matrix products",
        {"runtime_estimations_mms_benchmark": True, "reorder_for_compute_comm_overlap": True,
         "reorder_for_compute_comm_overlap_passes": ["reorder_compute_for_overlap", "sink_waits_iterative"]},
    ),
    ("estimated times", {"reorder_for_compute_comm_overlap": True}),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(("words", "options"), COLLECTIVES)
def test_collectives_are_ordered_without_the_device(words: str, options: dict[str, Any]) -> None:
    import torch.distributed as distributed
    import torch.distributed._functional_collectives as collectives
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if not options.keys() <= config.get_config_copy().keys():
        pytest.skip("this torch has no such setting")

    def reduced(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return collectives.all_reduce(x, "sum", distributed.group.WORLD) + (x @ w).relu()

    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        plain = for_h100(reduced, SQUARE, SQUARE)
        ordered = for_h100(reduced, SQUARE, SQUARE, **options)
    finally:
        distributed.destroy_process_group()
    assert sorted(k.name for k in ordered.kernels) == sorted(k.name for k in plain.kernels)
    assert differs(ordered, words) and not differs(plain, words)


def test_what_is_saved_is_not_decided_by_times() -> None:
    def f(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        for w in weights:
            x = torch.tanh(x @ w)
        return x

    args = tuple(torch.ones(16, 16, requires_grad=True) for _ in range(5))
    with functorch.patch(activation_memory_budget=0.5):
        counted = for_h100(f, *args)
        with functorch.patch(activation_memory_budget_runtime_estimator="profile"):
            timed = for_h100(f, *args)
            assert functorch.activation_memory_budget_runtime_estimator == "profile"
    assert sources(timed) == sources(counted) and timed.kernels
    assert differs(timed, "by timing operators") and not differs(counted, "by timing operators")


@pytest.mark.parametrize("target", [None, "h100"])
def test_a_program_that_saves_its_graphs_can_be_captured(target: str | None) -> None:
    import compile_lens

    with config.patch(save_args=True):
        capture = (
            for_h100(several, SQUARE) if target else compile_lens.capture(several, SQUARE, backward=False)
        )
    assert capture.kernels


@pytest.mark.parametrize("as_option", [False, True])
def test_a_setting_that_takes_the_device_is_refused_by_name(as_option: bool) -> None:
    import compile_lens

    options = {"fx_wrapper": True} if as_option else {}
    with config.patch(fx_wrapper=not as_option), pytest.raises(compile_lens.UsageError) as refused:
        for_h100(several, SQUARE, **options)
    assert "fx_wrapper" in str(refused.value) and "Set it to False for target='h100'" in str(refused.value)


REFUSES = {
    "fx_wrapper",  # refused: the kernels are loaded while the code is generated
    "remote_gemm_autotune_cache",  # needs a part of torch that is not public
    "selective_decompose",  # torch refuses operators that have both
    "distributed_max_autotune_gemm",  # needs a process group
    "TYPE_CHECKING",  # no setting
}
"""Settings with which a capture fails, where torch fails too, or for want of a build for the device."""


def program(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = torch.nn.functional.gelu(x @ w)
    return y.softmax(1), torch.cat([x, y], 1).sum(0), (x[:1] @ w).relu(), [x.sin(), w[:3].cos()]


@pytest.mark.exhaustive
def test_no_setting_asks_for_the_device() -> None:
    """Each setting that is on or off is tried with the other value."""
    x, w = torch.ones(64, 32), torch.ones(32, 48)
    failed = {}
    for name, value in config.get_config_copy().items():
        if isinstance(value, bool) and not name.startswith(("_", "aot_inductor", "test_configs", "trace.")):
            options = {name: not value, **({"combo_kernels": True} if "combo" in name else {})}
            try:
                for_h100(program, x, w, **options)
            except Exception as error:
                failed[name] = str(error)
    assert {name: why for name, why in failed.items() if name not in REFUSES and "TESTING" not in name} == {}
