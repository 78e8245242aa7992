"""The three tiers of tests: which tests and which of their cases a run takes.

=============  =====================================================================================
quick          every test that is not marked ``full``, ``slow``, ``browser``, ``gpu`` or ``mps``; of a test that
               compiles (marked ``torch``) at most ``FEW`` cases
full           these as well, each with all of its cases; of a test in a browser (marked ``browser``) ``ONE``
exhaustive     everything, also what is marked ``exhaustive``
=============  =====================================================================================

``@pytest.mark.cases(quick=20, full=40)`` at a test with many cases sets another limit in a tier. The cases are drawn by
a hash of their names: a case that is added or removed changes no other's turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

QUICK, FULL, EXHAUSTIVE = TIERS = ("quick", "full", "exhaustive")

FEW = 2
"""Cases that the quick tier takes of a test that compiles."""

ONE = 1
"""Cases that the full tier takes of a test in a browser: each opens a page, for a size or a colour scheme."""

NOT_QUICK = {"full", "slow", "browser", "gpu", "mps"}
"""Marks of tests that the quick tier leaves out."""


@dataclass(frozen=True)
class Case:
    """A test with its arguments: its id, the names of its marks, and the limits of its mark ``cases``, by tier."""

    id: str
    marks: frozenset[str] = frozenset()
    limits: dict[str, int] = field(default_factory=dict)

    @property
    def test(self) -> str:
        """The id without the arguments."""
        return self.id.partition("[")[0]

    def limit(self, tier: str) -> int | None:
        """The number of cases of this test that a tier takes at most; None if it takes all."""
        few = {QUICK: ("torch", FEW), FULL: ("browser", ONE)}.get(tier)
        return self.limits.get(tier, few[1] if few and few[0] in self.marks else None)


def chosen(cases: Sequence[Case], tier: str) -> set[str]:
    """The ids of the cases that a tier runs. Each tier runs all that the one before it does."""
    excluded = {QUICK: NOT_QUICK | {"exhaustive"}, FULL: {"exhaustive"}, EXHAUSTIVE: set[str]()}[tier]
    by_test: dict[str, list[Case]] = {}
    for case in cases:
        if not case.marks & excluded:
            by_test.setdefault(case.test, []).append(case)
    return {
        case.id for group in by_test.values() for case in sorted(group, key=_turn)[: group[0].limit(tier)]
    }


def _turn(case: Case) -> tuple[bool, bytes]:
    return bool(case.marks & NOT_QUICK), hashlib.sha1(case.id.encode()).digest()
