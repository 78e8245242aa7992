"""Public logs, against counts by hand (``public_logs.json``). The logs are not included: ``COMPILE_LENS_PUBLIC_LOGS``
is the folder ``tests/inputs`` of tlparse's repository, at the revision of the table."""

from __future__ import annotations

import json
import os
from pathlib import Path

import log_counts
import pytest
from log_entries import ahead, artifact, compiled, names

from compile_lens import import_trace
from compile_lens.results.program import Program

TABLE = json.loads((Path(__file__).parent / "public_logs.json").read_text(encoding="utf-8"))["logs"]
FOLDER = os.environ.get("COMPILE_LENS_PUBLIC_LOGS")


def seen(program: Program) -> dict[str, int]:
    """Counts of a program under the table's names."""
    record, own = program.record, program.counts
    every = {
        "compiles": len(record.evaluations) + sum(skip.count for skip in record.library_skips),
        "graphs": own.graphs,
        "breaks": own.breaks,
        "reasons": sum(visit.recompilation is not None for visit in record.evaluations),
        "modules": own.modules,
        "exported": sum(one.kind == "torch.export" for one in record.ahead),
        "ahead": sum(one.kind != "torch.export" for one in record.ahead),
        "failures": own.raised,
        "kernels": sum(bool(k.nodes) for m in record.modules for k in m.kernels),
    }
    return {what: count for what, count in every.items() if count}


def without_ranks(counts: dict[str, int]) -> dict[str, int]:
    """Counts that do not concern several ranks."""
    return {what: count for what, count in counts.items() if what not in ("collectives", "graph_calls")}


@pytest.mark.skipif(not FOLDER, reason="COMPILE_LENS_PUBLIC_LOGS names no folder with the logs")
@pytest.mark.parametrize("name", TABLE)
def test_a_public_log_has_what_was_counted(name: str) -> None:
    path = Path(FOLDER or "") / name
    assert log_counts.counts(path) == TABLE[name], "the log is that of the table"
    assert seen(import_trace(path)) == without_ranks(TABLE[name])


def test_the_count_by_hand_counts_entries(tmp_path: Path) -> None:
    log = (
        names() + compiled("0/0") + compiled("0/1", reasons=["0/0: x"]) + ahead({"cpp_fused_sin_0": ["sin"]})
    )
    (tmp_path / "a.log").write_text(log + artifact("other", "{}"), encoding="utf-8", newline="\r\n")
    expected = {"compiles": 2, "graphs": 2, "reasons": 1, "modules": 3, "ahead": 1, "kernels": 1}
    assert log_counts.counts(tmp_path / "a.log") == expected == seen(import_trace(tmp_path / "a.log"))
