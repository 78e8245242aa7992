"""Arguments by name: one of our options, an argument of the captured function, or an error for a conflict."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens import UsageError, capture

pytestmark = pytest.mark.torch

X = torch.rand(4)


class Scaled(torch.nn.Module):
    def forward(self, input_ids: torch.Tensor, scale: float = 1.0, **more: torch.Tensor) -> torch.Tensor:
        return input_ids * scale + sum(more.values())


def masked(x: torch.Tensor, target: torch.Tensor, mode: str = "sum") -> torch.Tensor:
    return (x - target).abs().sum() if mode == "sum" else (x - target).abs().mean()


def plain(x: torch.Tensor, /, y: torch.Tensor) -> torch.Tensor:
    return x + y


def call_of(name: str) -> Callable[..., Any]:
    return {
        "expect": lambda *a, **k: compile_lens.expect(*a, **k).capture,
        "compare": lambda *a, **k: compile_lens.compare(*a, targets=["cpu"], **k).captures["cpu"],
        "what_if": lambda *a, **k: compile_lens.what_if(*a, switches=["dynamic"], pairs=False, **k).base,
    }.get(name, getattr(compile_lens, name))


@pytest.mark.parametrize("name", ["capture", "show", "ablate", "expect", "compare", "what_if"])
def test_a_module_takes_its_arguments_by_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = call_of(name)(Scaled(), input_ids=X, bias=X, backward=False)
    assert result.inputs == ("input_ids: float32[4] cpu", "bias: float32[4] cpu")
    assert result.options.backward == "no"


def test_the_generated_code_of_arguments_by_name() -> None:
    assert compile_lens.generate(plain, X, y=X) == compile_lens.generate(plain, X, kwargs={"y": X})


@pytest.mark.exhaustive
def test_what_builds_takes_arguments_by_name() -> None:
    assert compile_lens.benchmark(plain, X, y=X, seconds=0.01, ablations=False).benchmark
    assert compile_lens.divergence(plain, X, y=X)
    record = capture(torch.sin, X)
    assert record.verify(plain, X, y=X).ok and record.divergence(plain, X, y=X)
    assert record.verify(masked, X, kwargs={"target": X}).ok


@pytest.mark.parametrize(
    "name",
    ["capture", "show", "ablate", "expect", "compare", "what_if", "generate", "benchmark", "divergence"],
)
def test_a_name_of_both_is_an_error_that_shows_kwargs(name: str) -> None:
    with pytest.raises(UsageError, match=r"mode='max'.* has an option mode.*masked\(.*kwargs=\{'mode': …\}"):
        call_of(name)(masked, X, X, mode="max")


def test_a_target_is_not_taken_for_the_option_in_silence() -> None:
    with pytest.raises(UsageError, match=r"target='h100': capture has an option target"):
        capture(masked, X, target="h100")
    with pytest.raises(UsageError, match=r"capture.verify has an option target"):
        capture(torch.sin, X).verify(masked, X, target=X)


def test_a_filled_parameter_leaves_its_name_to_the_option() -> None:
    both = capture(masked, X, target="cpu:avx2", kwargs={"target": X, "mode": "mean"})
    assert both.options.target == "cpu:avx2" and "mode: 'mean'" in both.inputs
    assert capture(masked, X, X, "mean", mode="default").options.mode == "default"
    assert capture(functools.partial(masked, mode="mean"), X, X, mode="default").options.mode == "default"
    each = capture(masked, calls=[(X, X, "sum"), {"x": X, "target": X, "mode": "mean"}], mode="default")
    assert len(each.calls) == 2
    with pytest.raises(UsageError, match="an option mode"):
        capture(masked, calls=[(X, X, "sum"), (X, X)], mode="default")


def test_what_is_no_option_of_this_function_is_the_captured_ones() -> None:
    """``compare`` has ``targets``, and ``ablate`` no ``calls``: the names are free there."""
    assert (
        compile_lens.compare(masked, X, target=X, targets=["cpu"])
        .captures["cpu"]
        .inputs[1]
        .startswith("target")
    )
    ablation = compile_lens.ablate(lambda x, calls: x * calls, X, calls=3)
    assert ablation.inputs[-1] == "calls: 3"


def test_a_function_has_a_parameter_with_the_name_of_our_first() -> None:
    assert capture(lambda x, fn: fn(x), X, fn=torch.sin).inputs[0] == "x: float32[4] cpu"
    assert len(capture(fn=plain, kwargs={"y": X}, calls=[(X,), (X,)]).calls) == 2


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"z": 3}, r"capture has no argument 'z' \(given 3\); .*plain\(.*\) takes no 'z'"),
        ({"y": X, "yy": 1}, r"no argument 'yy' \(given 1\); did you mean 'y'"),
        ({"x": X}, "no argument 'x' .*takes no 'x'"),
        ({"y": X, "kwargs": {"y": X}}, "y is given twice, by name and in kwargs"),
        ({"y": X, "kwargs": 3}, "kwargs=3 is not a dict of keyword arguments"),
        ({"y": X, "backwards": False}, "did you mean 'backward'"),
    ],
)
def test_what_neither_takes(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        capture(plain, X, **keywords)


def test_an_argument_by_place_and_by_name() -> None:
    with pytest.raises(UsageError, match="multiple values for argument 'target'"):
        capture(lambda x, target: x, X, X, kwargs={"target": X})
    with pytest.raises(UsageError, match="multiple values for argument 'scale'"):
        capture(Scaled(), X, 2.0, scale=2.0)


def test_names_without_a_function_to_verify() -> None:
    x = torch.rand(4)
    with pytest.raises(
        UsageError, match=r"repeats the capture's own call and takes no y: .*verify\(f, x, y=…\)"
    ):
        capture(torch.sin, x).verify(y=x)


def test_a_rehearsed_function_has_a_world_size_of_its_own() -> None:
    def program(size: int, world_size: int = 2) -> None:
        torch.compile(torch.sin, backend="eager")(torch.rand(size))

    with pytest.raises(UsageError, match=r"rehearse has an option world_size.*kwargs=\{'world_size': …\}"):
        compile_lens.rehearse(program, 3, world_size=2)
    ranks = compile_lens.rehearse(program, size=3, world_size=2, kwargs={"world_size": 5})
    assert len(ranks.ranks) == 2
