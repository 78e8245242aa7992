"""An interrupt while a watch opens leaves nothing behind.

A trace function raises ``KeyboardInterrupt`` at one of our lines, as Python does for a signal, at slightly more points.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens._torch.ground import hook_points, placement
from compile_lens._torch.watch import observers, scopes

pytestmark = pytest.mark.torch

PACKAGE = str(Path(compile_lens.__file__).parent)
LEFT_IN_C = ("with lock:", "with placement.lock:")
"""Blocks that are left by a function in C: Python looks for no signal between their last line and that call, though a
trace function is called there."""

Position = tuple[str, int, int]
"""File, line, how often it was reached."""


class Tracer:
    """Counts how often our lines are reached, and interrupts at one of them."""

    def __init__(self, at: Position | None = None) -> None:
        self.at, self.interrupted = at, False
        self.seen: Counter[tuple[str, int]] = Counter()

    def __call__(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        return self.line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def line(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "line" and not self.interrupted:
            where = frame.f_code.co_filename, frame.f_lineno
            self.seen[where] += 1
            if self.at == (*where, self.seen[where]):
                self.interrupted = True
                raise KeyboardInterrupt
        return self.line


def opened() -> None:
    with compile_lens.watch():
        sys.settrace(None)


def traced(at: Position | None = None) -> Tracer:
    tracer = Tracer(at)
    sys.settrace(tracer)
    try:
        opened()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return tracer


def state() -> dict[str, Any]:
    places = {path: hook_points.find(path) for path in (*observers._registry, *observers._late_registry)}
    return {
        "open": list(scopes._open),
        "here": [s for s in scopes._scopes_here() if s.open],
        "users": [len(s._users) for s in placement._sets],
        "placed": [len(s._placed) for s in placement._sets],
        "functions": {path: id(vars(p[0]).get(p[1])) for path, p in places.items() if p is not None},
    }


def positions() -> list[Position]:
    """Each line that a watch reaches, at its first and at its last pass."""
    found = traced().seen
    both = {(*where, n) for where, count in found.items() for n in (1, count)}
    return sorted(p for p in both if not linecache.getline(*p[:2]).strip().startswith(LEFT_IN_C))


@pytest.mark.cases(quick=2, full=10)
@pytest.mark.parametrize("part", range(40))
def test_an_interrupt_at_any_line_leaves_nothing_of_a_watch(part: int) -> None:
    torch.compile(lambda x: x.sin(), backend="eager")(torch.ones(2))
    opened()
    before, mine = state(), positions()[part::40]
    assert mine and before["open"] == []
    interrupted = 0
    for at in mine:
        interrupted += traced(at).interrupted
        assert state() == before, at
    assert interrupted > len(mine) / 2


def test_a_watch_that_was_interrupted_can_be_opened_again() -> None:
    watch = compile_lens.watch()
    file = str(Path(compile_lens.__file__).parent / "_torch" / "watch" / "stances.py")
    line = next(n for f, n in traced().seen if f == file)
    sys.settrace(Tracer((file, line, 1)))
    try:
        with pytest.raises(KeyboardInterrupt):
            watch.__enter__()
    finally:
        sys.settrace(None)
    with watch as program:
        torch.compile(lambda x: x.cos(), backend="eager")(torch.ones(2))
    assert len(program.graphs) == 1
