"""The three tiers of tests: the tests and cases that each runs.

=============  =====================================================================================
quick          every test that is not marked ``full``, ``slow``, ``browser``, ``gpu`` or ``mps``; of a test that
               compiles (marked ``torch``) at most ``FEW`` cases
full           these as well, each with all of its cases; of a test in a browser (marked ``browser``) ``ONE``
exhaustive     every test, including those marked ``exhaustive``
=============  =====================================================================================

``@pytest.mark.cases(quick=20, full=40)`` on a test with many cases sets another limit in a tier. The cases are drawn
by a hash of their names: adding or removing a case does not change the tier of another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

QUICK, FULL, EXHAUSTIVE = TIERS = ("quick", "full", "exhaustive")

FEW = 2
"""Maximum number of cases per compiling test in the quick tier."""

ONE = 1
"""Maximum number of cases per browser test in the full tier; each opens a page for a size or colour scheme."""

NOT_QUICK = {"full", "slow", "browser", "gpu", "mps"}
"""Marks that exclude a test from the quick tier."""

EXCLUDED = {QUICK: NOT_QUICK | {"exhaustive"}, FULL: {"exhaustive"}, EXHAUSTIVE: set[str]()}


@dataclass(frozen=True)
class Case:
    """A test with its arguments: its id, the names of its marks, and the limits of its mark ``cases``, by tier."""

    id: str
    marks: frozenset[str] = frozenset()
    limits: dict[str, int] = field(default_factory=dict)

    @property
    def test(self) -> str:
        """Return the id without the test's arguments."""
        return self.id.partition("[")[0]

    def limit(self, tier: str) -> int | None:
        """Return the maximum number of this test's cases in a tier; None if all are run."""
        few = {QUICK: ("torch", FEW), FULL: ("browser", ONE)}.get(tier)
        return self.limits.get(tier, few[1] if few and few[0] in self.marks else None)


def chosen(cases: Sequence[Case], tier: str) -> set[str]:
    """Return the ids of the cases that a tier runs, including all cases of the lower tiers."""
    by_test: dict[str, list[Case]] = {}
    for case in cases:
        if not case.marks & EXCLUDED[tier]:
            by_test.setdefault(case.test, []).append(case)
    return {
        case.id for group in by_test.values() for case in sorted(group, key=_turn)[: group[0].limit(tier)]
    }


def file_is_excluded(text: str, tier: str) -> bool:
    """Return True if the marks of a module, its ``pytestmark``, exclude all of its tests from a tier."""
    marks = re.search(r"^pytestmark = (\[\n.*?^\]|[^\n]*)", text, re.MULTILINE | re.DOTALL)
    return bool(marks and EXCLUDED[tier].intersection(re.findall(r"pytest\.mark\.(\w+)", marks[1])))


def _turn(case: Case) -> tuple[bool, bytes]:
    return bool(case.marks & NOT_QUICK), hashlib.sha1(case.id.encode()).digest()
