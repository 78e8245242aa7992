"""The verdict of ``verify`` against plain ``torch.compile``, over OpInfo and over models.

Plain torch compiles each in a separate call, and ``torch.testing.assert_close`` compares its values with eager's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from full_text import full
from zoo import SMALL_MODELS
from zoo import entries as programs

import compile_lens

opinfo = pytest.importorskip("opinfo")

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PARTS = 40

MODELS = (*SMALL_MODELS, "dropout_train", "flex_attention")


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_entry_of_opinfo_is_accused_falsely_or_crashes(part: int, tmp_path: Path) -> None:
    pytest.importorskip("expecttest", reason="torch's list of operators needs it: pip install expecttest")
    names = sorted(opinfo.entries())[part::PARTS]
    opinfo.run(names, ["--grad"], tmp_path / "rows", seconds=600, limit=7000)
    rows = opinfo.read(tmp_path / "rows")
    assert set(rows) == set(names)
    assert {name: row["problems"] for name, row in rows.items() if row["ok"] is False} == {}


@pytest.mark.cases(full=1)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive) if name == "encoder_train" else name
        for name in MODELS
    ],
)
def test_no_model_is_accused_falsely(name: str) -> None:
    (entry,) = (one for one in programs() if one.name == name)
    call, again = entry.make(), entry.make()
    torch.manual_seed(0)
    eager = call.fn(*call.args, **call.kwargs)
    torch.manual_seed(0)
    with torch._inductor.config.patch(fallback_random=True):
        plain: Any = torch.compile(again.fn)(*again.args, **again.kwargs)
    torch.testing.assert_close(plain, eager)
    third = entry.make()
    report = compile_lens.capture(
        third.fn, *third.args, kwargs=third.kwargs, build=True, keep_inputs=True
    ).verify()
    assert report.verdict == "agrees", full(report)
