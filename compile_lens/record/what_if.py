"""Trials of single compiler switches and their effect on a function's code, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .capture import Record

FIGURES = ("graphs", "recompiles", "launches", "extern", "bytes", "peak", "saved", "disagreement")
"""Compared figures in display order; for those of ``LOWER_IS_BETTER`` less is better. ``disagreement`` is the largest
difference between compiled and eager values."""

LOWER_IS_BETTER = ("recompiles", "launches", "bytes", "peak", "saved", "disagreement")


@dataclass(frozen=True)
class Trial:
    """The same call captured with one or two switches changed.

    Attributes:
        name: the switches, with a plus sign between two.
        settings: the settings, as ``name=value``.
        description: the effect of the switch, in a line.
        figures: the changed figures by name, before and after. ``None`` for an unknown figure.
        code_changed: whether the program's capture or its code changed; ``None`` if there is no capture.
        failure: why there is no capture; ``""`` if there is one.
        capture: the capture; ``None`` if it failed.
        arguments: arguments of ``capture`` and ``benchmark`` that apply it; ``None`` for a setting that they do not
            take (the partitioner's, which is set in torch's config, and ``isolate_recompiles``).
        to_apply: code that applies it in a program: ``torch.compile(f, options={"split_reductions": False})``, preceded
            by lines for settings that ``torch.compile`` does not take.
        switches: the names of the two switches of a pair; else empty.
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
        """Names of the figures of ``LOWER_IS_BETTER`` (recompiles, launches, bytes and more) that are lower with it."""
        return self._where(lambda before, after: after < before)

    @property
    def higher(self) -> tuple[str, ...]:
        """Names of the figures that are higher with it."""
        return self._where(lambda before, after: after > before)

    def improves_on(self, other: Trial) -> bool:
        """Return True if a figure is lower than with ``other``, a trial of the same call, and none is higher."""
        own, others = dict(self.figures), dict(other.figures)
        less = False
        for name in LOWER_IS_BETTER:
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
            if name in LOWER_IS_BETTER and before is not None and after is not None and asked(before, after)
        )


@dataclass(frozen=True, repr=False)
class WhatIfRecord:
    """Effect of each switch that was changed.

    Attributes:
        function: the captured function.
        base: the unchanged capture.
        trials: each switch alone, then pairs of those that matter.
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
        """Trials with fewer recompiles, launches or bytes, a lower peak, fewer bytes saved for the backward, or values
        nearer to eager's: those without a drawback first, then by the largest saving; a pair only if it is better than
        each of its switches. Whether any of them is faster is not known without running it."""
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
        """Pairs that change a figure but are no better than one of their two switches alone."""
        alone = {trial.name: trial for trial in self.trials if not trial.switches}
        return tuple(
            trial
            for trial in self.trials
            if trial.switches
            and trial.changes_figures
            and not all(trial.improves_on(alone[name]) for name in trial.switches)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the trials as plain JSON data, without the captures."""
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
