"""A record with something changed is refused, or every view and measure of it works: no error but our own."""

from __future__ import annotations

import json
from typing import Any

import mutations
import pytest

RAW = [json.loads(make().to_json()) for make in mutations.RECORDS.values()]


def bare(seeds: range, drawn: bool) -> dict[int, Any]:
    found = {s: mutations.bare(mutations.mutated(RAW[s % len(RAW)], s), drawn) for s in seeds}
    return {seed: errors for seed, errors in found.items() if errors}


def test_records_as_they_are() -> None:
    assert {i: errors for i, raw in enumerate(RAW[:3]) if (errors := mutations.bare(json.dumps(raw)))} == {}


def test_a_hundred_changed_records() -> None:
    assert bare(range(100), drawn=False) == {}


@pytest.mark.slow
def test_ten_thousand_changed_records() -> None:
    assert bare(range(10_000), drawn=False) == {}


@pytest.mark.slow
def test_drawings_of_changed_records() -> None:
    assert bare(range(500), drawn=True) == {}
