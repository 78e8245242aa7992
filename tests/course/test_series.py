"""A series of captures: a table everywhere, and a slider where scripts run."""

from __future__ import annotations

import pytest
import torch

import compile_lens
from compile_lens import UsageError, course

pytestmark = pytest.mark.torch


def f(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 0) * 2


@pytest.fixture(scope="module")
def rows() -> course.Series:
    """Return the same function on two sizes; the second also in another kernel, as its sum is of one number."""
    return course.series("rows", {rows: compile_lens.capture(f, torch.rand(rows, 4)) for rows in (4, 1)})


def test_it_says_what_each_launches_and_moves(rows: course.Series) -> None:
    head, *lines = (line.split() for line in str(rows).splitlines()[-3:])
    assert head == ["rows", "eager", "operators", "launches", "bytes", "moved"]
    for line, (value, capture) in zip(lines, rows.captures.items(), strict=True):
        total = capture.ledger.total
        assert line[:3] == [value, str(total.eager_ops), str(total.launches)]
    assert [*rows.captures] == ["4", "1"] and repr(rows) == "<Series by rows: 4, 1>"


def test_its_cell_is_a_table_without_scripts(rows: course.Series) -> None:
    shown = rows._repr_mimebundle_()
    static = shown["text/html"].partition("<script")[0]
    assert "<table" in static and "eager operators" in static and "bytes moved" in static
    assert shown["text/plain"].count("\n") < 20
    assert [*rows._repr_mimebundle_(include=["text/plain"])] == ["text/plain"]


def test_it_is_made_of_captures() -> None:
    with pytest.raises(UsageError, match="consists of captures, not of Tensor"):
        course.series("rows", {1: torch.rand(1), 2: torch.rand(2)})  # type: ignore[dict-item]
    capture = compile_lens.capture(f, torch.rand(4))
    with pytest.raises(UsageError, match="at least two captures, and this one has 1"):
        course.series("rows", {4: capture})
