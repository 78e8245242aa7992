"""Collectives that a program calls, inside and outside graphs."""

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
        arguments: the reduction (``sum``), or the source or destination rank (``from 0``).
        inputs: the input tensors of this process (``float32[4, s0]``).
        bytes: bytes of these tensors, from their sizes; ``None`` if a size is not known.
        line: the line of the program that calls it; ``None`` if there is none.
        group: the ranks of its group, in the group's order; ``()`` if not known.
        group_number: number of its group among those with these ranks, in order of creation.
    """

    name: str
    arguments: str = ""
    inputs: tuple[str, ...] = ()
    bytes: int | None = None
    line: Frame | None = None
    group: tuple[int, ...] = ()
    group_number: int = 0


NEW_GROUP = "new_group"
"""Name of the collective that creates a group."""
LOCAL_GROUP = "new_group with use_local_synchronization"
"""Name of the call that creates a group and for which only the members wait."""


@dataclass(frozen=True)
class IssuedCollective:
    """A collective or a message that a process issued from Python, a compiled graph or torch's C++.

    Attributes:
        collective: the call.
        agreed: the tensors that must be alike on all processes of the group; for a gather into a list, the outputs.
        sent: number of elements sent to each process of the group, in its order, if these may differ.
        received: number of elements received from each, in the same order.
        peer: source or destination rank of a message; ``None`` for a collective, and for a message from any rank.
        tag: tag of a message.
        waits: whether the process waited for it before going on; ``None`` if not known. A later wait is in
            ``IssuedCollectives.waits``.
        sized_by_values: whether its sizes depend on values returned by other collectives.
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
    """Collectives of a group that were issued before observation began: ``count`` is the group's own counter, ``None``
    if it has none."""

    group: tuple[int, ...]
    group_number: int
    count: int | None


@dataclass(frozen=True)
class IssuedCollectives:
    """The collectives and messages that a process issued, in order; those of graphs once for each call.

    Attributes:
        distinct: the distinct ones.
        order: their indices in issue order.
        earlier: groups that issued collectives before observation began.
        groups_before: number of groups that all processes created before.
        waits: waits for earlier calls, in order, as pairs: the number of calls issued before the wait, and the position
            of the call that it waits for.
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
    """Gradients that DDP reduces together: their bytes and the number of parameters."""

    bytes: int
    parameters: int
