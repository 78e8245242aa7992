"""Lesson 10, what a compiler cannot rewrite: its output, and the claims of its text."""

from __future__ import annotations

import itertools
import math
import re

import lessons
import pytest
import torch
from torch._inductor.utils import run_and_get_code

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("10")


def _numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


@pytest.mark.exhaustive
def test_it_leaves_the_algebra_alone() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert f"no guess; the capture has {512 * 512:,} numbers" in cells["chain"]
    left, right = _numbers(cells["chain-bytes"])
    scores, rows, small = 512 * 512 * 4, 512 * 4 * 4, 4 * 4 * 4
    assert left == 2 * scores + 4 * rows and right == 2 * small + 4 * rows
    assert left > 60 * right, "as the text says"
    assert cells["chain-same"] == "False"
    two, one = (int(n.replace(",", "")) for n in re.findall(r"([\d,]+) bytes", cells["variance"]))
    assert abs(two / one - 2) < 0.01, "half of the traffic"
    rows_of = [line.split() for line in cells["variance-shifted"].splitlines()]
    passes = [(float(row[5]), float(row[8])) for row in rows_of]
    assert abs(passes[0][0] - passes[0][1]) < 1e-4
    assert all(abs(two - passes[0][0]) < 0.001 for two, _ in passes), "two passes stay right"
    assert all(abs(one - passes[0][0]) > 0.01 for _, one in passes[1:]), "one pass does not"


@pytest.mark.exhaustive
def test_an_algorithm_saves_the_memory() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    table = [_numbers(line) for line in cells["attention"].splitlines()[1:]]
    assert [row[0] for row in table] == [64, 128, 256, 512]
    for (_, textbook, bounded), (_, more, most) in itertools.pairwise(table):
        assert more == 2 * textbook
        assert 3 < most / bounded < 4
    assert table[-1][2] / table[-2][2] > 3.7, "nearly four times"


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    assert lessons.said(prose["blind"], r"intermediate result has (\d+) × (\d+) numbers") == (512, 512)
    assert "more than sixty times" in prose["chain-meaning"]
    assert lessons.said(prose["attention-meaning"], r"the other one nearly (\w+) times") == (4,)


@pytest.mark.exhaustive
def test_a_third_way_reads_once_and_stays_right() -> None:
    """The claims about ``var``, Welford, and the built-in exchanges, checked with plain torch."""
    prose = lessons.prose(NAME)
    assert "`x.var(correction=0)` reads x once and stays right" in prose["variance-meaning"]
    x = torch.rand(4096)
    wanted = x.double().var(correction=0).float()

    def var(x: torch.Tensor) -> torch.Tensor:
        return x.var(correction=0)

    torch._dynamo.reset()
    value, (code,) = run_and_get_code(torch.compile(var), x + 10_000)
    assert "Welford" in code and code.count("for(int64_t x") == 1, "one loop over x"
    torch.testing.assert_close(value, wanted, rtol=0.01, atol=0)
    assert "`x**3` becomes products, and a sum can be computed in another order" in prose["chain-reason"]
    for function, shown in ((torch.sum, "tmp_acc0_vec"), (lambda x: x**3, "tmp0 * tmp0")):
        torch._dynamo.reset()
        _, (code,) = run_and_get_code(torch.compile(function), x)
        assert shown in code


@pytest.mark.exhaustive
def test_a_softmax_in_blocks_stays_right() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    off = {tuple(line.split()[2:4]): float(line.split()[-1]) for line in cells["online"].splitlines()}
    assert set(off) == {(shift, name) for shift in ("0", "100") for name in ("plain", "online")}
    assert math.isnan(off.pop(("100", "plain"))) and max(off.values()) < 1e-6


@pytest.mark.exhaustive
def test_few_bits_become_numbers_before_the_product() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    operators, launches, moved = zip(
        *(_numbers(line.partition(" ")[2]) for line in cells["eight"].splitlines()), strict=True
    )
    assert launches == (2, 3, 2), "one loop in front of the product, or one behind it as well"
    assert operators[2] > 2 * operators[0], "however many operators it has"
    small, scale, numbers = 256 * 512, 512 * 4, 256 * 512 * 4
    others = (32 * 256 + 32 * 512) * 4
    assert moved[0] == small + scale + 2 * numbers + others
    assert moved[1] == small + scale + 2 * numbers + others + 2 * 32 * 512 * 4
    assert moved[2] == moved[0] - small // 2
    text = lessons.prose(NAME)["eight-meaning"]
    assert lessons.said(text, r"a matrix of ([\d,]+) bytes .* (\w+) times the size") == (
        numbers,
        numbers // small,
    )


@pytest.mark.exhaustive
def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
