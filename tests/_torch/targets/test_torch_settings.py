"""Settings of torch are sent to the process that compiles for a target, even if torch has no single word for them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from compile_lens import capture
from compile_lens._torch.targets import torch_settings

pytestmark = pytest.mark.torch


def precisions() -> list[str]:
    return [
        torch.backends.fp32_precision,
        torch.backends.cuda.matmul.fp32_precision,
        torch.backends.cudnn.conv.fp32_precision,
        torch.backends.mkldnn.matmul.fp32_precision,
        torch.backends.mkldnn.conv.fp32_precision,
    ]


@pytest.fixture
def set_apart() -> Iterator[list[str]]:
    """Float32 precisions for which torch has no single word: its getter raises."""
    before = torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        yield precisions()
    finally:
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = before


def test_precisions_that_are_set_apart_are_put_in_place_and_back(set_apart: list[str]) -> None:
    with pytest.raises(RuntimeError):
        torch.get_float32_matmul_precision()
    settings, _ = torch_settings.snapshot()
    torch.backends.cuda.matmul.fp32_precision = torch.backends.mkldnn.matmul.fp32_precision = "none"
    before = precisions()
    assert before != set_apart
    with torch_settings.restored(settings):
        assert precisions() == set_apart
    assert precisions() == before and torch.get_float32_matmul_precision() == "highest"


def test_one_word_is_put_in_place_and_back() -> None:
    before = precisions()
    # The word sets these two, and restores them to ``ieee``: the test ignores the leftovers of other tests.
    own = torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision
    torch.set_float32_matmul_precision("high")
    try:
        there = precisions()
        settings, _ = torch_settings.snapshot()
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision = own
    assert precisions() == before
    with torch_settings.restored(settings):
        assert precisions() == there and torch.get_float32_matmul_precision() == "high"
    assert precisions() == before and torch.get_float32_matmul_precision() == "highest"


def test_a_capture_for_a_target_with_precisions_set_apart(set_apart: list[str]) -> None:
    found = capture(lambda x: (x @ x).relu(), torch.rand(16, 16), target="h100")
    assert found.kernels and precisions() == set_apart


def pair(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sin() + 1, y.cos()


def filled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.sin() + y if torch.utils.deterministic.fill_uninitialized_memory else x.cos() + y


SETTINGS: dict[str, tuple[str, str, Any, bool | None]] = {
    "sources": ("torch.compiler.config", "dynamic_sources", "L['x']", None),
    "duck shapes": ("torch.fx.experimental._config", "use_duck_shape", False, True),
    "sizes of 1": ("torch.fx.experimental._config", "backed_size_oblivious", True, True),
    "sizes": ("torch._dynamo.config", "assume_static_by_default", False, None),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_every_module_of_torch_cross(name: str) -> None:
    """The oracle is the capture for this processor, in this process."""
    module, setting, value, dynamic = SETTINGS[name]
    config = importlib.import_module(module)
    if setting not in config.get_config_copy():
        pytest.skip(f"this torch has no {setting}")
    args = torch.ones(1 if name == "sizes of 1" else 8, 4), torch.ones(8, 4)

    def symbols(target: str | None) -> list[tuple[str, str]]:
        record = capture(pair, *args, dynamic=dynamic, target=target)
        return [(dim.source, dim.symbol) for one in record.compilations for dim in one.dynamic]

    plain = symbols(None)
    with config.patch({setting: value}):
        here, there = symbols(None), symbols("cpu:avx2")
    assert here == there != plain and symbols("cpu:avx2") == plain


def test_threads_and_uninitialized_memory_cross() -> None:
    x = torch.ones(100_000)
    threads, fills = torch.get_num_threads(), torch.utils.deterministic.fill_uninitialized_memory

    def there(fn: Any, target: str) -> list[str]:
        return [kernel.source for kernel in capture(fn, x, x, target=target).kernels]

    try:
        torch.set_num_threads(7)
        assert "num_threads(7)" in there(pair, "cpu:avx2")[0]
        torch.utils.deterministic.fill_uninitialized_memory = False
        assert "cos" in there(filled, "h100")[0]
    finally:
        torch.set_num_threads(threads)
        torch.utils.deterministic.fill_uninitialized_memory = fills
