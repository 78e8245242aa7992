"""The device memory that a graph needs, on records made by hand: the tests count the figures."""

from __future__ import annotations

import dataclasses

import pytest
from samples_machine import h100

from compile_lens.measures.memory_budget import DOES_NOT, FITS, MAY_FIT, MemoryBudget, memory_budget
from compile_lens.record.device import DeviceProperty
from compile_lens.record.memory import Buffer, Memory, Partition, SavedTensor
from compile_lens.results.capture import Capture

G = 10**9


def given(nbytes: int | None) -> Capture:
    made = h100()
    assert made.target is not None
    model = dataclasses.replace(
        made.target.model, properties=(DeviceProperty("total_memory", 80 * G, "by hand"),)
    )
    return dataclasses.replace(
        made, target=dataclasses.replace(made.target, model=model, resident_bytes=nbytes)
    )


def held(peak: int | None, inputs: int) -> Memory:
    return Memory("forward", (Buffer("primals_1", "input", inputs), Buffer("buf0", "output", 4)), peak)


def test_a_published_gigabyte_may_be_of_either_kind() -> None:
    """80 GB are 80,000,000,000 bytes, or 80 times 2^30: 85,899,345,920."""
    assert memory_budget(given(0), held(80 * G, 0)) == MemoryBudget(80 * G, 0, 80 * G, 85_899_345_920)
    verdicts = [(80 * G, FITS), (80 * G + 1, MAY_FIT), (85_899_345_920, MAY_FIT), (85_899_345_921, DOES_NOT)]
    for peak, verdict in verdicts:
        budget = memory_budget(given(0), held(peak, 0))
        assert budget is not None and budget.verdict == verdict


def test_what_a_graph_does_not_read_is_there_too() -> None:
    """The inputs have 60 GB, of which the graph reads 10 at most: 50 come on top of its peak of 40."""
    budget = memory_budget(given(60 * G), held(40 * G, 10 * G))
    assert budget is not None and (budget.other_bytes, budget.needed_bytes, budget.verdict) == (
        50 * G,
        90 * G,
        DOES_NOT,
    )
    budget = memory_budget(given(5 * G), held(40 * G, 10 * G))  # the other inputs come from an earlier graph
    assert budget is not None and (budget.other_bytes, budget.needed_bytes, budget.verdict) == (
        0,
        40 * G,
        FITS,
    )
    budget = memory_budget(given(None), held(40 * G, 10 * G))
    assert budget is not None and budget.other_bytes == 0


@pytest.mark.parametrize("peak", [None, 7])
def test_nothing_is_said_where_nothing_is_known(peak: int | None) -> None:
    record = given(60 * G)
    assert record.target is not None
    model = dataclasses.replace(record.target.model, properties=())
    unknown = dataclasses.replace(record, target=dataclasses.replace(record.target, model=model))
    assert memory_budget(unknown, held(7, 7)) is None
    assert memory_budget(dataclasses.replace(record, target=None), held(7, 7)) is None
    assert (memory_budget(record, held(peak, 0)) is None) is (peak is None)


def test_a_backward_is_not_given_what_its_forward_made() -> None:
    """The inputs have 60 GB. The backward reads 2 of them, and 8 GB that the forward computed, including one result."""
    record = given(60 * G)
    inputs = tuple(
        Buffer(name, "input", 2 * G) for name in ("primals_1", "mul", "mul_1", "sum_1", "tangents_1")
    )
    backward = Memory("backward", inputs, 20 * G)
    forward = Memory("forward", (Buffer("primals_1", "input", 2 * G),), 2 * G)
    kept = (
        SavedTensor("primals_1", 2 * G, alias_of="primals_1"),
        SavedTensor("mul", 2 * G),
        SavedTensor("mul_1", 2 * G),
    )
    partition = Partition((*kept, SavedTensor("sum_1", 2 * G, alias_of="sum_1")))
    compilation = dataclasses.replace(record.compilations[0], memory=(forward, backward), partition=partition)
    budget = memory_budget(dataclasses.replace(record, compilations=(compilation,)), backward)
    assert budget is not None and (budget.other_bytes, budget.needed_bytes) == (58 * G, 78 * G)
    unknown = dataclasses.replace(compilation, partition=None)  # any of its inputs may come from the caller
    budget = memory_budget(dataclasses.replace(record, compilations=(unknown,)), backward)
    assert budget is not None and budget.needed_bytes == 70 * G
