"""Lines of kernels that only one target has."""

from __future__ import annotations

import samples_targets as made
from samples import sample

from compile_lens.measures.diff.modules import OwnLines


def test_equal_captures_have_no_lines_of_their_own() -> None:
    assert OwnLines([sample(), sample()]).of("0/0", "forward") == [{}, {}]


def test_one_capture_has_nothing_that_others_lack() -> None:
    assert OwnLines([sample(), None]).of("0/0", "forward") == [{}, {}]


def test_lines_of_their_own_are_lines_with_origins() -> None:
    cpu, h100 = made.scan("cpu", True).capture(), made.scan("h100", False).capture()
    phase = next(iter(h100.compilations[0].code))
    (_, own) = OwnLines([cpu, h100]).of(h100.compilations[0].id, phase)
    lines = {
        f"{kernel.name}:{line.line}"
        for kernel in h100.compilations[0].code[phase].kernels
        for line in kernel.lines
        if line.origins
    }
    assert {name for _, _, name in own} <= lines
