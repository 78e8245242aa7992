"""Lesson 10, what a compiler cannot rewrite: what it prints, and what its text says of it."""

from __future__ import annotations

import itertools
import re

import lessons
import pytest

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("10")


def _numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def test_it_leaves_the_algebra_alone() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert f"you said 16, but the capture has {512 * 512:,} numbers" in cells["chain"]
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
    assert lessons.said(prose["blind"], r"in between has (\d+) × (\d+) numbers") == (512, 512)
    assert "more than sixty times" in prose["chain-meaning"]
    assert lessons.said(prose["attention-meaning"], r"the other one nearly (\w+) times") == (4,)


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME, 10)
