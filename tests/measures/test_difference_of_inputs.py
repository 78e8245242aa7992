"""Differences between the inputs of two calls: layouts, parameters, modes of modules, torch's global settings.

The oracle is eager PyTorch: ``Tensor.stride()``, ``Module.training``, and torch's own getters.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from full_text import full

import compile_lens
from compile_lens import capture, diff

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

RECORDS = Path(__file__).parent / "records"
X, Y = torch.rand(64, 32), torch.rand(64, 32)
TURNED = torch.rand(32, 64).t()
IMAGES = torch.rand(2, 3, 8, 8)


def total(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x.sin() + y).sum(0)


def of_several(parts: dict[str, torch.Tensor]) -> torch.Tensor:
    return (parts["a"].sin() + parts["b"]).sum(0)


@torch._dynamo.disable
def as_it_is(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@torch._dynamo.disable
def turned(x: torch.Tensor) -> torch.Tensor:
    return (x.t() + 1).contiguous().t()


def broken(x: torch.Tensor, through: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    return through(x).sin().sum(0)


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.drop, self.norm = torch.nn.Linear(8, 8), torch.nn.Dropout(0.1), torch.nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.drop(self.fc(x)))


class Renamed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = torch.nn.Linear(8, 8), torch.nn.Dropout(0.1), torch.nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.three(self.two(self.one(x)))


def settings(found: compile_lens.Difference) -> list[str]:
    return [change.text for change in found.at("settings")]


@pytest.mark.full
@pytest.mark.parametrize(
    "options", [{}, {"target": "h100"}, {"dynamic": False}], ids=["here", "h100", "static"]
)
def test_a_layout_is_the_cause(options: dict[str, Any]) -> None:
    found = diff(capture(total, X, Y, **options), capture(total, TURNED, Y, **options))
    assert X.stride() != TURNED.stride() and X.shape == TURNED.shape
    before, after = map(str, (X.stride(), TURNED.stride()))
    assert settings(found) == [f"input 1 (`x`) has strides {after} (transposed), not {before} (contiguous)"]
    assert found.causes[0] == found.at("settings")[0]
    assert found.summary.startswith("input 1 (`x`) has strides")
    assert not diff(capture(total, X, Y, **options), capture(total, Y.clone(), X, **options))


def test_layouts_of_any_size() -> None:
    """Symbols of sizes have other names in each capture, so only strides of 1 are known."""
    one, other = capture(total, X, Y, dynamic=True), capture(total, TURNED, Y, dynamic=True)
    (text,) = settings(diff(one, other))
    assert text.startswith("input 1 (`x`) has strides (1, ")
    assert settings(diff(one, capture(total, X.clone(), Y, dynamic=True))) == []
    assert settings(diff(one, capture(total, X, Y))) == ["dynamic: True became none"]


def test_a_layout_in_a_container() -> None:
    difference = diff(capture(of_several, {"a": X, "b": Y}), capture(of_several, {"a": X, "b": TURNED}))
    assert settings(difference) == [
        f"`parts['b']` has strides {TURNED.stride()} (transposed), not {Y.stride()} (contiguous)"
    ]


def test_channels_last() -> None:
    conv, last = torch.nn.Conv2d(3, 8, 3), IMAGES.to(memory_format=torch.channels_last)
    plain = capture(conv, IMAGES)
    told = f"has strides {last.stride()} (channels last), not {IMAGES.stride()} (contiguous)"
    assert settings(diff(plain, capture(conv, last))) == [f"input 1 (`input`) {told}"]
    before = conv.weight.stride()
    conv.to(memory_format=torch.channels_last)
    assert conv.weight.stride() != before
    assert settings(diff(plain, capture(conv, IMAGES))) == [
        f"`weight` has strides {conv.weight.stride()} (channels last), not {before} (contiguous)"
    ]


def test_what_stands_in_a_later_graph_is_no_input() -> None:
    """Values that Python hands to a resume function are not inputs from the caller."""
    difference = diff(capture(broken, X, as_it_is), capture(broken, X, turned))
    (text,) = [c.text for c in difference.at("lines")]
    assert as_it_is(X).stride() == (32, 1) and turned(X).stride() == (1, 64)
    value = "(value 1 from before the break)"
    assert (
        text == f"`{value}` has strides (1, 64) (transposed), not (32, 1) (contiguous), where broken goes on"
    )
    assert not any("strides" in text for text in settings(difference))


@pytest.mark.exhaustive
def test_train_and_eval() -> None:
    module, x = Small(), torch.rand(4, 8)
    trained, in_training = capture(module, x), {n for n, m in module.named_modules() if m.training}
    evaluated = capture(module.eval(), x)
    assert in_training == {"", "fc", "drop", "norm"} and not any(m.training for m in module.modules())
    forth, back = diff(trained, evaluated), diff(evaluated, trained)
    assert (
        forth.causes[0].text == "modules `drop` and `norm`: train() became eval()"
    )  # a Linear does not depend on it
    assert back.causes[0].text == "modules `drop` and `norm`: eval() became train()"
    # The consequence is reported as a changed argument of the program, and no buffer becomes another.
    said = [c.text for c in forth.at("lines")]
    assert "torch.nn.functional.dropout: argument 3: True → False" in said, said
    assert not any("in place of" in text for text in said), said
    module.drop.train()
    assert settings(diff(evaluated, capture(module, x))) == ["module `drop`: eval() became train()"]
    other = diff(trained, capture(Renamed().eval(), x))
    assert other.causes[0].text == "modules `three` and `two`: train() became eval()"
    assert settings(diff(trained, capture(Renamed(), x))) == []


def test_a_module_itself() -> None:
    drop, x = torch.nn.Dropout(0.5), torch.rand(8)
    difference = diff(capture(drop, x), capture(drop.eval(), x))
    assert difference.causes[0].text == "the module: train() became eval()"


@pytest.mark.full
def test_parameters_that_are_otherwise() -> None:
    module, x = Small(), torch.rand(4, 8)
    before = capture(module, x)
    module.fc.requires_grad_(False)
    difference = diff(before, capture(module, x))
    assert settings(difference) == ["`fc.weight` and `fc.bias` have requires_grad False, not True"]
    halves = diff(before, capture(Small().to(torch.float64), x.double()))
    assert settings(halves)[0] == "input 1: float32[4, 8] cpu became float64[4, 8] cpu"
    assert any(text.endswith("have type float64, not float32") for text in settings(halves)[1:])


@pytest.mark.parametrize("rows", [64, 8])
def test_a_parameter_that_looks_like_an_input_is_told(rows: int) -> None:
    """64 × 64 is also the shape of the weight."""
    module = torch.nn.Sequential(torch.nn.Linear(64, 64))
    x = torch.rand(rows, 64)
    before = capture(module, x)
    module.double()
    difference = diff(before, capture(module, x.double()))
    names = [name for name, _ in module.named_parameters()]
    assert names == ["0.weight", "0.bias"]
    first, second = settings(difference)
    assert first == f"input 1: float32[{rows}, 64] cpu became float64[{rows}, 64] cpu"
    assert second == "`0.weight` and `0.bias` have type float64, not float32"


@pytest.mark.parametrize("packed", [False, True])
def test_an_input_is_told_once(packed: bool) -> None:
    def of_packed(*args: torch.Tensor) -> torch.Tensor:
        return (args[0].sin() + args[1]).sum(0)

    fn = of_packed if packed else total
    difference = diff(capture(fn, X, Y), capture(fn, X.double(), Y))
    assert settings(difference) == ["input 1: float32[64, 32] cpu became float64[64, 32] cpu"]


@contextlib.contextmanager
def precise(value: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(value)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def deterministic(warn: bool) -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=warn)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


GLOBAL: dict[str, tuple[Callable[[], Any], str]] = {
    "precision": (lambda: precise("high"), "float32 matmul precision: highest became high"),
    "deterministic": (lambda: deterministic(False), "deterministic algorithms: off became on"),
    "warned": (lambda: deterministic(True), "deterministic algorithms: off became warn only"),
    "no grad": (torch.no_grad, "grad mode: on became off"),
    "inference": (torch.inference_mode, "grad mode: on became inference"),
    "autocast": (lambda: torch.autocast("cpu", dtype=torch.bfloat16), "autocast: off became cpu bfloat16"),
    "dtype": (lambda: default(torch.float64), "default dtype: float32 became float64"),
}


@pytest.mark.full
@pytest.mark.parametrize("target", [None, "h100"])
@pytest.mark.parametrize("name", GLOBAL)
@pytest.mark.cases(full=4)
def test_a_global_setting_is_told(name: str, target: str | None) -> None:
    if (name, target) == ("autocast", "h100"):
        pytest.skip("a region of autocast of the CPU casts nothing of another device's")
    options: dict[str, Any] = {"target": target} if target else {}
    within, said = GLOBAL[name]
    plain = capture(total, X, Y, **options)
    with within():
        inside = capture(total, X, Y, **options)
        assert not diff(inside, capture(total, X, Y, **options))
    difference = diff(plain, inside)
    assert settings(difference) == [said] and difference.causes[0].text == said
    assert difference.unknown == ()


def test_what_a_record_does_not_say_is_unknown() -> None:
    """Older records have no settings, so the report has neither a difference nor its absence."""
    with precise("high"):
        inside = capture(total, X, Y)
    plain = capture(total, X, Y)
    older = dataclasses.replace(plain, environment=dataclasses.replace(plain.environment, settings=()))
    assert compile_lens.Capture.from_json(older.to_json()) == older
    difference = diff(older, inside)
    assert settings(difference) == []
    (unknown,) = difference.unknown
    assert "float32 matmul precision" in unknown and "the record of the first does not say" in unknown
    assert "not compared" in full(difference)
    between = diff(RECORDS / "torch-2.11.json", RECORDS / "torch-2.13.json")
    assert any("neither record says how torch was configured" in reason for reason in between.unknown)
    assert settings(between)[0].startswith("torch: ")
