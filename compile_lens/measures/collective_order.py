"""Comparison of the collectives that ranks issued: each group's members must issue the same ones in the same order, and
no ranks may wait for each other in a circle.

Groups are identified by their members. A collective is the same on two ranks if its name, reduction, root and the
tensors on which all must agree are equal; in an exchange with sizes of its own for each rank, each pair must agree.
Messages are matched by sender and receiver.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from compile_lens.record.collectives import NEW_GROUP, Collective, IssuedCollective, IssuedCollectives
from compile_lens.record.graph import Frame
from compile_lens.record.ranks import COLLECTIVES, RankDifference

ABSENT = "none"
"""Value of a rank without the call that others have."""

Group = tuple[tuple[int, ...], int]
"""Ranks of a group, and which of the groups with these ranks it is."""


def differs(
    level: str, place: Frame | None, position: int, values: Mapping[int, str]
) -> list[RankDifference]:
    """Return the difference if not all ranks have the same value."""
    by_value = _by_value(values)
    return [RankDifference(level, place, position, by_value)] if len(by_value) > 1 else []


def order_differences(
    issued: Mapping[int, IssuedCollectives], rehearsed: bool = False
) -> list[RankDifference]:
    """Return for each group the first collective on which its members differ, and messages without a partner; if there
    is neither, the ranks that wait for each other."""
    calls = _aligned(issued)
    by_group: dict[Group, dict[int, list[IssuedCollective]]] = {}
    messages: dict[tuple[int, int, Group, int], tuple[list[IssuedCollective], list[IssuedCollective]]] = {}
    unmatched = _unmatched({rank: own.distinct for rank, own in issued.items()})
    for rank in sorted(issued):
        for one in calls[rank].issued:
            if not one.collective.group:
                continue
            group = (one.collective.group, one.collective.group_number)
            if not is_message(one):
                by_group.setdefault(group, {}).setdefault(rank, []).append(one)
            elif one.peer is not None and one.peer in issued and not unmatched:
                sends = one.collective.name == "send"
                ends = (rank, one.peer) if sends else (one.peer, rank)
                messages.setdefault((*ends, group, one.tag), ([], []))[0 if sends else 1].append(one)
    rank_differences = []
    for (ranks, _), own in by_group.items():
        rows = {rank: own.get(rank, []) for rank in ranks if rank in issued}
        rank_differences += _first_difference(ranks, rows, rehearsed)
    for (sender, receiver, *_), (sent, received) in messages.items():
        rank_differences += _message_difference(sender, receiver, sent, received)
    return rank_differences or _waiting(calls)


class _Calls(NamedTuple):
    """The calls of a rank, and its waits as pairs of indices: the call before which it waits, the call it waits for."""

    issued: list[IssuedCollective]
    waits: list[tuple[int, int]]


def _aligned(issued: Mapping[int, IssuedCollectives]) -> dict[int, _Calls]:
    """Return the calls of each rank since all members of a group are observed: one rank's watch may start later."""
    earlier = {
        rank: {(one.group, one.group_number): one.count or 0 for one in own.earlier}
        for rank, own in issued.items()
    }
    start: dict[Group, int] = {}
    for counts in earlier.values():
        for group, count in counts.items():
            start[group] = max(start.get(group, 0), count)
    calls: dict[int, _Calls] = {}
    for rank, own in issued.items():
        skips = {group: count - earlier[rank].get(group, 0) for group, count in start.items()}
        groups = max(each.groups_before for each in issued.values()) - own.groups_before
        kept: list[IssuedCollective] = []
        numbers: list[int | None] = []
        before = [0]
        for one in own:
            group = (one.collective.group, one.collective.group_number)
            numbers.append(None)
            if one.collective.name == NEW_GROUP and groups > 0:
                groups -= 1
            elif one.collective.name != NEW_GROUP and not is_message(one) and skips.get(group, 0) > 0:
                skips[group] -= 1
            else:
                numbers[-1] = len(kept)
                kept.append(one)
            before.append(len(kept))
        waits = [(before[at], number) for at, of in own.waits if (number := numbers[of]) is not None]
        calls[rank] = _Calls(kept, waits)
    return calls


def is_message(one: IssuedCollective) -> bool:
    """Return True for a message from one rank to another."""
    return one.collective.name in ("send", "recv")


def collective_text(one: Collective) -> str:
    """Return a collective as one line of text."""
    inputs = f" of {', '.join(one.inputs)}" if one.inputs else ""
    return f"{one.name}{inputs} ({one.arguments})" if one.arguments else f"{one.name}{inputs}"


def issued_text(one: IssuedCollective) -> str:
    """Return a collective or a message as one line of text."""
    if is_message(one):
        whom = "any rank" if one.peer is None else f"rank {one.peer}"
        tensors = f" {', '.join(one.agreed)}" if one.agreed else ""
        tag = f" (tag {one.tag})" if one.tag else ""
        return (
            f"send{tensors} to {whom}{tag}"
            if one.collective.name == "send"
            else f"recv{tensors} from {whom}{tag}"
        )
    splits = (
        f", {list(one.sent)} elements out, {list(one.received)} in"
        if len({*one.sent, *one.received}) > 1
        else ""
    )
    return collective_text(one.collective) + splits


def _first_difference(
    ranks: tuple[int, ...], rows: Mapping[int, list[IssuedCollective]], rehearsed: bool
) -> list[RankDifference]:
    agreements: dict[int, tuple[object, ...]] = {}
    for own in rows.values():
        agreements |= {key: _agreement(one) for key, one in {id(one): one for one in own}.items()}
    for position, row in enumerate(zip_longest(*rows.values())):
        calls = [one for one in row if one is not None]
        if len(calls) == len(row):
            if rehearsed and any(one.sized_by_values for one in calls):
                if len({_agreement(one, sizes=False) for one in calls}) == 1:
                    continue
            elif len({agreements[id(one)] for one in calls}) == 1:
                if not calls[0].sent or len(calls) < len(ranks) or _splits_match(calls):
                    continue
        values = {
            rank: ABSENT if one is None else issued_text(one) for rank, one in zip(rows, row, strict=True)
        }
        if len(set(values.values())) < 2:  # the texts do not show the difference
            values = {
                rank: f"{values[rank]}, for {', '.join(one.agreed)}"
                for rank, one in zip(rows, row, strict=True)
                if one is not None
            }
        return [RankDifference(COLLECTIVES, calls[0].collective.line, position, _by_value(values), ranks)]
    return []


def _by_value(values: Mapping[int, str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    by_value: dict[str, list[int]] = {}
    for rank in sorted(values):
        by_value.setdefault(values[rank], []).append(rank)
    return tuple((value, tuple(ranks)) for value, ranks in by_value.items())


def _agreement(one: IssuedCollective, sizes: bool = True) -> tuple[object, ...]:
    """Return what must be the same on all ranks of the group."""
    agreed = one.agreed if sizes else tuple(sorted({text.partition("[")[0] for text in one.agreed}))
    return (one.collective.name, one.collective.arguments, agreed)


def _splits_match(calls: Sequence[IssuedCollective]) -> bool:
    """Return True if each rank receives from each other rank as many elements as that one sends."""
    every = range(len(calls))
    if any(len(one.sent) != len(calls) or len(one.received) != len(calls) for one in calls):
        return False
    return all(calls[a].sent[b] == calls[b].received[a] for a in every for b in every)


def _message_difference(
    sender: int, receiver: int, sent: list[IssuedCollective], received: list[IssuedCollective]
) -> list[RankDifference]:
    for position, (out, into) in enumerate(zip_longest(sent, received)):
        if out is not None and into is not None and out.agreed == into.agreed:
            continue
        known = out if out is not None else into
        values = {
            rank: ABSENT if one is None else issued_text(one)
            for rank, one in ((sender, out), (receiver, into))
        }
        place = known.collective.line if known is not None else None
        return [RankDifference(COLLECTIVES, place, position, _by_value(values), (sender, receiver))]
    return []


def _unmatched(calls: Mapping[int, Sequence[IssuedCollective]]) -> set[int]:
    """Return the ranks that receive from any source: which message they receive is not known."""
    return {rank for rank, own in calls.items() if any(is_message(one) and one.peer is None for one in own)}


_Event = tuple[object, ...]


class _Simulation:
    """Replay of the calls of all ranks: each goes on until it waits for ranks that have not issued their part.

    Args:
        at_once: whether a rank is assumed to wait immediately for a call whose wait was not observed.
    """

    def __init__(self, calls: Mapping[int, _Calls], at_once: bool) -> None:
        self._calls = {rank: own.issued for rank, own in calls.items()}
        self._steps = {rank: _steps(own, at_once) for rank, own in calls.items()}
        self._position = dict.fromkeys(calls, 0)
        self._counts: Counter[_Event] = Counter()
        self._arrived: dict[_Event, set[int]] = {}
        self._waiters: dict[_Event, list[int]] = {}
        self._present: dict[tuple[int, ...], int] = {}
        """By group, how many of its ranks are observed."""
        self._events: dict[int, list[_Event]] = {rank: [] for rank in calls}
        """By rank, the event of each call that it issued."""
        self._unmatched = _unmatched(self._calls)

    def run(self) -> dict[int, tuple[int, IssuedCollective, list[int]]]:
        """Return the ranks that wait at the end, with the call's position, the call, and the ranks waited for."""
        ready = deque(self._calls)
        stuck: dict[int, tuple[int, IssuedCollective, list[int]]] = {}
        while ready:
            rank = ready.popleft()
            stuck.pop(rank, None)
            while self._position[rank] < len(self._steps[rank]):
                number, waits = self._steps[rank][self._position[rank]]
                one = self._calls[rank][number]
                if not waits:
                    ready.extend(self._post(rank, one))
                elif self._is_pending(event := self._events[rank][number], one):
                    self._waiters.setdefault(event, []).append(rank)
                    stuck[rank] = number, one, []
                    break
                self._position[rank] += 1
        return {
            rank: (number, one, self._absent(self._events[rank][number], one))
            for rank, (number, one, _) in stuck.items()
        }

    def _post(self, rank: int, one: IssuedCollective) -> list[int]:
        """Issue a call; return the ranks that need not wait any more."""
        group = (one.collective.group, one.collective.group_number)
        if is_message(one):
            sends = one.collective.name == "send"
            channel: _Event = (group, *((rank, one.peer) if sends else (one.peer, rank)), one.tag)
            count = (*channel, one.collective.name)
        else:
            channel, count = (group,), (group, rank)
        self._counts[count] += 1
        event = (channel, self._counts[count])
        self._events[rank].append(event)
        self._arrived.setdefault(event, set()).add(rank)
        return [] if self._is_pending(event, one) else self._waiters.pop(event, [])

    def _is_pending(self, event: _Event, one: IssuedCollective) -> bool:
        """Return True if a participant has not issued the call yet."""
        if is_message(one):
            return bool(self._absent(event, one))
        group = one.collective.group
        if group not in self._present:
            self._present[group] = sum(rank in self._calls for rank in group)
        return len(self._arrived[event]) < self._present[group]

    def _absent(self, event: _Event, one: IssuedCollective) -> list[int]:
        others = one.collective.group
        if is_message(one):  # a send too: gloo and NCCL buffer no message
            others = () if one.peer is None or one.peer in self._unmatched else (one.peer,)
        return [other for other in others if other in self._calls and other not in self._arrived[event]]


def _steps(own: _Calls, at_once: bool) -> list[tuple[int, bool]]:
    """Return a rank's steps in order: the index of a call, and True to wait for it, False to issue it."""
    later = deque(own.waits)
    steps = []
    for number, one in enumerate(own.issued):
        while later and later[0][0] <= number:
            steps.append((later.popleft()[1], True))
        steps.append((number, False))
        if one.waits or (at_once and one.waits is None):
            steps.append((number, True))
    return steps + [(number, True) for _, number in later]


def depends_on_unknown_waits(issued: Mapping[int, IssuedCollectives]) -> bool:
    """Return True if ranks may wait for each other in a circle, depending on waits that were not observed."""
    if all(one.waits is not None for own in issued.values() for one in own.distinct):
        return False
    return bool(_Simulation(_aligned(issued), at_once=True).run()) and not order_differences(issued)


def _waiting(calls: Mapping[int, _Calls]) -> list[RankDifference]:
    """Return the ranks that wait for each other though each group's members agree."""
    waiting = _Simulation(calls, at_once=False).run()
    if not waiting:
        return []
    values = []
    for rank, (_, one, others) in sorted(waiting.items()):
        group = "" if is_message(one) else f" of ranks {', '.join(map(str, one.collective.group))}"
        values.append((f"waits at {issued_text(one)}{group} for rank {', '.join(map(str, others))}", (rank,)))
    position, first, _ = waiting[min(waiting)]
    return [
        RankDifference(COLLECTIVES, first.collective.line, position, tuple(values), tuple(sorted(waiting)))
    ]
