"""Links from kernel lines to Python lines, checked against the kernel text that changes with a Python line.

The check reads none of the names in a chain: it compiles a program as it is and with one line changed, and compares
the kernel texts, forward and backward, for every back end.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from line_programs import FIRST, PROGRAMS, Program, Written, faults, written
from torch._functorch.compile_utils import fx_graph_cse

from compile_lens import capture
from compile_lens._torch.graphs import rewrite_origins
from compile_lens._torch.ground import hooks

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

BACK_ENDS: dict[str, dict[str, Any]] = {"C++": {}, "Triton": {"target": "h100"}, "Metal": {"target": "mps"}}
FEW = ("waves", "gate", "derivatives meet")
"""Programs that are always tried; the others with --exhaustive."""


def lines_of(program: Program, position: int, choice: int, options: dict[str, Any]) -> list[Written]:
    return written(capture(program.build(position, choice), *program.args(), **options))


def checked(program: Program, options: dict[str, Any]) -> tuple[list[str], int, int]:
    """Return the faults, the number of changed lines, and the number of lines that compute."""
    found: list[str] = []
    total = 0
    first = lines_of(program, -1, 0, options)
    for position, choice in program.choices():
        other = lines_of(program, position, choice, options)
        wrong, changed = faults(first, other, position + FIRST, without=choice == 2)
        if choice == 1:  # and the text that replaced the changed lines
            back, here = faults(other, first, position + FIRST, without=False)
            wrong, changed = wrong + back, changed + here
        found += [f"{program.lines[position]}: {fault}" for fault in wrong]
        if not changed:
            found.append(f"{program.lines[position]}: choice {choice} changes nothing")
        total += changed
    return found, total, len(first)


@pytest.mark.full
@pytest.mark.cases(full=3)
@pytest.mark.parametrize("back_end", BACK_ENDS)
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(p, id=p.name, marks=[] if p.name in FEW else [pytest.mark.exhaustive])
        for p in sorted(PROGRAMS, key=lambda p: p.name not in FEW)
    ],
)
def test_what_changes_with_a_line_leads_to_it(program: Program, back_end: str) -> None:
    found, changed, computing = checked(program, BACK_ENDS[back_end])
    assert found == []
    assert changed and computing


def test_there_are_forty_programs() -> None:
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS) >= 40
    assert all(len(p.lines) >= 2 for p in PROGRAMS)


@pytest.mark.full
@pytest.mark.skipif(
    "extra_node_key" in inspect.signature(fx_graph_cse).parameters,
    reason="this torch merges no value of the forward alone with one of the backward",
)
def test_an_origin_that_a_merge_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the hook that keeps the origins of merged nodes, the check above fails."""
    program = next(p for p in PROGRAMS if p.name == "waves")
    monkeypatch.setattr(rewrite_origins, "merges", lambda old, new: [])
    assert "torch._functorch.partitioners:fx_graph_cse" in hooks._registry
    found, _, _ = checked(program, {})
    assert [f for f in found if "sin" in f and "backward" in f and "0 lead to it" in f]


def test_a_link_to_a_wrong_line_is_found() -> None:
    program = next(p for p in PROGRAMS if p.name == "chain")
    first, other = (lines_of(program, *choice, {}) for choice in ((-1, 0), (1, 1)))
    line = 1 + FIRST
    assert faults(first, other, line, without=False)[0] == []
    assert faults(first, other, line + 1, without=False)[0], "the lines that changed are of another line"
    nothing = [Written(w.phase, w.text, frozenset(), w.derivatives, w.shown) for w in first]
    assert faults(nothing, other, line, without=False)[0]
    gone = lines_of(program, 1, 2, {})
    mine = [Written(w.phase, w.text, frozenset({line}), frozenset(), w.shown) for w in first]
    assert faults(first, gone, line, without=True)[0] == []
    assert faults(mine, gone, line, without=True)[0], "what leads to the line alone did not go with it"
