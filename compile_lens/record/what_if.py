"""Trials of single compiler switches and their effect on a function's code, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .capture import Record

FIGURES = ("graphs", "recompiles", "launches", "extern", "bytes", "peak", "saved", "disagreement")
"""Figures that are compared, in the order in which they are shown; of ``HELPS`` less is better. ``disagreement`` is the
largest difference between compiled and eager values."""

HELPS = ("recompiles", "launches", "bytes", "peak", "saved", "disagreement")


@dataclass(frozen=True)
class Trial:
    """The same call captured with a switch turned, or with two.

    Attributes:
        name: the switches, with a plus sign between two.
        settings: what was set, as ``name=value``.
        description: what the switch does, in a line.
        figures: those that changed, by name: before and after. ``None`` where one is not known.
        code_changed: whether anything of the program or its code is another; ``None`` where there is no capture.
        failure: why there is no capture of it; ``""`` where there is.
        capture: what was captured; ``None`` where it failed.
        arguments: what ``capture`` and ``benchmark`` take to have it so; ``None`` for a setting that they do not take
            (the partitioner's, which is set where torch has it, and ``isolate_recompiles``).
        to_apply: the code that has it so in a program: ``torch.compile(f, options={"split_reductions": False})``, and
            before it, in lines of their own, settings that it does not take.
        switches: of a pair the names of its two switches; else empty.
    """

    name: str
    settings: tuple[str, ...]
    description: str
    figures: tuple[tuple[str, tuple[float | None, float | None]], ...] = ()
    failure: str = ""
    capture: Record | None = None
    code_changed: bool | None = None
    arguments: Mapping[str, Any] | None = None
    to_apply: str = ""
    switches: tuple[str, ...] = ()

    @property
    def changes_figures(self) -> bool:
        """True if any figure changes."""
        return bool(self.figures)

    @property
    def lower(self) -> tuple[str, ...]:
        """Names of the figures (of ``HELPS``: recompiles, launches, bytes and more) that are lower with it."""
        return self._where(lambda before, after: after < before)

    @property
    def higher(self) -> tuple[str, ...]:
        """Names of the figures that are higher with it."""
        return self._where(lambda before, after: after > before)

    def improves_on(self, other: Trial) -> bool:
        """Return True if a figure is lower than with ``other``, a trial of the same call, and none is higher."""
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
    """Effect of each switch that was turned.

    Attributes:
        function: what was captured.
        base: the capture as it is.
        trials: what was tried, each switch by itself, then pairs of those that matter.
        not_tried: switches that were not tried, and why.
        interrupted: whether it was stopped before all of them were tried.
    """

    function: str
    base: Record
    trials: tuple[Trial, ...] = ()
    not_tried: tuple[tuple[str, str], ...] = ()
    interrupted: bool = False

    @property
    def helpful(self) -> tuple[Trial, ...]:
        """Trials with fewer recompiles, launches or bytes, a lower peak, less kept for the backward, or values nearer
        to eager's: those without a drawback first, the most saved first; a pair only where it is better than each of
        its two. Whether any of them is faster nobody can tell without running it."""
        trials = [trial for trial in self.trials if trial.lower and trial not in self.pairs_without_gain]

        def rank(trial: Trial) -> tuple[bool, float, int, int]:
            shares = [
                after / before
                for name, (before, after) in trial.figures
                if name in trial.lower and before and after is not None
            ]
            return bool(trial.higher), min(shares, default=1.0), -len(trial.lower), len(trial.settings)

        return tuple(sorted(trials, key=rank))

    @property
    def pairs_without_gain(self) -> tuple[Trial, ...]:
        """Pairs that change a figure and are no better than one of their two switches by itself."""
        alone = {trial.name: trial for trial in self.trials if not trial.switches}
        return tuple(
            trial
            for trial in self.trials
            if trial.switches
            and trial.changes_figures
            and not all(trial.improves_on(alone[name]) for name in trial.switches)
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data, without the captures."""
        return {
            "function": self.function,
            "trials": [
                {
                    "name": t.name,
                    "settings": list(t.settings),
                    "description": t.description,
                    "figures": {name: list(pair) for name, pair in t.figures},
                    "code_changed": t.code_changed,
                    "failure": t.failure,
                    "to_apply": t.to_apply,
                }
                for t in self.trials
            ],
            "helpful": [t.name for t in self.helpful],
            "not_tried": [list(pair) for pair in self.not_tried],
            "interrupted": self.interrupted,
        }
