"""Options of a capture: as a record keeps them, and read back from it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens.engine.options import CaptureOptions, name_of
from compile_lens.errors import UsageError
from compile_lens.record.capture import Options

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"backward": True},
        {"backward": False},
        {"backward": "auto", "dynamic": False, "fullgraph": True},
        {"dynamic": True, "mode": "max-autotune"},
        {"options": {"max_fusion_size": 1, "cpp.simdlen": None, "epilogue_fusion": False}},
    ],
)
def test_options_are_the_same_after_a_record(given: dict[str, Any]) -> None:
    options = CaptureOptions(**given)
    assert CaptureOptions.from_record(options.to_record()) == options


def test_build_and_target_are_given_anew() -> None:
    options = CaptureOptions(backward=True, build=True, target="h100")
    again = CaptureOptions.from_record(options.to_record())
    assert again == dataclasses.replace(options, build=False, target=None)
    assert CaptureOptions.from_record(options.to_record(), build=True, target="mps") == dataclasses.replace(
        options, target="mps"
    )


def test_an_option_without_a_plain_form_is_refused() -> None:
    with pytest.raises(UsageError, match=r"<function f at 0x1> is not a plain value"):
        CaptureOptions.from_record(Options(options=(("post_grad_custom_pre_pass", "<function f at 0x1>"),)))


@pytest.mark.parametrize("name", ["capture", "expect", "generate", "what_if", "compare"])
def test_inputs_that_do_not_fit_name_the_function_that_was_called(name: str) -> None:
    def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    with pytest.raises(UsageError, match="missing a required argument: 'x'") as raised:
        getattr(compile_lens, name)(added)
    assert str(raised.value).endswith(f": {name}({name_of(added)}, …)")
    with pytest.raises(UsageError, match=r"and \w+: .*'y'"):
        getattr(compile_lens, name)(added, kwargs={"x": torch.ones(2)})
    with pytest.raises(UsageError, match="is not a dict of keyword arguments"):
        getattr(compile_lens, name)(added, kwargs={1: torch.ones(2)})
