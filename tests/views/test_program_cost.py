"""The pages of a program with many breaks and recompiles grow no faster than their number."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from samples_program import program

from compile_lens.record.breaks import BREAK, Ending
from compile_lens.record.graph import Frame, Source
from compile_lens.record.program import (
    COMPILED,
    Break,
    FailedGuard,
    FrameEvaluation,
    GuardOrigin,
    ProgramFrame,
    ProgramGraph,
    ProgramRecord,
    Recompilation,
    TracedFunction,
)
from compile_lens.views.render import html, markdown, text
from compile_lens.views.subjects.program import document


def broken(breaks: int, again: int) -> ProgramRecord:
    """Return a function with this many graph breaks, and one that was recompiled this many times."""
    code, frames, graphs = ((10, 10 + 2 * breaks),), [], []
    for i in range(breaks):
        at = Frame("t.py", 10 + 2 * i, "f", "print()", 4, 11)
        ended = (Break(Ending(BREAK, "a print", (at,)), "a print", "GB1", graph=i),)
        traced = (TracedFunction("t.py", "f", 1, ((at.line, at.line + 1),), code),)
        guards = tuple(GuardOrigin(f"n{k} == {i}", f"n{k}", "EQUALS_MATCH", at) for k in range(5))
        visit = FrameEvaluation(
            COMPILED, f"{i}/0", graphs=(i,), breaks=ended, number=i, guards=guards, traced_functions=traced
        )
        frames.append(ProgramFrame("f", "t.py", 1, at.line - 2 if i else None, code, (visit,)))
        graphs.append(ProgramGraph(i, f"{i}/0", 3, input_bytes=12, output_bytes=12))
    failed = FailedGuard(f"{breaks}/0", "n == 3", "n", "3", "4")
    visits = [FrameEvaluation(COMPILED, f"{breaks}/0", number=breaks)]
    visits += [
        FrameEvaluation(
            COMPILED, f"{breaks}/{k}", number=breaks + k, recompilation=Recompilation((failed,), k, again)
        )
        for k in range(1, again + 1)
    ]
    frames.append(ProgramFrame("g", "t.py", 5000, None, ((5000, 5002),), tuple(visits)))
    source = Source("t.py", 1, "f", "x\n" * (12 + 2 * breaks))
    made = program()
    return ProgramRecord("p", made.environment, frames=tuple(frames), graphs=tuple(graphs), sources=(source,))


def plain(record: ProgramRecord) -> str:
    return text.page(document(record), 100, False)


def marked(record: ProgramRecord) -> str:
    return markdown.page(document(record))


def page(record: ProgramRecord) -> str:
    return html.page(document(record))


@pytest.mark.slow
@pytest.mark.parametrize("view", [page, marked, plain], ids=["html", "markdown", "text"])
@pytest.mark.cases(full=1)
def test_many_breaks_and_recompiles_cost_in_proportion(view: Callable[[ProgramRecord], str]) -> None:
    def least(breaks: int, again: int) -> float:
        taken = []
        for _ in range(3):
            record = broken(breaks, again)
            began = time.process_time()
            page = view(record)
            taken.append(time.process_time() - began)
        assert f"{breaks:,} graph breaks at {breaks:,} places" in " ".join(
            page.split()
        ) and f"{again} recompiles" in " ".join(page.split())
        return min(taken)

    few, many = least(300, 64), least(1200, 256)
    assert many < 10 * few, "four times as many"


def test_a_reason_that_was_given_before_is_not_given_again() -> None:
    (why,) = (finding for finding in document(broken(300, 0)).findings if finding.key == "slower")
    rows = [row.cells for row in why.sections[0].rows]
    assert [cells[0] for cells in rows] == [str(n) for n in range(1, 301)]
    assert all(f"t.py:{10 + 2 * i} " in cells[1] for i, cells in enumerate(rows)), "each has its place"
    assert "a print" in rows[0][2] and {cells[2] for cells in rows[1:]} == {"as 1"}
