"""Names of inputs under decorators, checked against the values that the parameters get in a plain run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens.measures.input_names import input_names

pytestmark = pytest.mark.torch

SEEN: dict[str, float] = {}
"""The first number of what each parameter got."""


def body(**values: torch.Tensor) -> torch.Tensor:
    if not torch.compiler.is_compiling():
        SEEN.update((name, float(value.flatten()[0])) for name, value in values.items())
    return functools.reduce(torch.mul, [value.sin() for value in values.values()])


def plain(first: Any, second: Any, *more: Any, scale: Any) -> torch.Tensor:
    return body(first=first, second=second, scale=scale, **{f"more[{i}]": one for i, one in enumerate(more)})


def handing_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named) + 1

    return inner


def turned(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*arguments: Any, **named: Any) -> Any:
        arguments = arguments[::-1]
        return function(*arguments, **named)

    return inner


def scaled(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*arguments: Any, **named: Any) -> Any:
        named["scale"] = arguments[1]
        return function(*arguments, **named)

    return inner


def one_kept(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(kept: Any, *arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named) + kept

    return inner


@contextlib.contextmanager
def region() -> Any:
    yield


class Layer(torch.nn.Module):
    @torch.no_grad()
    def forward(self, first: Any, second: Any, *more: Any, scale: Any) -> torch.Tensor:
        return plain(first, second, *more, scale=scale)


NAMED: dict[str, Callable[..., Any]] = {
    "no_grad": torch.no_grad()(plain),
    "inference_mode": torch.inference_mode()(plain),
    "autocast": torch.autocast("cpu", enabled=False)(plain),
    "two of them": torch.no_grad()(torch.enable_grad()(plain)),
    "a decorator of the program's": handing_on(plain),
    "of the program's and of torch's": torch.no_grad()(handing_on(plain)),
    "a region of the program's": region()(plain),
    "a module": Layer(),
    "none": plain,
}
OTHERS: dict[str, Callable[..., Any]] = {
    "turned": turned(plain),
    "another keyword": scaled(plain),
    "one kept": one_kept(plain),
    "turned below no_grad": torch.no_grad()(turned(plain)),
}


def given() -> tuple[list[torch.Tensor], torch.Tensor]:
    return [torch.full((3,), float(number)) for number in (1, 2, 3)], torch.full((3,), 9.0)


def claimed(function: Callable[..., Any], *numbers: torch.Tensor, **named: torch.Tensor) -> dict[str, str]:
    """Return Dynamo's name of each input, keyed by its name on the page."""
    capture = compile_lens.capture(function, *numbers, **named)
    one = capture.compilations[-1]
    nodes = one.graphs["dynamo"].nodes
    pairs = ((input_names(capture).of(one.id, "dynamo", node.name), node.target) for node in nodes)
    return {name.name: target for name, target in pairs if name is not None}


def first_number(target: str) -> float:
    """The first number of the input with this Dynamo name: ``L_arguments_1_`` is the second tensor."""
    last = target.rstrip("_").rpartition("_")[2]
    known = {"first": 1.0, "second": 2.0, "scale": 9.0}
    return known[last] if last in known else float(last) + (3 if "more" in target else 1)


@pytest.mark.parametrize("case", NAMED)
def test_an_input_has_the_name_of_the_parameter_that_gets_it(case: str) -> None:
    numbers, scale = given()
    SEEN.clear()
    NAMED[case](*numbers, scale=scale)
    inputs = claimed(NAMED[case], *numbers, scale=scale)
    assert len(SEEN) == 4 and {name: first_number(target) for name, target in inputs.items()} == SEEN
    torch.compiler.reset()  # Dynamo would reuse the code of a region of another kind
    with compile_lens.watch() as program:
        torch.compile(NAMED[case], backend="eager")(*numbers, scale=scale)
    assert sorted(text.partition(":")[0] for text in program.graphs[-1].inputs) == sorted(SEEN)


@pytest.mark.parametrize("case", OTHERS)
def test_what_a_decorator_changes_has_the_name_that_the_decorator_gives_it(case: str) -> None:
    numbers, scale = given()
    inputs = claimed(OTHERS[case], *numbers, scale=scale)
    assert inputs and not {*inputs} & {"first", "second", "scale", "more[0]"}


def with_own(first: torch.Tensor, *args: torch.Tensor) -> torch.Tensor:
    return first.sin() * args[0]


def over_a_break(first: torch.Tensor, *args: torch.Tensor) -> torch.Tensor:
    args = args[::-1]
    print(end="")
    return first.sin() * args[0]


@pytest.mark.parametrize("function", [with_own, over_a_break])
def test_an_own_tuple_of_arguments_does_not_begin_with_the_first_parameter(
    function: Callable[..., torch.Tensor],
) -> None:
    assert {"first", "args[0]"} <= {*claimed(function, *given()[0])} <= {"first", "args[0]", "args[1]"}
