"""Memory that a compiled forward saves, against the tensors that plain torch hands to autograd."""

from __future__ import annotations

import pytest
from full_text import full
from kept_memory import PROGRAMS, convolution, plain

from compile_lens import capture
from compile_lens.record.memory import saved_bytes
from compile_lens.views.document import Table
from compile_lens.views.findings import findings

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def kept() -> dict[str, int]:
    return plain([program.__name__ for program in PROGRAMS])


@pytest.mark.full
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: str(program.__name__))
@pytest.mark.cases(full=2)
def test_what_the_forward_keeps_is_what_autograd_is_given(program: object, kept: dict[str, int]) -> None:
    assert callable(program)
    f, args = program()
    partition = capture(f, *args).compilations[0].partition
    assert partition is not None and saved_bytes(partition.saved) == kept[program.__name__]


def test_copies_of_inputs_are_told_as_kept() -> None:
    f, args = convolution()
    record = capture(f, *args)
    (memory,) = (m for m in record.compilations[0].memory if m.phase == "forward")
    partition = record.compilations[0].partition
    assert partition is not None
    assert (
        sum(b.nbytes or 0 for b in memory.buffers if b.kind == "saved")
        == saved_bytes(partition.saved)
        == 19_456
    )
    assert "saves 3 tensors, ~19 KiB besides inputs and results" in full(record)
    assert "What it saves takes 19 KiB besides inputs and results." in str(record.story())


def test_the_default_partitioner_would_keep_the_same_copies() -> None:
    """It saves the result of the relu instead of the mask."""
    f, args = convolution()
    partition = capture(f, *args).compilations[0].partition
    assert partition is not None and partition.default is not None
    own = [(k.node, k.nbytes) for k in partition.default if not k.alias_of]
    assert own == [("primals_1", 8_192), ("primals_2", 9_216)]


def test_whose_memory_each_lies_in_is_said() -> None:
    f, args = convolution()
    told = {
        row.cells[0]: row.cells[2]
        for finding in findings(capture(f, *args))
        for section in finding.sections
        if isinstance(section, Table) and section.head[0] == "node of the joint graph"
        for row in section.rows
    }
    copy = "its own: a copy of the input"
    assert told == {"primals_1": copy, "primals_2": copy, "le": "its own", "relu": "none: a result"}


def test_without_channels_last_the_inputs_themselves_are_kept() -> None:
    f, args = convolution()
    partition = capture(f, *args, options={"layout_optimization": False}).compilations[0].partition
    assert partition is not None and saved_bytes(partition.saved) == 2_048
    assert [k.node for k in partition.saved if k.alias_of == k.node] == ["primals_1", "primals_2"]
