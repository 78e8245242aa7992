"""The table of operand reads, checked against runs of each operator with other values."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("expecttest", reason="torch's list of operators needs it: pip install expecttest")

from eager_sweep import entries
from operand_probe import VALUES_DECIDE, Reads, probed

from compile_lens._torch.graphs import accesses, operand_reads

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
    ("nll_loss_backward", "total_weight"): "read for a mean, which the samples with a weight are not",
    ("nll_loss2d_backward", "total_weight"): "read for a mean, which the samples with a weight are not",
    ("index_copy", "self"): "copied first, then overwritten in whole",
    ("index_fill", "self"): "copied first, then overwritten in whole",
}
"""Arguments that are read though another number changes no result."""


def unread(reads: dict[tuple[str, str], Reads]) -> list[str]:
    """Arguments that the table lists as fully read but no probe saw read, and the reverse."""
    rows = []
    for (name, argument), seen in reads.items():
        namespace, base, overload = name.split(".")
        if namespace != "aten" or argument in ("out", "bins"):
            continue
        if base in VALUES_DECIDE or (base, argument) in SHOWS_NOTHING:
            continue
        func = getattr(getattr(torch.ops.aten, base), overload)
        in_table = argument in operand_reads._rules(base, func)
        if not in_table and not any(seen.looked_at) and len(seen.looked_at) > 1 and "histogram" not in base:
            rows.append(f"{name} never looks at {argument}, which is counted whole")
        if in_table and operand_reads._rules(base, func)[argument] is operand_reads._nothing:
            if any(seen.looked_at):
                rows.append(f"{name} looks at {argument}, of which only the shape is counted")
    return rows


@pytest.mark.parametrize("train", [False, True])
def test_the_backward_of_a_batch_norm_reads_running_statistics_if_it_does_not_train(train: bool) -> None:
    x, weight, mean, spread = torch.randn(4, 3, 5), torch.rand(3), torch.rand(3), torch.rand(3)
    aten = torch.ops.aten
    _, *saved = aten.native_batch_norm(x, weight, None, mean, spread, train, 0.1, 1e-5)
    args = [x, x, weight, mean, spread, *saved, train, 1e-5, [True] * 3]
    reference = aten.native_batch_norm_backward(*args)
    other = aten.native_batch_norm_backward(*args[:3], mean * torch.nan, spread * torch.nan, *args[5:])
    looked_at = not all(torch.equal(a, b) for a, b in zip(reference, other))
    reads, _ = accesses.moved(aten.native_batch_norm_backward.default, args, {}, reference)
    whole = sum(tensor.nbytes for tensor in (x, weight, *saved))
    assert (reads - whole, looked_at) == ((0, False) if train else (2 * mean.nbytes, True))


@pytest.mark.full
def test_what_an_operator_looks_at_is_what_the_table_says() -> None:
    known = entries()
    reads = probed([name for name in SAMPLE if name in known])
    assert len(reads) > 15 and unread(reads) == []
    trace = reads["aten.trace.default", "self"]
    assert all(count < elements for count, elements in trace.counts if elements > 5)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_what_each_operator_of_opinfo_looks_at_is_what_the_table_says() -> None:
    """One test covers all entries: samples of one entry may read elements that samples of another do not."""
    assert unread(probed(sorted(entries()))) == []
