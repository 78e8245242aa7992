"""Differences between hand-made programs of ranks, and those that are by construction and do not count."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from samples_program import program

from compile_lens.measures.ranks import differences, not_compared
from compile_lens.record.collectives import (
    Collective,
    EarlierCollectives,
    IssuedCollective,
    IssuedCollectives,
)
from compile_lens.record.journal import from_journal, header_line, journal_line
from compile_lens.record.program import ProgramRecord


def with_graph(**fields: Any) -> ProgramRecord:
    record = program()
    graphs = (dataclasses.replace(record.graphs[0], **fields), *record.graphs[1:])
    return dataclasses.replace(record, graphs=graphs)


def values(*records: ProgramRecord) -> list[tuple[str, list[str]]]:
    return [(one.level, [value for value, _ in one.values]) for one in differences(dict(enumerate(records)))]


@pytest.mark.parametrize("device", ["cuda", "xpu", "npu"])
def test_each_rank_has_a_device_of_its_own(device: str) -> None:
    own = [with_graph(inputs=(f"x: float16[1024, 1024] {device}:{rank}",)) for rank in range(3)]
    assert values(*own) == []
    assert values(own[0], with_graph(inputs=(f"x: float16[1024, 1025] {device}:1",))) == [
        ("shapes", [f"x: float16[1024, 1024] {device}", f"x: float16[1024, 1025] {device}"])
    ]
    assert values(own[0], with_graph(inputs=("x: float16[1024, 1024] cpu",))) != []


def test_devices_of_a_rank_that_uses_several_are_numbered_as_they_come() -> None:
    def on(*indices: int) -> ProgramRecord:
        return with_graph(inputs=tuple(f"x{n}: float32[4] cuda:{index}" for n, index in enumerate(indices)))

    assert values(on(0, 1), on(2, 3)) == []
    assert values(on(0, 1, 0), on(2, 3, 3)) == [
        (
            "shapes",
            [
                "x0: float32[4] cuda (device 1), x1: float32[4] cuda (device 2), x2: float32[4] cuda (device 1)",
                "x0: float32[4] cuda (device 1), x1: float32[4] cuda (device 2), x2: float32[4] cuda (device 2)",
            ],
        )
    ]


def test_operators_are_compared_as_operators() -> None:
    one, other = (with_graph(operators=3, calls=("add", name, "mul")) for name in ("sin", "cos"))
    assert values(one, one) == []
    assert values(one, other) == [
        ("graphs", ["3 operators, number 2 is sin", "3 operators, number 2 is cos"])
    ]
    longer = with_graph(operators=4, calls=("add", "sin", "mul", "mul"))
    assert values(one, longer) == [("graphs", ["3 operators", "4 operators, number 4 is mul"])]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("group.group_name == '3'", "group.group_name == '4'"),
        ("___check_obj_id(L['self'], 94139339549184)", "___check_obj_id(L['self'], 140705785650544)"),
        ("tensor 'x' device mismatch. expected cuda:0", "tensor 'x' device mismatch. expected cuda:1"),
        ("x is 0x7fdfab440a50", "x is 0x7fdfab440b60"),
    ],
)
def test_what_differs_by_construction_in_a_guard_is_no_difference(text: str, other: str) -> None:
    def failed(text: str) -> ProgramRecord:
        def change(visit: Any) -> Any:
            if visit.recompilation is None:
                return visit
            guards = tuple(dataclasses.replace(g, text=text) for g in visit.recompilation.failed_guards)
            return dataclasses.replace(
                visit, recompilation=dataclasses.replace(visit.recompilation, failed_guards=guards)
            )

        record = program()
        frames = tuple(
            dataclasses.replace(frame, evaluations=tuple(map(change, frame.evaluations)))
            for frame in record.frames
        )
        return dataclasses.replace(record, frames=frames)

    assert values(failed(text), failed(other)) == []
    assert {level for level, _ in values(failed(text), failed("x.size(0) == 3"))} == {"recompiles"}


def test_what_keeps_one_from_saying_that_ranks_do_the_same() -> None:
    def reasons(rehearsed: bool = False, **fields: Any) -> list[str]:
        base = dataclasses.replace(
            program(), ended="the program ended", graphs=(), issued=IssuedCollectives()
        )
        return [
            why.partition(" (")[0]
            for why in not_compared({0: base, 1: dataclasses.replace(base, **fields)}, rehearsed)
        ]

    def issued(**fields: Any) -> IssuedCollectives:
        group = fields.pop("group", (0, 1))
        return IssuedCollectives((IssuedCollective(Collective("recv", group=group), **fields),), (0,))

    assert reasons() == []
    assert reasons(ended="RuntimeError: no batch") == ["the program did not end as it should"]
    assert reasons(ended="exit 1") == ["the program did not end as it should"]
    assert reasons(issued=None) == ["the collectives that were issued were not observed, or not all"]
    earlier = IssuedCollectives(earlier=(EarlierCollectives((0, 1), 0, None),))
    assert reasons(issued=earlier) == ["collectives from before the watch began were not observed"]
    assert reasons(issued=issued(peer=0, group=())) == ["the members of a group are not known"]
    assert reasons(issued=issued(peer=None)) == ["messages received from any rank are not matched"]
    sized = issued(peer=0, sized_by_values=True)
    assert reasons(issued=sized) == []
    assert reasons(True, issued=sized) == ["sizes that follow from values of other ranks are not compared"]
    graphs = with_graph(operators=2, calls=("sin",)).graphs[:1]
    assert reasons(graphs=graphs) == ["operators are compared only by number"]


def test_the_journal_of_a_run_that_was_killed_does_not_say_that_none_was_issued() -> None:
    record = dataclasses.replace(program(), issued=IssuedCollectives())
    killed = from_journal(header_line(record) + journal_line(record))
    assert record.issued is not None and killed.issued is None
