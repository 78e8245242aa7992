"""Stages that are not in the record: those that could not be seen, and those that there are not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Absent:
    """A stage that is not there, and why."""

    stage: str
    reason: str

    @property
    def key(self) -> str:
        """Its stage key."""
        return self.stage

    @property
    def said(self) -> str:
        """The reason as a sentence without a full stop."""
        return f"stage {self.stage} was not seen: {self.reason}"


@dataclass(frozen=True)
class Missing(Absent):
    """A stage that could not be seen, and why."""


@dataclass(frozen=True)
class NotApplicable(Absent):
    """A stage that this function does not have, or that was not asked for: nothing is missing."""

    @property
    def said(self) -> str:
        """The reason as a sentence without a full stop."""
        return f"there is no stage {self.stage}: {self.reason}"
