"""A mutated record is refused, or every view and measure of it works: the only errors are our own.

The exhaustive tests take a few minutes. ``COMPILE_LENS_SEEDS=10000`` tries that many (an hour, with drawings).
"""

from __future__ import annotations

import json
import os
from typing import Any

import mutations
import pytest

from compile_lens.layout import engine

SEEDS = int(os.environ.get("COMPILE_LENS_SEEDS", "0"))
"""Records to try in the exhaustive tests; 0: as many as take a few minutes."""

RAW = [json.loads(make().to_json()) for make in mutations.RECORDS.values()]


def bare(seeds: range, drawn: bool) -> dict[int, Any]:
    found = {s: mutations.bare(mutations.mutated(RAW[s % len(RAW)], s), drawn) for s in seeds}
    return {seed: errors for seed, errors in found.items() if errors}


@pytest.fixture(autouse=True)
def quick_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run", mutations.asked_once(engine.run))


def test_records_as_they_are() -> None:
    assert {i: errors for i, raw in enumerate(RAW[:3]) if (errors := mutations.bare(json.dumps(raw)))} == {}


# A kernel of another phase than its module; a duplicate stage; two nodes of one name; half of a surrogate pair in a
# fold.
@pytest.mark.parametrize("seed", [20_253, 20_297, 6_959, 244, 23_529])
def test_changed_records_that_once_failed(seed: int) -> None:
    assert bare(range(seed, seed + 1), drawn=False) == {}


@pytest.mark.exhaustive
def test_a_hundred_changed_records() -> None:
    assert bare(range(100), drawn=False) == {}


@pytest.mark.full
def test_a_few_drawings_of_changed_records() -> None:
    assert bare(range(100, 110), drawn=True) == {}


@pytest.mark.exhaustive
@pytest.mark.timeout(4 * 3600)
def test_thousands_of_changed_records() -> None:
    assert bare(range(SEEDS or 3000), drawn=False) == {}


@pytest.mark.exhaustive
@pytest.mark.timeout(4 * 3600)
def test_drawings_of_changed_records() -> None:
    assert bare(range(20_000, 20_000 + (SEEDS or 250)), drawn=True) == {}
