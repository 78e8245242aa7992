"""A sample of torch's own operators: value and launches against plain torch (``opinfo.py`` covers all of them)."""

from __future__ import annotations

import pytest

pytest.importorskip("expecttest", reason="torch's list of operators needs it: pip install expecttest")

from opinfo import entries, judged, problems

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SAMPLE = (
    "aminmax",
    "cat",
    "cumsum",
    "fft.fftn",
    "fft.irfft2",
    "gather",
    "index_put",
    "linalg.inv",
    "masked.softmin",
    "mm",
    "native_layer_norm",
    "new_zeros",
    "nn.functional.dropout",
    "nn.functional.embedding",
    "nn.functional.pad.reflect",
    "nn.functional.rrelu",
    "rand_like",
    "sort",
    "split",
    "sum",
    "view_as_complex",
)


@pytest.mark.cases(full=2)
@pytest.mark.parametrize("name", SAMPLE)
def test_value_and_launches_are_torchs(name: str) -> None:
    known = entries()
    if name not in known:
        pytest.skip("reason: this torch does not list it")
    row = judged(name, known[name], grad=False)
    assert row["ok"] in (True, None), row["problems"]


def test_another_number_is_a_problem() -> None:
    torchs = {"launches": 2, "calls": {}, "same": True}
    mine = {"launches": 2, "verdict": "agrees", "same_code": True}
    assert not problems("sin", torchs, mine)
    for wrong in ({"launches": 1}, {"launches": None}, {"verdict": "DISAGREES"}, {"same_code": False}):
        assert problems("sin", torchs, {**mine, **wrong})
    assert problems("sin", {**torchs, "same": False}, mine)
    assert not problems("sin", {**torchs, "same": False}, {**mine, "verdict": "DISAGREES"})


def test_unspecified_values_are_no_disagreement_and_no_agreement() -> None:
    torchs = {"launches": 1, "calls": {}, "same": False}
    mine = {"launches": 1, "verdict": "not comparable: uninitialised memory", "same_code": None}
    assert not problems("empty_like", torchs, mine)
    assert problems("empty_like", torchs, {**mine, "verdict": "agrees"})
    assert problems("sin", torchs, mine)


@pytest.mark.parametrize("name", ["rand_like", "bernoulli"])
@pytest.mark.cases(full=1)
def test_entries_that_draw_numbers_are_judged(name: str) -> None:
    row = judged(name, entries()[name], grad=False)
    assert row["ok"] is True and row["torch"]["same"] is True, row
