"""The answers with which the page of a model opens, counted apart from them."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from samples_findings import CURVE

from compile_lens import capture
from compile_lens.views.live.items import Items
from compile_lens.views.live.opening import opening

pytestmark = pytest.mark.torch


def answers_of(record: object) -> dict[str, str]:
    return {str(one["title"]): str(one["words"]) for one in opening(record, Items(record))}  # type: ignore[arg-type]


def test_a_small_function_has_no_answers() -> None:
    assert answers_of(capture(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, torch.rand(64))) == {}


def test_the_answers_of_a_long_function() -> None:
    """By hand: one line has the matrix of 256 KiB, which no other line of 64 elements comes near."""

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


def test_recompiles_that_were_not_observed_are_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = capture(lambda x: [x.sin() + n for n in range(24)], torch.rand(4))
    assert answers_of(whole)["Eager"].endswith("0 recompiles")
    lacking = type(whole).lacks
    monkeypatch.setattr(
        type(whole), "lacks", lambda own, *names: "lost" if "recompiles" in names else lacking(own, *names)
    )
    assert answers_of(whole)["Eager"].endswith("recompiles not seen")
