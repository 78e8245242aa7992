"""Facts that one of two records did not observe are neither gone nor new in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import samples

from compile_lens import Capture
from compile_lens.measures.diff.levels import difference
from compile_lens.record import claims
from compile_lens.record.difference import DifferenceRecord
from compile_lens.record.lowering import Pass, Rewrite
from compile_lens.record.missing import Missing

CLAIMS = (claims.BREAKS, claims.SKIPS, claims.RECOMPILES, claims.GUARDS, claims.REWRITES)


def recompiled() -> Capture:
    capture = samples.sample()
    (first,) = capture.compilations
    rewrite = Rewrite("relu twice", ("relu", "relu_1"), ("relu_2",), "", "", ("relu",), "")
    passes = (*first.passes, Pass("forward", "once_more", 9, 8, (rewrite,)))
    again = dataclasses.replace(first, id="0/1", recompile_reasons=("L['x'] == 3",), passes=passes)
    return dataclasses.replace(capture, compilations=(first, again))


def without(capture: Capture, seen: bool) -> Capture:
    """A capture without these facts, because there were none or because they were not observed."""
    compilations = tuple(
        dataclasses.replace(
            one,
            guards=(),
            recompile_reasons=(),
            passes=(),
            ending=None if one.ending is None else dataclasses.replace(one.ending, kind="return"),
        )
        for one in capture.compilations
    )
    lost = () if seen else tuple(Missing(claim, "torch renamed it") for claim in CLAIMS)
    return dataclasses.replace(capture, compilations=compilations, skipped=(), not_observed=lost)


@pytest.mark.parametrize("record", [samples.graph_break, samples.skipped, recompiled])
def test_what_was_not_seen_is_not_gone(record: Callable[[], Capture]) -> None:
    whole = record()
    for seen in (True, False):
        other = without(whole, seen)
        for pair in ((whole, other), (other, whole)):
            levels = {change.level for change in difference(*pair, DifferenceRecord).changes}
            assert bool(levels & {"breaks", "guards", "rewrites"}) is seen, (record.__name__, levels)
