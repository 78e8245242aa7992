"""Options of a capture, written to a record and read back from it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens.api.playground.widget import _named_tensors
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


# Decorated functions: the call is the decorator's ---------------------------------------------------------------


def scaled(x: torch.Tensor, scale: float) -> torch.Tensor:
    return x * scale


@functools.wraps(scaled)
def with_scale(x: torch.Tensor) -> torch.Tensor:
    return scaled(x, 2.0)


@functools.wraps(scaled)
def with_any_scale(*args: Any, **kwargs: Any) -> torch.Tensor:
    return scaled(*args, 3.0, **kwargs)


@functools.wraps(scaled)
def with_another(scale: int, /, data: torch.Tensor) -> torch.Tensor:
    return scaled(data, scale)


class Kinds:
    @functools.singledispatchmethod
    def of(self, x: Any) -> Any:
        return x

    @of.register
    def _(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin()


@pytest.mark.parametrize(
    ("fn", "args", "inputs"),
    [
        (with_scale, (torch.ones(2),), ("x: float32[2] cpu",)),
        (with_any_scale, (torch.ones(2),), ("argument 0: float32[2] cpu",)),
        (with_another, (4, torch.ones(2)), ("scale: 4", "data: float32[2] cpu")),
        (Kinds().of, (torch.ones(2),), ("argument 0: float32[2] cpu",)),
        (torch.no_grad()(with_any_scale), (torch.ones(2),), ("argument 0: float32[2] cpu",)),
    ],
)
def test_a_decorator_may_give_other_arguments_than_it_is_given(fn: Any, args: Any, inputs: Any) -> None:
    capture = compile_lens.capture(fn, *args)
    assert len(capture.kernels) == 1
    assert capture.inputs == inputs
    assert [name for name, _ in _named_tensors(fn, args, {})] == [inputs[-1].partition(":")[0]]


@pytest.mark.parametrize("wrap", [torch.no_grad(), torch.compile, torch.compiler.disable])
def test_what_torchs_own_decorators_hand_on_has_to_fit(wrap: Any) -> None:
    with pytest.raises(UsageError, match="missing a required argument: 'scale'"):
        compile_lens.capture(wrap(scaled), torch.ones(2))


def test_what_does_not_fit_a_decorators_own_parameters_is_refused() -> None:
    with pytest.raises(UsageError, match="too many positional arguments"):
        compile_lens.capture(with_scale, torch.ones(2), 2.0)
