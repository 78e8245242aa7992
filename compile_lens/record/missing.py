"""Stages and claims that are not in the record: those that could not be observed, and those that do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import StageMissing


@dataclass(frozen=True)
class AbsentStage:
    """A stage that is not in the record, and why."""

    stage: str
    reason: str

    @property
    def key(self) -> str:
        """Stage key."""
        return self.stage

    @property
    def message(self) -> str:
        """The reason as a sentence without a full stop."""
        return f"stage {self.stage} was not seen: {self.reason}"


@dataclass(frozen=True)
class Missing(AbsentStage):
    """A stage, or a claim (``record.claims``), that could not be observed, and why."""


def why_missing(stages: Mapping[str, object], key: str) -> str:
    """Return why a stage is missing: its own reason, or that of its graph. ``stages`` are by key."""
    for name in (key, key.partition(".")[0]):
        stage = stages.get(name)
        if isinstance(stage, AbsentStage):
            return stage.message
    return f"stage {key} is not in the record"


def reason_for(missing: Iterable[Missing], claim: str) -> str:
    """Return why a claim (``record.claims``) is not or only partly known; ``""`` if it is known."""
    return next((one.reason for one in missing if one.stage == claim), "")


def by_reason(missing: Iterable[Missing]) -> dict[str, list[str]]:
    """Return stages and claims that could not be observed, by reason."""
    stages: dict[str, list[str]] = {}
    for one in missing:
        stages.setdefault(one.reason, []).append(one.stage)
    return stages


@dataclass(frozen=True)
class NotApplicable(AbsentStage):
    """A stage that this function does not have, or that was not requested; it does not count as missing."""

    @property
    def message(self) -> str:
        """The reason as a sentence without a full stop."""
        return f"there is no stage {self.stage}: {self.reason}"


class CodeByPhase(dict[str, Any]):
    """Generated code by phase. A phase without code raises ``StageMissing``, a ``KeyError``, with the reason."""

    def __init__(self, codes: Mapping[str, Any], absent: Mapping[str, AbsentStage]) -> None:
        super().__init__(codes)
        self._absent = absent

    def __missing__(self, phase: str) -> Any:
        absent = self._absent.get(phase)
        if absent is not None:
            raise StageMissing(absent.message)
        raise StageMissing(f"no code of phase {phase!r}; there is code of {', '.join(self) or 'none'}")
