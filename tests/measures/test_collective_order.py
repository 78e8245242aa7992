"""Comparison of the collectives that ranks issued, on lists made by hand with an obvious result."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from compile_lens.errors import RecordError
from compile_lens.measures.collective_order import depends_on_unknown_waits, order_differences
from compile_lens.record.collectives import (
    Collective,
    EarlierCollectives,
    IssuedCollective,
    IssuedCollectives,
)
from compile_lens.record.graph import Frame

WORLD = (0, 1, 2, 3)
ROWS, COLUMNS = ((0, 1), (2, 3)), ((0, 2), (1, 3))
"""Groups of a mesh of 2 × 2."""


def call(
    name: str,
    group: tuple[int, ...] = WORLD,
    arguments: str = "sum",
    size: int = 4,
    number: int = 0,
    **more: object,
) -> IssuedCollective:
    tensors = (f"float32[{size}]",)
    line = Frame("train.py", 7, "step")
    one = Collective(name, arguments, tensors, 4 * size, line, group, number)
    return IssuedCollective(one, agreed=tensors, **more)  # type: ignore[arg-type]


def message(
    name: str, peer: int | None, *, tag: int = 0, waits: bool = False, size: int = 4
) -> IssuedCollective:
    one = Collective(name, "", (), None, None, WORLD)
    return IssuedCollective(one, agreed=(f"float32[{size}]",), peer=peer, tag=tag, waits=waits)


def issued(by_rank: Mapping[int, list[IssuedCollective]]) -> dict[int, IssuedCollectives]:
    return {
        rank: IssuedCollectives(
            tuple(dict.fromkeys(own)), tuple([*dict.fromkeys(own)].index(one) for one in own)
        )
        for rank, own in by_rank.items()
    }


def row(rank: int) -> tuple[int, ...]:
    return ROWS[rank // 2]


def column(rank: int) -> tuple[int, ...]:
    return COLUMNS[rank % 2]


reduce, gather = call("all_reduce"), call("all_gather", arguments="")
splits = [
    IssuedCollective(Collective("all_to_all_single", group=(0, 1)), ("float32",), sent, received)
    for sent, received in (((3, 5), (3, 2)), ((2, 4), (5, 4)))
]

SOUND = {
    "the same on all": {rank: [reduce, gather] * 3 for rank in WORLD},
    "a group for each row": {rank: [call("all_reduce", row(rank)), reduce] for rank in WORLD},
    "rows and columns": {
        rank: [call("all_gather", row(rank)), call("all_reduce", column(rank))] * 2 for rank in WORLD
    },
    "sizes differ between groups": {
        rank: [call("all_reduce", row(rank), size=4 + row(rank)[0])] for rank in WORLD
    },
    "one group more often than the other": {
        rank: [call("all_reduce", row(rank))] * (1 if rank < 2 else 3) for rank in WORLD
    },
    "messages along a pipeline": {
        0: [message("send", 1)] * 3,
        1: [message("recv", 0, waits=True), message("send", 2)] * 3,
        2: [message("recv", 1, waits=True), message("send", 3)] * 3,
        3: [message("recv", 2, waits=True)] * 3,
    },
    "an exchange that waits for neither": {
        0: [message("recv", 1), message("send", 1)],
        1: [message("recv", 0), message("send", 0)],
    },
    "messages in another order, by their tags": {
        0: [message("send", 1, tag=1), message("send", 1, tag=2)],
        1: [message("recv", 0, tag=2, waits=True), message("recv", 0, tag=1, waits=True)],
    },
    "work that is kept for later, in another order across groups": {
        0: [call("all_reduce", (0, 1), waits=False), call("all_gather", (0, 1), number=1, waits=False)],
        1: [call("all_gather", (0, 1), number=1, waits=False), call("all_reduce", (0, 1), waits=False)],
    },
    "splits that each pair agrees on": {0: [splits[0]], 1: [splits[1]]},
    "some ranks are not here": {0: [reduce, call("all_reduce", (0, 2))], 1: [reduce]},
    "messages from any rank are not matched": {0: [message("recv", None)] * 2, 1: [message("send", 0)] * 3},
}

FAULTY: dict[str, tuple[dict[int, list[IssuedCollective]], tuple[int, ...], list[tuple[int, ...]]]] = {
    "one call fewer": (
        {rank: [reduce] * (2 if rank == 3 else 3) for rank in WORLD},
        WORLD,
        [(0, 1, 2), (3,)],
    ),
    "another order at step 2": (
        {rank: [reduce, gather, *((gather, reduce) if rank == 1 else (reduce, gather))] for rank in WORLD},
        WORLD,
        [(0, 2, 3), (1,)],
    ),
    "another reduction": (
        {rank: [call("all_reduce", arguments="max" if rank == 2 else "sum")] for rank in WORLD},
        WORLD,
        [(0, 1, 3), (2,)],
    ),
    "another root": (
        {rank: [call("broadcast", arguments=f"root {rank % 2}")] for rank in WORLD},
        WORLD,
        [(0, 2), (1, 3)],
    ),
    "another size": (
        {rank: [call("all_reduce", size=4 + (rank == 0))] for rank in WORLD},
        WORLD,
        [(0,), (1, 2, 3)],
    ),
    "a fault in one row": (
        {rank: [call("all_gather" if rank == 3 else "all_reduce", row(rank))] for rank in WORLD},
        (2, 3),
        [(2,), (3,)],
    ),
    "the wrong row": (
        {rank: [call("all_reduce", (0, 1) if rank == 2 else row(rank))] for rank in WORLD},
        (2, 3),
        [(2,), (3,)],
    ),
    "two groups of the same ranks": (
        {
            0: [call("all_reduce", (0, 1)), call("all_reduce", (0, 1), number=1)],
            1: [call("all_reduce", (0, 1), number=1), call("all_reduce", (0, 1))],
        },
        (0, 1),
        [(0,), (1,)],
    ),
    "a circle over rows and columns": (
        {
            rank: [
                call("all_reduce", g)
                for g in ((row, column) if rank in (0, 3) else (column, row))
                for g in [g(rank)]
            ]
            for rank in WORLD
        },
        WORLD,
        [(0,), (1,), (2,), (3,)],
    ),
    "both receive first": (
        {
            0: [message("recv", 1, waits=True), message("send", 1)],
            1: [message("recv", 0, waits=True), message("send", 0)],
        },
        (0, 1),
        [(0,), (1,)],
    ),
    "a message that nobody receives": (
        {0: [message("send", 1)] * 2, 1: [message("recv", 0)]},
        (0, 1),
        [(0,), (1,)],
    ),
    "a message of another size": (
        {0: [message("send", 1, size=8)], 1: [message("recv", 0)]},
        (0, 1),
        [(0,), (1,)],
    ),
    "splits of which one pair differs": (
        {0: [splits[0]], 1: [IssuedCollective(splits[1].collective, ("float32",), (2, 4), (6, 4))]},
        (0, 1),
        [(0,), (1,)],
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_ranks_have_no_difference(name: str) -> None:
    assert order_differences(issued(SOUND[name])) == []


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_in_its_group_and_names_each_rank(name: str) -> None:
    by_rank, group, ranks = FAULTY[name]
    first = order_differences(issued(by_rank))[0]
    assert first.group == group and [own for _, own in first.values] == ranks
    assert len({value for value, _ in first.values}) == len(first.values)


def test_a_rehearsal_does_not_compare_sizes_that_follow_from_values() -> None:
    sized = {rank: [call("all_gather", size=4 + rank, sized_by_values=True)] for rank in WORLD}
    assert order_differences(issued(sized)) and not order_differences(issued(sized), rehearsed=True)
    other = {**sized, 3: [call("all_gather", arguments="max", sized_by_values=True)]}
    assert order_differences(issued(other), rehearsed=True)


def test_ranks_are_compared_from_where_all_are_observed() -> None:
    late = IssuedCollectives((reduce, gather), (1, 0), (EarlierCollectives(WORLD, 0, 3),))
    early = IssuedCollectives((reduce, gather), (0, 0, 1, 0), (EarlierCollectives(WORLD, 0, 1),))
    fewer = IssuedCollectives((reduce, gather), (0, 0, 1), (EarlierCollectives(WORLD, 0, 1),))
    assert order_differences({0: early, 1: late}) == []
    (one,) = order_differences({0: fewer, 1: late})
    assert (one.position, [ranks for _, ranks in one.values]) == (1, [(0,), (1,)])


def test_the_position_is_that_in_the_group() -> None:
    by_rank = {rank: [call("all_reduce", row(rank))] * 5 + [reduce, reduce] for rank in WORLD}
    by_rank[2] = [*by_rank[2][:5], reduce, gather]
    (one,) = order_differences(issued(by_rank))
    assert (one.position, one.group) == (1, WORLD)
    assert one.place == Frame("train.py", 7, "step")


FIRST, SECOND = call("all_reduce", (0, 1), waits=False), call("all_gather", (0, 1), number=1, waits=False)


@pytest.mark.parametrize(
    ("waits", "is_sound"),
    [
        (((1, 0),), False),
        (((2, 0), (2, 1)), True),
        (((2, 1), (2, 0)), True),
        ((), True),
    ],
)
def test_a_rank_waits_for_a_handle_where_it_does(waits: tuple[tuple[int, int], ...], is_sound: bool) -> None:
    by_rank = {
        rank: IssuedCollectives(calls, (0, 1), waits=waits)
        for rank, calls in ((0, (FIRST, SECOND)), (1, (SECOND, FIRST)))
    }
    assert (not order_differences(by_rank)) is is_sound


def test_a_circle_that_depends_on_unknown_waits_is_neither_a_difference_nor_ruled_out() -> None:
    first, second = (dataclasses.replace(one, waits=None) for one in (FIRST, SECOND))
    circle = issued({0: [first, SECOND], 1: [second, FIRST]})
    assert not order_differences(circle) and depends_on_unknown_waits(circle)
    alike = issued({0: [first, SECOND], 1: [first, SECOND]})
    assert not depends_on_unknown_waits(alike)
    fewer = issued({0: [first, SECOND], 1: [first]})
    assert order_differences(fewer) and not depends_on_unknown_waits(fewer)


def test_waits_are_counted_from_where_all_ranks_are_observed() -> None:
    """Rank 1 is observed one call later: its wait for its second call is for the first one compared."""
    late = IssuedCollectives((SECOND, FIRST), (0, 1), (EarlierCollectives((0, 1), 0, 1),), waits=((1, 0),))
    calls = (FIRST, FIRST, SECOND)
    early = IssuedCollectives(calls, (0, 1, 2), waits=((2, 0), (2, 1)))
    (one,) = order_differences({0: early, 1: late})
    assert [value.partition(" of ")[0] for value, _ in one.values] == [
        "waits at all_reduce",
        "waits at all_gather",
    ]
    assert not order_differences({0: dataclasses.replace(early, waits=((2, 0),)), 1: late})


def test_a_wait_is_for_a_call_that_was_issued() -> None:
    for wait in ((0, 0), (1, 1), (3, 0), (1, -1)):
        with pytest.raises(RecordError, match="not issued before"):
            IssuedCollectives((FIRST,), (0, 0), waits=(wait,))


def test_a_message_to_a_rank_that_receives_from_any_is_not_waited_for() -> None:
    by_rank = {
        0: [message("recv", None, waits=True)],
        1: [message("send", 0, waits=True), reduce],
        2: [reduce],
    }
    assert not order_differences(issued({**by_rank, 0: [*by_rank[0], reduce]}))


def test_a_long_program_of_many_ranks_takes_no_time() -> None:
    ranks = tuple(range(64))
    world, half = call("all_reduce", ranks), [call("all_gather", ranks[:32]), call("all_gather", ranks[32:])]
    by_rank = {rank: IssuedCollectives((world, half[rank // 32]), (0, 1) * 500) for rank in ranks}
    assert order_differences(by_rank) == []


def test_groups_are_made_alike_from_where_all_ranks_are_observed() -> None:
    """Four groups: rank 1 is observed from the third on, and creates it like rank 0, or creates another one."""
    groups = [call("new_group", arguments=f"ranks 0, {n}") for n in range(1, 4)]
    other = call("new_group", arguments="ranks 0, 2, 3")
    for late, sound in ((groups[2:], True), ([other], False), ([], False)):
        by_rank = issued({0: groups, 1: late})
        by_rank[1] = dataclasses.replace(by_rank[1], groups_before=2)
        assert (not order_differences(by_rank)) is sound
