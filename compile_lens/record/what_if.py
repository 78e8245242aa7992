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
        to_apply: the code that has it so in a program: ``torch.compile(f, options={"split_reductions": False})``, and
            before it, in lines of their own, settings that it does not take.
        parts: of a pair the names of its two switches; else empty.
    """

    name: str
    settings: tuple[str, ...]
    meaning: str
    figures: tuple[tuple[str, tuple[int | None, int | None]], ...] = ()
    failure: str = ""
    capture: Record | None = None
    code: bool | None = None
    arguments: Mapping[str, Any] | None = None
    to_apply: str = ""
    parts: tuple[str, ...] = ()

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

    def better(self, other: Trial) -> bool:
        """Whether one of them is less than with ``other``, a trial of the same call, and none is more."""
        own, others = dict(self.figures), dict(other.figures)
        less = False
        for name in HELPS:
            if own.get(name) == others.get(name):
                continue
            either = own.get(name) or others[name]
            mine, its = (pair[1] if pair else either[0] for pair in (own.get(name), others.get(name)))
            if mine is None or its is None or mine > its:
                return False
            less = True
        return less

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
        first, the most saved first; a pair only where it is better than each of its two. Whether any of them is faster
        nobody can tell without running it."""
        found = [trial for trial in self.trials if trial.less and trial not in self.idle_pairs]

        def rank(trial: Trial) -> tuple[bool, float, int, int]:
            shares = [
                after / before
                for name, (before, after) in trial.figures
                if name in trial.less and before and after is not None
            ]
            return bool(trial.more), min(shares, default=1.0), -len(trial.less), len(trial.settings)

        return tuple(sorted(found, key=rank))

    @property
    def idle_pairs(self) -> tuple[Trial, ...]:
        """Pairs that change a figure and are no better than one of their two switches by itself."""
        alone = {trial.name: trial for trial in self.trials if not trial.parts}
        return tuple(
            trial
            for trial in self.trials
            if trial.parts and trial.matters and not all(trial.better(alone[name]) for name in trial.parts)
        )

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
                    "to_apply": t.to_apply,
                }
                for t in self.trials
            ],
            "helpful": [t.name for t in self.helpful],
            "left_out": [list(pair) for pair in self.left_out],
            "interrupted": self.interrupted,
        }
