"""Compares advice for graph breaks with plain torch that follows it."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from plain_graphs import compiled, whole

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
    warnings.warn("no mask")  # noqa: B028  # a keyword would keep it in its place
    return x + 1


def logged(x: torch.Tensor) -> torch.Tensor:
    logging.warning("a %s", 3)
    return x + 1


def mean(x: torch.Tensor) -> float:
    return x.mean().item()


def later(x: torch.Tensor) -> torch.Tensor:
    number = mean(x)
    y = x.cos()
    return y if number < 2 else y + 1


def of_a_helper(x: torch.Tensor) -> torch.Tensor:
    return x * mean(x)


def computed(x: torch.Tensor, scale: int = 3) -> torch.Tensor:
    number = int(x.sum())
    number += 1
    half = number / 2 * scale
    x = x + 1
    if not half > 3:
        return x
    return x * 2


def clamped(x: torch.Tensor, bound: float) -> torch.Tensor:
    if bound > 2:
        return x.clamp(max=bound)
    return x


def handed_over(x: torch.Tensor) -> torch.Tensor:
    return clamped(x, x.max().item())


def repeated(x: torch.Tensor) -> torch.Tensor:
    number = int(x.sum())
    for _ in range(number):
        x = x + 1
    return x


def listed(x: torch.Tensor) -> torch.Tensor:
    numbers = x.long().tolist()
    if numbers[0] > 3:
        return x + 1
    return x


def truth_of_one(x: torch.Tensor) -> torch.Tensor:
    numbers = x.long().tolist()
    if numbers[0]:
        return x + 1
    return x


def sizes(x: torch.Tensor) -> torch.Tensor:
    return torch.split(x, x.long().tolist())[0]


def no_branch(x: torch.Tensor) -> torch.Tensor:
    number = x.sum().item()
    return x * number if number is not None else x


def of_the_tensor(x: torch.Tensor) -> torch.Tensor:
    number = x.sum().item()
    y = x * number
    return y + 1 if y.dim() > 0 else y


def replaced(x: torch.Tensor) -> torch.Tensor:
    number = x.sum().item()
    y = x * number
    number = 3
    return y if number > 2 else x


class Gated(torch.nn.Module):
    limit = 3.0

    def number(self, x: torch.Tensor) -> float:
        return x.mean().item()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        number = self.number(x)
        if number > self.limit:
            return x * 2
        return x


def first_hint(function: Callable[..., Any]) -> str:
    (ending, *_) = compile_lens.capture(function, torch.ones(4)).breaks
    return outcome.reason(ending).hint.partition("\n")[0]


@pytest.mark.parametrize("function", [branch, choice, loop, factor, factor_of_some])
def test_a_branch_on_a_number_needs_more_than_the_setting(function: Callable[..., Any]) -> None:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        helps = whole(function, torch.ones(4))
    hint = first_hint(function)
    assert (hint == break_advice.BRANCH.format("")) == (not helps) and CAPTURE_SCALARS in hint


ELSEWHERE = [
    later,
    of_a_helper,
    computed,
    handed_over,
    repeated,
    listed,
    sizes,
    no_branch,
    of_the_tensor,
    replaced,
]


@pytest.mark.cases(quick=3)
@pytest.mark.parametrize("function", [*ELSEWHERE, Gated()], ids=lambda f: getattr(f, "__name__", "Gated"))
def test_a_branch_on_another_line_needs_more_than_the_setting_too(function: Callable[..., Any]) -> None:
    """Plain torch with the setting has one graph, or a break at the branch."""
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        helps = whole(function, torch.ones(4))
    breaks = compile_lens.capture(function, torch.ones(4)).breaks
    for ending in breaks:
        hint = outcome.reason(ending).hint
        assert (f"{CAPTURE_SCALARS} = True" in hint) == helps
        assert hint.startswith("Choose between two results") == (not helps)
        assert helps or re.search(r"at the branch at test_break_advice\.py:\d+, ", hint)
    assert breaks


NUMBERS = [1.0, 2.0, 3.0, 4.0]
TENSORS = [torch.full((4,), number) for number in NUMBERS]


def element(x: torch.Tensor) -> torch.Tensor:
    return x * NUMBERS[x.argmax().item()]


def element_as_a_tensor(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor(NUMBERS)[x.argmax().item()]


def element_of_own(x: torch.Tensor) -> torch.Tensor:
    rows = [x * 2, x * 3, x * 4, x * 5]
    index = int(x.argmax())
    y = x.cos()
    return y + rows[index]


def element_of_own_as_a_tensor(x: torch.Tensor) -> torch.Tensor:
    rows = torch.stack([x * 2, x * 3, x * 4, x * 5])
    return x.cos() + rows[x.argmax().item()]


class Table(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = list(TENSORS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.rows[x.argmax().item()]


def table_as_a_tensor(x: torch.Tensor) -> torch.Tensor:
    return x + torch.stack(TENSORS)[x.argmax().item()]


def of_an_argument(x: torch.Tensor, rows: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)) -> torch.Tensor:
    return x * rows[x.argmax().item()]


@pytest.mark.cases(quick=1)
@pytest.mark.parametrize(
    ("function", "followed"),
    [
        (element, element_as_a_tensor),
        (element_of_own, element_of_own_as_a_tensor),
        (Table(), table_as_a_tensor),
        (of_an_argument, element_as_a_tensor),
    ],
    ids=["global", "own", "module", "argument"],
)
def test_an_element_of_a_list_is_taken_from_a_tensor(function: Any, followed: Callable[..., Any]) -> None:
    """Torch's own advice does not give a single graph; ours gives one with the same values."""
    x = torch.tensor([0.0, 3.0, 1.0, 2.0])
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        with pytest.raises(Exception, match="data-dependent"):
            torch.compile(function, backend="eager", fullgraph=True)(x)
        assert whole(followed, x) and torch.equal(followed(x), function(x))
    (ending, *_) = compile_lens.capture(function, x).breaks
    assert outcome.reason(ending).hint.startswith("Make one tensor of the list")


def test_a_branch_on_an_element_of_numbers_is_a_branch() -> None:
    assert first_hint(truth_of_one).startswith("Choose between two results")


def of_an_input(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return x * NUMBERS[n.item()]


def test_an_index_that_is_given_compiles_again_for_each_value() -> None:
    calls = [(torch.ones(4), torch.tensor(n)) for n in range(3)]
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert compiled(of_an_input, calls) == 3
    (ending, *_) = compile_lens.capture(of_an_input, *calls[0]).breaks
    assert "compiles again for each value" in outcome.reason(ending).hint


def of_a_tensor(x: torch.Tensor) -> torch.Tensor:
    rows = torch.stack(TENSORS)
    return x + rows[x.argmax().item()]


def test_an_element_of_a_tensor_needs_only_the_setting() -> None:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert whole(of_a_tensor, torch.ones(4))
    assert first_hint(of_a_tensor).startswith("Set `torch._dynamo.config.capture_scalar_outputs")


@pytest.mark.parametrize(
    ("function", "called"), [(printed, print), (warned, warnings.warn), (logged, logging.warning)]
)
def test_a_logging_call_can_run_after_the_graph(function: Callable[..., Any], called: Any) -> None:
    hint = first_hint(function)
    setting = torch._dynamo.config.reorderable_logging_functions
    given, names = set(setting), {"print": print, "warnings": warnings, "logging": logging}
    assert not whole(function, torch.ones(4))
    try:
        exec(hint.partition("Remove the call, or ")[2].partition(" to run it")[0], {"torch": torch, **names})
        assert setting - given == {called} and whole(function, torch.ones(4))
        with torch._dynamo.config.patch(reorderable_logging_functions={called}):
            assert not compile_lens.capture(function, torch.ones(4)).breaks
    finally:
        setting.intersection_update(given)


def ended(x: torch.Tensor) -> torch.Tensor:
    print("sum", end="!")
    return x + 1


def test_a_keyword_of_a_logging_call_does_not_come_after_the_graph(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Torch refuses to move the call, or drops the keyword."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(reorderable_logging_functions={print}):
        with contextlib.suppress(torch._dynamo.exc.Unsupported):
            torch.compile(ended, backend="eager", fullgraph=True)(torch.ones(4))
    assert "!" not in capsys.readouterr().out
    assert first_hint(ended).endswith("positional tensors, constants or strings, not shapes.")


def test_where_the_arguments_do_not_allow_it_the_advice_is_torchs() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        print(x.shape)
        return x + 1

    with torch._dynamo.config.patch(reorderable_logging_functions={print}):
        assert "args that are not supported" in first_hint(f)


@pytest.mark.parametrize("itself", [True, False], ids=["the step", "a function that calls it"])
def test_of_a_step_with_a_scheduler_nothing_has_to_change(itself: bool) -> None:
    """Plain torch compiles the step, though Dynamo skips the scheduler's wrapper around it."""
    sizes: list[int] = []

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        sizes.append(len(gm.graph.nodes))
        return gm.forward

    def call(backend: Any) -> None:
        torch._dynamo.reset()
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.RMSprop([weight], lr=0.5)
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5)

        def step() -> None:
            optimizer.step()

        (weight * 2).sum().backward()
        torch.compile(optimizer.step if itself else step, backend=backend)()

    call(backend)
    assert max(sizes) > 4, "square, mean, root, quotient and more"
    with compile_lens.watch() as program:
        call("eager")
    text = " ".join(program.text("full").split())
    assert "there is nothing to change" in text and break_advice.SCHEDULED in text
    assert "Avoid calling" not in text and "file an issue" not in text and ". the line" not in text
    if itself:
        assert "in step broke the graph, also" in text, "torch's function in between bears the step's name"
