"""Collectives that a program calls, inside of graphs and outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import RecordError
from .graph import Frame


@dataclass(frozen=True)
class Collective:
    """A call in which all processes of a group take part.

    Attributes:
        name: torch's name (``all_reduce``).
        arguments: the reduction (``sum``), or the process from which or to which it goes (``from 0``).
        inputs: the tensors that this process gives (``float32[4, s0]``).
        bytes: of those tensors, counted from their sizes; ``None`` where a size is not known.
        line: the line of the program that calls it; ``None`` where no line did.
        group: the ranks of its group, in the group's order; ``()`` where that is not known.
        group_number: which of the groups with these ranks it is, in the order in which they were made.
    """

    name: str
    arguments: str = ""
    inputs: tuple[str, ...] = ()
    bytes: int | None = None
    line: Frame | None = None
    group: tuple[int, ...] = ()
    group_number: int = 0


NEW_GROUP = "new_group"
"""Name of the collective by which a group is made."""
LOCAL_GROUP = "new_group with use_local_synchronization"
"""Name of the call for which the members of a new group wait, and no others."""


@dataclass(frozen=True)
class IssuedCollective:
    """A collective or a message that a process issued, be it from Python, a compiled graph or torch's C++.

    Attributes:
        collective: the call.
        agreed: the tensors that all processes of the group must give alike: of one that gathers a list, its outputs.
        sent: how many elements go to each process of the group, in its order, where each can get another number.
        received: how many elements come from each, likewise.
        peer: the process to which a message goes, or from which it comes; ``None`` of a collective, and of a message
            from any process.
        tag: of a message.
        waits: whether the process waited for it before it went on; ``None`` where that is not known. If it waited
            later, ``IssuedCollectives.waits`` has when.
        sized_by_values: whether its sizes follow from values that other collectives returned.
    """

    collective: Collective
    agreed: tuple[str, ...] = ()
    sent: tuple[int, ...] = ()
    received: tuple[int, ...] = ()
    peer: int | None = None
    tag: int = 0
    waits: bool | None = True
    sized_by_values: bool = False


@dataclass(frozen=True)
class EarlierCollectives:
    """Collectives of a group that were issued before they were observed: how many as the group counts them, ``None``
    where it does not."""

    group: tuple[int, ...]
    group_number: int
    count: int | None


@dataclass(frozen=True)
class IssuedCollectives:
    """The collectives and messages that a process issued, in order, graphs at each of their calls.

    Attributes:
        distinct: each different one, once.
        order: the numbers of those, in the order in which they were issued.
        earlier: the groups that issued some before that were not observed.
        groups_before: how many groups all processes made before.
        waits: waits for earlier calls, in order: how many calls were issued before the wait, and the position of the
            call for which the process waited.
    """

    distinct: tuple[IssuedCollective, ...] = ()
    order: tuple[int, ...] = ()
    earlier: tuple[EarlierCollectives, ...] = ()
    groups_before: int = 0
    waits: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if any(not 0 <= call < position <= len(self.order) for position, call in self.waits):
            raise RecordError("a wait is for a collective that was not issued before")
        if any(not 0 <= number < len(self.distinct) for number in self.order):
            raise RecordError("the order of issued collectives has a number that none of them has")

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[IssuedCollective]:
        return (self.distinct[number] for number in self.order)


@dataclass(frozen=True)
class Bucket:
    """Gradients that DDP reduces together: how many bytes, and of how many parameters."""

    bytes: int
    parameters: int
