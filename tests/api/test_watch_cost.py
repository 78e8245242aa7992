"""The work of a watch for each cache entry does not grow with their number: counted, not timed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compile_lens._torch.watch.program_watch import ProgramWatch
from compile_lens._torch.watch.scopes import Evaluation

pytestmark = pytest.mark.torch

FORMS = 4


def reads(monkeypatch: pytest.MonkeyPatch, functions: int) -> int:
    """Count the reads of frame evaluations while each of several functions gets four cache entries, including what is
    recorded for each."""
    names: dict[str, Any] = {"torch": torch}
    for i in range(functions):
        exec(compile(f"def f{i}(x, s):\n    return x + len(s)", __file__, "exec"), names)
    torch._dynamo.reset()
    count, kept = 0, 0
    plain = object.__getattribute__

    def read(visiting: Evaluation, name: str) -> Any:
        nonlocal count
        count += 1
        return plain(visiting, name)

    def keep(_: Any) -> None:
        nonlocal kept
        kept += 1

    watch = ProgramWatch()
    watch.open(kept=keep)
    monkeypatch.setattr(Evaluation, "__getattribute__", read, raising=False)
    try:
        for i in range(functions):
            call = torch.compile(names[f"f{i}"], backend="eager")
            for n in range(FORMS):
                call(torch.ones(3), "a" * n)
    finally:
        monkeypatch.undo()
        watch.close("")
    assert kept == functions * FORMS == sum(len(frame.evaluations) for frame in watch.observations().frames)
    return count


@pytest.mark.full
def test_a_form_costs_the_same_after_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = reads(monkeypatch, 4), reads(monkeypatch, 16)
    assert few > 100 and many / few < 4.4, "four times the functions, each with as many forms"
