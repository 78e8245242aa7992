"""The table of what an operator looks at, against operators that are given other numbers."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("expecttest", reason="torch's list of operators needs it: pip install expecttest")

from eager_sweep import entries
from operand_probe import VALUES_DECIDE, Reads, probed

from compile_lens._torch.graphs import operand_reads

pytestmark = [pytest.mark.torch]

SAMPLE = (
    "diagonal_copy",
    "narrow_copy",
    "nn.functional.adaptive_avg_pool2d",
    "nn.functional.avg_pool2d",
    "nn.functional.embedding_bag",
    "nn.functional.interpolate.nearest",
    "nn.functional.layer_norm",
    "nn.functional.max_pool2d",
    "nn.functional.nll_loss",
    "nn.functional.pad.reflect",
    "searchsorted",
    "trace",
    "triu",
)

SHOWS_NOTHING = {
    ("_cdist_backward", "grad"): "it is zero wherever the samples have the same rows",
    ("_cdist_backward", "x1"): "it is zero wherever the samples have the same rows",
    ("_cdist_backward", "x2"): "it is zero wherever the samples have the same rows",
    ("_cdist_backward", "cdist"): "it is zero wherever the samples have the same rows",
    ("_batch_norm_with_update", "running_mean"): "what it writes there is not compared",
    ("_batch_norm_with_update", "running_var"): "what it writes there is not compared",
    ("batch_norm_backward", "running_mean"): "read where it does not train, which no sample of it has",
    ("batch_norm_backward", "running_var"): "read where it does not train, which no sample of it has",
    ("nll_loss_backward", "total_weight"): "read for a mean, which the samples with a weight are not",
    ("nll_loss2d_backward", "total_weight"): "read for a mean, which the samples with a weight are not",
    ("index_copy", "self"): "copied first, then overwritten in whole",
    ("index_fill", "self"): "copied first, then overwritten in whole",
}
"""Arguments that are read though another number changes no result."""


def unread(reads: dict[tuple[str, str], Reads]) -> list[str]:
    """Arguments that no probe saw looked at, and the table has as read whole; and the other way round."""
    rows = []
    for (name, argument), seen in reads.items():
        base = name.split(".")[1]
        if base in VALUES_DECIDE or (base, argument) in SHOWS_NOTHING or argument in ("out", "bins"):
            continue
        func = getattr(getattr(torch.ops.aten, base), name.split(".")[2])
        in_table = argument in operand_reads._rules(base, func)
        if not in_table and not any(seen.looked_at) and len(seen.looked_at) > 1 and "histogram" not in base:
            rows.append(f"{name} never looks at {argument}, which is counted whole")
        if in_table and operand_reads._rules(base, func)[argument] is operand_reads._nothing:
            if any(seen.looked_at):
                rows.append(f"{name} looks at {argument}, of which only the shape is counted")
    return rows


@pytest.mark.full
def test_what_an_operator_looks_at_is_what_the_table_says() -> None:
    known = entries()
    reads = probed([name for name in SAMPLE if name in known])
    assert len(reads) > 15 and unread(reads) == []
    trace = reads["aten.trace.default", "self"]
    assert all(count < elements for count, elements in trace.counts if elements > 5)


@pytest.mark.exhaustive
def test_what_each_operator_of_opinfo_looks_at_is_what_the_table_says() -> None:
    assert unread(probed(sorted(entries()))) == []
