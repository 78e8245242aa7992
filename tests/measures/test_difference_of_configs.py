"""Process-wide changes of torch's configurations are causes of differences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch._inductor.config as inductor

from compile_lens import capture, diff, what_if
from compile_lens._torch.targets import torch_settings

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum()


@pytest.fixture
def put_back() -> Iterator[None]:
    before = inductor.split_reductions, inductor.compile_threads
    yield
    inductor.split_reductions, inductor.compile_threads = before


@pytest.mark.usefixtures("put_back")
@pytest.mark.parametrize("target", ["h100", "mps"])
def test_a_setting_for_the_whole_process_is_named_first(target: str) -> None:
    x = torch.rand(1_000_000)
    before = capture(total, x, target=target)
    inductor.split_reductions = False
    difference = diff(before, capture(total, x, target=target))
    first = "torch._inductor.config.split_reductions: torch's default became False"
    assert difference.summary.splitlines()[0] == first and difference.causes[0].level == "settings"
    inductor.split_reductions = True
    assert not diff(before, capture(total, x, target=target)).changes


@pytest.mark.usefixtures("put_back")
def test_what_is_told_is_what_torch_would_save() -> None:
    """Torch writes changed settings as code; those that change no code, or that a patch restored, are left out."""
    inductor.split_reductions = False
    inductor.compile_threads = 1
    with inductor.patch(max_fusion_size=4):
        pass
    told = dict(torch_settings.non_default_configs())
    assert told["torch._inductor.config.split_reductions"] == "False"
    assert not {"torch._inductor.config.compile_threads", "torch._inductor.config.max_fusion_size"} & set(
        told
    )
    saved = inductor.codegen_config().splitlines()
    assert all(f"{name} = {value}" in saved for name, value in told.items() if "_inductor" in name)


@pytest.mark.full
def test_what_if_names_the_setting_that_it_turned() -> None:
    def chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = torch.tanh(x @ w)
        return x.sum()

    given = torch.rand(64, 64, requires_grad=True), torch.rand(64, 64)
    result = what_if(chain, *given, switches=["activation_memory_budget"], pairs=False)
    summary = result.diff("activation_memory_budget").summary.splitlines()[0]
    assert summary == "torch._functorch.config.activation_memory_budget: torch's default became 0.5"
