"""What one stage keeps of a compile while it works on it.

A stage makes a slot of the type that it keeps, and is the one to fill it and to empty it; who reads it imports it from
there. As a rule it holds nodes of torch's graphs, so nothing stays in it when the stage is over.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Slot(Generic[T]):
    """A place in every draft for a value of one type."""

    __slots__ = ()

    def of(self, draft: Keeper) -> T | None:
        """What is kept of this draft now."""
        kept: T | None = draft.kept.get(self)
        return kept

    def put(self, draft: Keeper, value: T) -> T:
        """Keep ``value``, in place of what was there."""
        draft.kept[self] = value
        return value

    def take(self, draft: Keeper) -> T | None:
        """What was kept, which is kept no longer."""
        kept: T | None = draft.kept.pop(self, None)
        return kept


Kept = dict[Slot[Any], Any]
"""What is in the slots of one draft; read and written by them alone."""


class Keeper(Protocol):
    """What has slots: a draft."""

    kept: Kept
