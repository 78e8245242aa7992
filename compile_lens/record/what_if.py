"""What single switches of the compiler would change of a function's code, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .capture import Record

FIGURES = ("graphs", "launches", "extern", "bytes", "peak", "saved")
"""Figures that are compared, in the order in which they are shown; of ``HELPS`` less is better."""

HELPS = ("launches", "bytes", "peak", "saved")


@dataclass(frozen=True)
class Trial:
    """The same call captured with a switch turned, or with two.

    Attributes:
        name: the switches, with a plus sign between two.
        settings: what was set, as ``name=value``.
        meaning: what the switch does, in a line.
        figures: those that changed, by name: before and after. ``None`` where one is not known.
        code: whether anything of the program or its code is another; ``None`` where there is no capture.
        failure: why there is no capture of it; ``""`` where there is.
        capture: what was captured; ``None`` where it failed.
        arguments: what ``capture`` and ``benchmark`` take to have it so; ``None`` for a setting that they do not take
            (the partitioner's, which is set where torch has it).
    """

    name: str
    settings: tuple[str, ...]
    meaning: str
    figures: tuple[tuple[str, tuple[int | None, int | None]], ...] = ()
    failure: str = ""
    capture: Record | None = None
    code: bool | None = None
    arguments: Mapping[str, Any] | None = None

    @property
    def matters(self) -> bool:
        """Whether any figure is another with it."""
        return bool(self.figures)

    @property
    def less(self) -> tuple[str, ...]:
        """Which of launches, bytes, peak and what is kept for the backward are less with it."""
        return self._where(lambda before, after: after < before)

    @property
    def more(self) -> tuple[str, ...]:
        """Which of them are more."""
        return self._where(lambda before, after: after > before)

    def _where(self, asked: Any) -> tuple[str, ...]:
        return tuple(
            name
            for name, (before, after) in self.figures
            if name in HELPS and before is not None and after is not None and asked(before, after)
        )


@dataclass(frozen=True, repr=False)
class WhatIfRecord:
    """What turning switches changes.

    Attributes:
        function: what was captured.
        base: the capture as it is.
        trials: what was tried, each switch by itself, then pairs of those that matter.
        left_out: switches that were not tried, and why.
        interrupted: whether it was stopped before all of them were tried.
    """

    function: str
    base: Record
    trials: tuple[Trial, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    interrupted: bool = False

    @property
    def helpful(self) -> tuple[Trial, ...]:
        """Trials with fewer launches, bytes, a lower peak, or less kept for the backward: those without a drawback
        first, the most saved first. Whether any of them is faster nobody can tell without running it."""
        found = [trial for trial in self.trials if trial.less]

        def rank(trial: Trial) -> tuple[bool, float, int]:
            shares = [
                after / before
                for name, (before, after) in trial.figures
                if name in trial.less and before and after is not None
            ]
            return bool(trial.more), min(shares, default=1.0), len(trial.settings)

        return tuple(sorted(found, key=rank))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data, without the captures."""
        return {
            "function": self.function,
            "trials": [
                {
                    "name": t.name,
                    "settings": list(t.settings),
                    "meaning": t.meaning,
                    "figures": {name: list(pair) for name, pair in t.figures},
                    "code": t.code,
                    "failure": t.failure,
                }
                for t in self.trials
            ],
            "helpful": [t.name for t in self.helpful],
            "left_out": [list(pair) for pair in self.left_out],
            "interrupted": self.interrupted,
        }
