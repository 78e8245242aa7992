"""Figures of a whole program, from a record made by hand."""

from __future__ import annotations

import pytest
import samples

from compile_lens.measures.program import compile_seconds
from compile_lens.record.program import CompileEvent, ProgramRecord


def test_time_that_two_threads_spend_at_once_passes_once() -> None:
    """Torch builds kernels in threads of their own while the compile that waits for them goes on."""
    events = (
        CompileEvent("dynamo", 1e6, 4e6, thread=0),
        CompileEvent("backend_compile", 2e6, 2e6, thread=0, depth=1),
        CompileEvent("compile_file", 2.5e6, 3e6, thread=1),
        CompileEvent("compile_file", 2.5e6, 1e6, thread=2),
        CompileEvent("cache_hit", 3e6, thread=0, depth=1),
        CompileEvent("dynamo", 9e6, 0.5e6, thread=0),
    )
    program = ProgramRecord("train.py", samples.sample().environment, events=events)
    assert compile_seconds(program) == pytest.approx(4.5 + 0.5)
