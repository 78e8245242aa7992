"""``divergence`` makes no false accusation over OpInfo in float32 and bfloat16 or over models, forward or backward."""

from __future__ import annotations

from pathlib import Path

import pytest
from zoo import SMALL_MODELS
from zoo import entries as programs

import compile_lens

opinfo = pytest.importorskip("opinfo")
accusations = pytest.importorskip("accusations")

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PARTS = 60

SAMPLE = ("addmm", "amax", "logsumexp")
"""Entries of the full tier."""


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_entry_of_opinfo_is_accused_falsely(part: int, tmp_path: Path) -> None:
    pytest.importorskip("expecttest", reason="torch's list of operators needs it: pip install expecttest")
    names = sorted(opinfo.entries())[part::PARTS]
    opinfo.run(names, [], tmp_path / "rows", 900, 7000, accusations.__file__)
    rows = opinfo.read(tmp_path / "rows")
    assert set(rows) == set(names)
    assert {name: row["problems"] for name, row in rows.items() if row["problems"]} == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_opinfo_is_not_accused(name: str) -> None:
    pytest.importorskip("expecttest", reason="torch's list of operators needs it: pip install expecttest")
    row = accusations.judged(name, opinfo.entries()[name])
    assert row["verdicts"] and row["problems"] == []


@pytest.mark.cases(quick=0, full=1)
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_no_model_is_accused_falsely(name: str) -> None:
    (entry,) = (one for one in programs() if one.name == name)
    call = entry.make()
    divergence = compile_lens.divergence(call.fn, *call.args, kwargs=call.kwargs)
    assert divergence.agrees, str(divergence)
