"""Advice for graph breaks, against plain torch that follows it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from plain_graphs import whole

import compile_lens
from compile_lens.record.remedies import CAPTURE_SCALARS
from compile_lens.views.words import break_advice, outcome

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def branch(x: torch.Tensor) -> torch.Tensor:
    if x.sum().item() > 0:
        return x * 2
    return x * 3


def choice(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.max().item() > 3 else x


def loop(x: torch.Tensor) -> torch.Tensor:
    while x.sum().item() < 100:
        x = x * 2
    return x


def factor(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def factor_of_some(x: torch.Tensor, scaled: bool = True) -> torch.Tensor:
    return x * (x.sum().item() if scaled else 1)


def printed(x: torch.Tensor) -> torch.Tensor:
    print("sum", x.sum())
    return x + 1


def warned(x: torch.Tensor) -> torch.Tensor:
    warnings.warn("no mask", stacklevel=1)
    return x + 1


def logged(x: torch.Tensor) -> torch.Tensor:
    logging.warning("a %s", 3)
    return x + 1


def first_hint(function: Callable[..., Any]) -> str:
    (ending, *_) = compile_lens.capture(function, torch.ones(4)).breaks
    return outcome.reason(ending).hint.partition("\n")[0]


@pytest.mark.parametrize("function", [branch, choice, loop, factor, factor_of_some])
def test_a_branch_on_a_number_needs_more_than_the_setting(function: Callable[..., Any]) -> None:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        helps = whole(function, torch.ones(4))
    hint = first_hint(function)
    assert (hint == break_advice.BRANCH) == (not helps) and CAPTURE_SCALARS in hint


@pytest.mark.parametrize(
    ("function", "called"), [(printed, print), (warned, warnings.warn), (logged, logging.warning)]
)
def test_a_logging_call_can_run_after_the_graph(function: Callable[..., Any], called: Any) -> None:
    hint = first_hint(function)
    setting = torch._dynamo.config.reorderable_logging_functions
    given, names = set(setting), {"print": print, "warnings": warnings, "logging": logging}
    assert not whole(function, torch.ones(4))
    try:
        exec(hint.partition("Remove the call, or ")[2].partition(":")[0], {"torch": torch, **names})
        assert setting - given == {called} and whole(function, torch.ones(4))
        with torch._dynamo.config.patch(reorderable_logging_functions={called}):
            assert not compile_lens.capture(function, torch.ones(4)).breaks
    finally:
        setting.intersection_update(given)


def test_where_the_arguments_do_not_allow_it_the_advice_is_torchs() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        print(x.shape)
        return x + 1

    with torch._dynamo.config.patch(reorderable_logging_functions={print}):
        assert "args that are not supported" in first_hint(f)
