"""What is asked of a capture: as it is recorded, and asked again."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens.engine import inputs
from compile_lens.engine.request import Asked
from compile_lens.errors import UsageError
from compile_lens.record.capture import Options

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"backward": True},
        {"backward": False},
        {"backward": "auto", "dynamic": False, "fullgraph": True},
        {"dynamic": True, "mode": "max-autotune"},
        {"options": {"max_fusion_size": 1, "cpp.simdlen": None, "epilogue_fusion": False}},
    ],
)
def test_what_was_recorded_asks_for_the_same_again(options: dict[str, Any]) -> None:
    asked = Asked(**options)
    assert Asked.again(asked.recorded()) == asked


def test_to_build_and_for_what_is_asked_anew() -> None:
    asked = Asked(backward=True, build=True, target="h100")
    again = Asked.again(asked.recorded())
    assert again == dataclasses.replace(asked, build=False, target=None)
    assert Asked.again(asked.recorded(), build=True, target="mps") == dataclasses.replace(asked, target="mps")


def test_what_has_no_plain_form_is_refused() -> None:
    with pytest.raises(UsageError, match=r"<function f at 0x1> is not a plain value"):
        Asked.again(Options(options=(("post_grad_custom_pre_pass", "<function f at 0x1>"),)))


@pytest.mark.parametrize("name", ["capture", "expect", "generate", "what_if", "compare"])
def test_inputs_that_do_not_fit_name_the_function_that_was_called(name: str) -> None:
    def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    with pytest.raises(UsageError, match="missing a required argument: 'x'") as raised:
        getattr(compile_lens, name)(added)
    assert str(raised.value).endswith(f": {name}({inputs.name_of(added)}, …)")
    with pytest.raises(UsageError, match=r"and \w+: .*'y'"):
        getattr(compile_lens, name)(added, kwargs={"x": torch.ones(2)})
    with pytest.raises(UsageError, match="is not a dict of keyword arguments"):
        getattr(compile_lens, name)(added, kwargs={1: torch.ones(2)})
