"""Lesson 11, honest timing: what it prints, and what its text says of it; never how fast the machine is."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys

import lessons
import pytest
import torch

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("11")


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def _cells() -> dict[str, str]:
    return {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}


def test_the_first_call_is_of_another_order() -> None:
    cells = _cells()
    first, *others = _numbers(cells["calls"])
    assert len(others) == 5 and first > 5 * sorted(others)[2], "it compiled"
    fastest, slowest, median, low, high = _numbers(cells["spread"])
    assert fastest <= low <= median <= high <= slowest


def test_a_clock_does_not_say_what_was_computed() -> None:
    cells = _cells()
    assert cells["repeated"].startswith("operators of eager PyTorch: 100\n")
    assert "sines: you said 100, but the capture has 1 sine in the kernels" in cells["repeated"]
    assert "graphs: you said 5, but the capture has 0 graphs" in cells["followed"]
    assert "left to Python: function followed" in cells["followed"]
    assert cells["followed"].endswith("kept: graphs 1, launches 1\n")


def test_the_first_who_waits_gets_the_blame() -> None:
    alone, waited = map(_numbers, _cells()["later"].splitlines())
    assert alone[0] < alone[1] and waited[0] > waited[1], "the parts change places"
    assert all(abs(sum(shares) - 100) <= 0.1 for shares in (alone, waited))


def test_it_takes_turns_and_reckons_when_it_has_paid() -> None:
    cells = _cells()
    assert max(map(len, cells["turns"].splitlines())) <= 96, "lines that a narrow window shows whole"
    cells["turns"] = cells["turns"].replace("\n      ", " ")
    tables = re.findall(
        r"^(forward\S*): \d+ rounds of \d+ calls?, median \[quartiles\]$", cells["turns"], re.M
    )
    assert tables == ["forward", "forward+backward"]
    assert len(re.findall(r"^  eager .*operators$", cells["turns"], re.M)) == 2
    assert len(re.findall(r"^  compiled .* launch(?:es)?$", cells["turns"], re.M)) == 2
    rows = {
        line.split()[0]: tuple(map(int, re.findall(r"\d+", line))) for line in cells["parts"].splitlines()
    }
    assert rows == {"forward": (5, 1), "backward": (12, 1), "both": (17, 2)}
    assert rows["backward"][0] > rows["forward"][0], "the larger part of the work"
    said, *paid = cells["paid"].splitlines()
    assert re.fullmatch(r"compiling [\d.]+ s, saved in each call -?[\d.]+ ms", said)
    even = re.findall(r"break-even: (?:after ([\d,]+) calls|never)", cells["turns"])
    assert paid == [f"paid after {even[-1]} calls" if even[-1] else "never paid: compiled is not faster here"]
    assert re.fullmatch(r"paid after [\d,]+ calls|never paid: compiled is not faster here", *paid)


def test_torch_says_no_more_than_a_warning_of_what_it_leaves_to_python() -> None:
    """Plain torch, in a process of its own: nothing was compiled, no error, one warning."""
    code = """
import torch
def followed(x):
    total = 0.0
    for _ in range(4):
        x = torch.sin(x)
        total += x.sum().item()
    return x * total
made = []
torch.compile(followed, backend=lambda module, _: made.append(module) or module)(torch.rand(8))
print(len(made))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "0\n" and "Graph break from `Tensor.item()`" in ran.stderr
    assert "at most a warning, which the first cell of this page" in lessons.prose(NAME)["followed-meaning"]


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)

    def repeated(x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            y = torch.sin(x)
        return y

    total = capture(repeated, torch.rand(1024)).ledger.total
    assert (total.eager_ops, total.aten_ops) == (100, 1)
    assert prose["repeated-meaning"].startswith("Ninety-nine results are used by nobody")
    assert "of a hundred sines one was left" in prose["take-home"]
    assert lessons.said(prose["followed-meaning"], r"the four turns are (\w+) graph") == (1,)
    assert lessons.said(prose["turns-meaning"], r"There are (\w+) tables") == (2,)
    assert prose["calls-why"].startswith("## The same call, fifty times") and "range(50)" in prose["calls"]
    product = capture(lambda x: x @ x, torch.rand(64, 64, requires_grad=True)).ledger
    assert (product.forward.launches, product.backward.launches) == (1, 2)


def test_it_asks_before_it_shows() -> None:
    names = list(lessons.prose(NAME))
    assert all(
        a < b for a, b in itertools.pairwise(map(names.index, ("blind", "predict", "calls", "followed")))
    )


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME, 11)
