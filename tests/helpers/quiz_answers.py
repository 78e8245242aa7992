"""Answers to the quiz by the key of the question, each computed with plain torch or by a capture.

The answer to a numeric question is that number, or the exact text of a value; for a multiple-choice question it is
the position of the correct choice, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from plain_graphs import compiled, whole
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from compile_lens import capture

ANSWERS: dict[str, Callable[[], float]] = {}

Function = Callable[..., Any]


def answer(key: str) -> Callable[[Callable[[], float]], Callable[[], float]]:
    def kept(function: Callable[[], float]) -> Callable[[], float]:
        ANSWERS[key] = function
        return function

    return kept


class Counted(TorchDispatchMode):
    """Counts the operators that eager PyTorch runs, and the bytes that they read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.operators, self.nbytes = 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operators += 1
        self.nbytes += sum(one.nbytes for one in (*args, result) if isinstance(one, torch.Tensor))
        return result


def counted(function: Function, *inputs: Any) -> Counted:
    with Counted() as mode:
        function(*inputs)
    return mode


def only(holds: Iterable[bool]) -> int:
    """Return the position of the only correct choice."""
    (place,) = [number for number, one in enumerate(holds) if one]
    return place


def launches(function: Function, *inputs: Any, **settings: Any) -> int:
    return capture(function, *inputs, **settings).ledger.total.launches


def atens(function: Function, *inputs: Any) -> list[str]:
    calls = capture(function, *inputs).compilations[0].graphs["inference"].calls
    return [call.target.split(".")[1] for call in calls if call.compute]


def step(function: Function, x: torch.Tensor, target: str) -> int:
    """Return how many numbers a C++ kernel processes at a time."""
    source = capture(function, x, target=target).kernels[0].source
    return max(map(int, re.findall(r"\+=static_cast<int64_t>\((\d+)L\)", source)))


def libraries(function: Function, *inputs: Any) -> int:
    return sum(kernel.language == "extern" for kernel in capture(function, *inputs).kernels)


X, MATRIX = torch.rand(1000), torch.rand(64, 64)


def four(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(torch.tanh(torch.cos(torch.sin(x))))


@answer("13.1")
def _() -> float:
    return counted(four, torch.rand(1_000_000)).nbytes / 1e6


@answer("13.2")
def _() -> float:
    return capture(four, torch.rand(1_000_000)).ledger.total.bytes_after / 1e6


@answer("13.3")
def _() -> float:
    choices = (lambda x: x + 1, lambda x: x @ x, F.gelu, torch.rsqrt)
    return only(libraries(one, MATRIX) > 0 for one in choices)


def asks(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    if x.max().item() > 1:
        y = y + 1
    return torch.cos(y)


@answer("13.4")
def _() -> float:
    graphs = compiled(asks, [(X,)])
    return [1, None, 2].index(graphs)  # the results are compared, and no error was raised


@answer("13.5")
def _() -> float:
    return counted(lambda x: 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.04 * x**3))), X).operators


def joined(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(torch.sin(x) + torch.cos(x)) * 2


@answer("1.1")
def _() -> float:
    return counted(joined, X).operators


@answer("1.2")
def _() -> float:
    return launches(joined, X)


@answer("1.3")
def _() -> float:
    graphs = capture(joined, torch.rand(8, requires_grad=True)).compilations[0].graphs
    stages = ("dynamo", "joint", "backward.loops")
    return only([any(call.derivative for call in graphs[s].calls) for s in stages[:2]])


@answer("1.4")
def _() -> float:
    return launches(lambda x: torch.sin(x @ x), MATRIX)


@answer("1.5")
def _() -> float:
    source = capture(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, X, target="cpu:avx2").kernels[0].source
    has = [".sin()" in source, ".cos()" in source]
    return [[False, False], [True, False], [True, True]].index(has)


def thrice(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    print("one")
    y = torch.cos(y)
    print("two")
    return torch.tanh(y)


def begins(x: torch.Tensor) -> torch.Tensor:
    print("start")
    return torch.sin(x)


@answer("2.1")
def _() -> float:
    return compiled(thrice, [(X,)])


@answer("2.2")
def _() -> float:
    return compiled(begins, [(X,)])


@answer("2.3")
def _() -> float:
    first, second = X, X.double()
    once, twice = (
        compiled(torch.sin, [(first,)]),
        compiled(lambda x: torch.sin(x), [(first,), (second,), (first,)]),
    )
    return [(1, 1), (1, 3), (1, 2)].index((once, twice))


@answer("2.4")
def _() -> float:
    other = X.clone()
    changed = (X * 100, other, X.double(), X.flip(0))
    return only(compiled(lambda x: torch.sin(x) + 1, [(X,), (one,)]) > 1 for one in changed)


@answer("2.5")
def _() -> float:
    def item(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum().item() > 0 else x - 1

    def chosen(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x + 1, x - 1)

    def turns(x: torch.Tensor) -> torch.Tensor:
        while x.sum() > 0:
            return x + 1
        return x - 1

    def caught(x: torch.Tensor) -> torch.Tensor:
        try:
            return x + 1 if bool(x.sum() > 0) else x - 1
        finally:
            pass

    return only(whole(one, X) for one in (item, turns, chosen, caught))


def sized(*sizes: int) -> list[tuple[torch.Tensor]]:
    return [(torch.rand(size),) for size in sizes]


def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2


@answer("3.1")
def _() -> float:
    return compiled(doubled, sized(4, 5, 6, 7, 8))


@answer("3.2")
def _() -> float:
    return compiled(doubled, sized(4, 5, 6, 7, 8), dynamic=False)


@answer("3.3")
def _() -> float:
    return compiled(doubled, sized(*range(8, 20)), dynamic=False)


@answer("3.4")
def _() -> float:
    few, more = (compiled(doubled, sized(*range(8, end)), dynamic=False) for end in (16, 20))
    return 1 if few == more else 0  # the results of all calls were compared, and no error was raised


@answer("3.5")
def _() -> float:
    calls = [(X, torch.tensor(one)) for one in (0.5, 1.5, 2.5)]
    return compiled(lambda x, s: x**s, calls)


@answer("4.1")
def _() -> float:
    return kept_by_eager(lambda x: torch.sin(torch.sin(x)))


def kept_by_eager(function: Function) -> int:
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one) or one, lambda one: one):
        function(torch.rand(8, requires_grad=True))
    return len(kept)


@answer("4.2")
def _() -> float:
    trained = capture(lambda x: torch.sin(torch.sin(x)), torch.rand(1000, requires_grad=True))
    return len(trained.compilations[0].partition.saved)


@answer("4.3")
def _() -> float:
    return kept_by_eager(lambda x: x * 2)


@answer("4.4")
def _() -> float:
    functions = (
        lambda x: torch.sin(torch.sin(x)),
        lambda x: torch.cos(torch.sin(x)),
        lambda x: torch.sin(x @ x),
        lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2,
    )
    x = torch.rand(64, 64, requires_grad=True)
    kept = (capture(one, x).compilations[0].partition.saved for one in functions)
    return only(any(not one.alias_of for one in saved) for saved in kept)


@answer("4.5")
def _() -> float:
    layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(4)]
    network = torch.nn.Sequential(*layers)

    def around_all(y: torch.Tensor) -> Any:
        return checkpoint(network, y, use_reentrant=False)

    def around_each(y: torch.Tensor) -> Any:
        for layer in layers:
            y = checkpoint(layer, y, use_reentrant=False)
        return y

    batch = torch.rand(4096, 64)
    peaks = [
        max(memory.peak for memory in capture(one, batch).compilations[0].memory)
        for one in (network, around_all, around_each)
    ]
    return only(peak < 0.8 * min(p for p in peaks if p is not peak) for peak in peaks)
