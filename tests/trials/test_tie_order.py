"""Results that depend on the order of equal elements, which torch does not guarantee, do not count as different."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import capture
from compile_lens.trials.trial import Trial

pytestmark = [pytest.mark.torch]

X = torch.tensor([[2.0, 1.0, 2.0, 1.0, 3.0, 3.0], [0.0, 0.0, 0.0, 5.0, 5.0, 1.0]])


def last_of_equal(x: torch.Tensor, descending: bool = False) -> torch.Tensor:
    """A correct sort that puts equal elements in reverse order: by hand, in Python."""
    rows = [
        sorted(range(x.shape[1]), key=lambda i, row=row: (-row[i] if descending else row[i], -i))
        for row in x.tolist()
    ]
    return torch.tensor(rows)


Function = Callable[[torch.Tensor], Any]
CASES: dict[str, tuple[Function, Function, bool]] = {
    # The eager function, another way to compute it, and whether that is equally right.
    "argsort": (lambda x: x.argsort(1), last_of_equal, True),
    "descending": (lambda x: x.sort(1, True)[1], lambda x: last_of_equal(x, True), True),
    "topk": (lambda x: x.topk(2)[1], lambda x: 5 - x.flip(1).topk(2)[1], True),
    "gathered": (
        lambda x: torch.arange(6.0)[x.argsort(1)] * 2, lambda x: torch.arange(6.0)[last_of_equal(x)] * 2, True
    ),
    "stable": (lambda x: x.round().argsort(dim=1, stable=True), last_of_equal, False),
    "values": (lambda x: x.sort(1)[0], lambda x: x.sort(1)[0] + 1, False),
    "no equal elements": (lambda x: (x + torch.arange(6) / 8).argsort(1), last_of_equal, False),
    "the first of equal": (lambda x: x.argmax(1), lambda x: last_of_equal(x, True)[:, 0], False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_another_order_of_equal_elements_is_no_difference(name: str) -> None:
    eager, other, as_right = CASES[name]
    report = Trial(eager, (X,), {}, False, False, False).against(lambda fn, args, kwargs: other(*args))
    assert report.ok is (None if as_right else False), full(report)
    assert ("which of equal elements comes first" in full(report)) == as_right


@pytest.mark.full
def test_triton_may_sort_equal_elements_in_another_order() -> None:
    pytest.importorskip("triton")
    x = torch.randn(64, generator=torch.Generator().manual_seed(0))

    def order(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = x.round().sort()
        return values, indices

    report = capture(order, x, target="h100").verify(order, x)
    assert report.verdict in ("agrees", "agrees in part") and report.comparisons[0].ok, full(report)
