"""The answers at the top of a model's page, counted independently of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from samples_findings import CURVE

from compile_lens import capture
from compile_lens.measures.unfused_pairs import all_unfused_pairs
from compile_lens.views.live.items import Items
from compile_lens.views.live.opening import opening
from compile_lens.views.words.answers import answers

pytestmark = pytest.mark.torch


def answers_of(record: object) -> dict[str, str]:
    return {str(one["title"]): str(one["words"]) for one in opening(record, Items(record))}  # type: ignore[arg-type]


def test_a_small_function_has_no_answers() -> None:
    assert answers_of(capture(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, torch.rand(64))) == {}


def test_the_answers_of_a_long_function() -> None:
    """By hand: one line has the matrix of 256 KiB, far larger than any other line of 64 elements."""

    def long(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(24):
            x = torch.sin(x) + 1
        return (x @ w).relu()

    whole = capture(long, torch.rand(1, 64), torch.rand(64, 1024))
    answers = answers_of(whole)
    assert list(answers) == ["Cost", "Try first", "Memory", "Eager"]
    line = long.__code__.co_firstlineno + 3
    place, share = answers["Cost"].split(" %")[0].split(": ")
    assert place == f"test_opening_answers.py:{line}" and int(share) > 95
    assert answers["Memory"].startswith("peak ~") and answers["Memory"].count("KiB") == 2
    assert answers["Eager"] == "nothing: 1 graph, 0 breaks, 0 recompiles"
    assert "max-autotune" not in answers["Try first"] or "at most" in answers["Try first"]
    curved = dataclasses.replace(whole, budget_curve=CURVE)  # 8 MiB at the default, 4 MiB at 0.5
    assert answers_of(curved)["Memory"] == f"{answers['Memory']}; budget 0.5: −50 %"


@pytest.mark.full
def test_recompiles_that_were_not_observed_are_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = capture(lambda x: [x.sin() + n for n in range(24)], torch.rand(4))
    assert answers_of(whole)["Eager"].endswith("0 recompiles")
    lacking = type(whole).lacks
    monkeypatch.setattr(
        type(whole), "lacks", lambda own, *names: "lost" if "recompiles" in names else lacking(own, *names)
    )
    assert answers_of(whole)["Eager"].endswith("recompiles not seen")


def test_each_kernel_of_written_attention_says_why_it_is_separate() -> None:
    """By hand: both matrix products are library calls, and the softmax kernel is between them."""

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = (q @ k.mT) * 0.5
        mask = torch.ones(64, 64).tril()
        return scores.masked_fill(mask == 0, float("-inf")).softmax(-1) @ v

    whole = capture(attention, *(torch.rand(2, 4, 64, 16) for _ in range(3)))
    every = answers(whole)
    assert len(every) == 3
    for answer in every.values():
        parts = dict(answer.parts)
        assert list(parts) == ["", "Try", "Not fused"] or list(parts) == ["Try", "Not fused"]
        assert "scaled_dot_product_attention" in parts["Try"]
        assert "bmm is a library call" in parts["Not fused"]
    (softmax,) = (dict(one.parts) for key, one in every.items() if "softmax" in key[2])
    assert "(nor with #" in softmax["Not fused"], "both products, for the same reason"


def test_a_remedy_names_the_lines_of_the_loops_that_it_is_for() -> None:
    """By hand: the first text describes the product above, to which this remedy does not apply."""

    def mixed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.silu(a) * b
        weights = torch.softmax(x, 1)
        centred = x - x.mean((0, 1))
        for _ in range(16):
            b = b + 1
        return weights * centred + b

    softmax = mixed.__code__.co_firstlineno + 2
    whole = capture(mixed, torch.rand(16, 64, 128), torch.rand(16, 64, 128))
    kernel = max(answers(whole).values(), key=lambda one: one.saved)
    parts = dict(kernel.parts)
    assert "not the same elements" in parts["Not fused"]
    lines = parts["Try"].partition("for loops of test_opening_answers.py:")[2].partition(", at most ")[0]
    assert (
        {softmax, softmax + 4}
        <= {int(one) for one in lines.split(", ")}
        <= {softmax, softmax + 1, softmax + 4}
    )
    assert "last dimension" in parts["Try"] and kernel.saved < 4 * 16 * 64 * 128 * 4
    assert f"{kernel.loops} in #1: {kernel.gain}" in answers_of(whole)["Try first"]


def test_the_lines_that_words_name_are_data() -> None:
    def around(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() * (lambda: 3)()
        return (y @ y).cos()

    first = around.__code__.co_firstlineno
    pairs = all_unfused_pairs(capture(around, torch.rand(8, 8)))
    (why,) = (pair.why for pair in pairs if "sin" in pair.why.words[0])
    assert {(frame.file, frame.line) for frame in why.lines} == {(__file__, first + 1), (__file__, first + 2)}
    assert all(f"({Path(__file__).name}:{frame.line})" in words for frame, words in zip(why.lines, why.words))
