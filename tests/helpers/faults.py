"""One test for many similar cases: it runs all checks, and reports each failure."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from typing import Any


def report(checks: Iterable[tuple[str, Callable[[], None]]]) -> None:
    """Run all checks; fail with the name and the error of each that failed."""
    faults = []
    for name, check in checks:
        try:
            check()
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            faults.append(f"{name}: {frame.line}\n{type(error).__name__}: {error}")
    assert not faults, f"{len(faults)} failed:\n\n" + "\n\n".join(faults)


def for_each(cases: Iterable[Any], name: Callable[[Any], str] = str) -> Callable[[Callable[..., None]], Any]:
    """Make one test of a function that checks one case; a tuple is unpacked into its arguments."""

    def decorate(check: Callable[..., None]) -> Any:
        def test() -> None:
            every = list(cases)
            assert every, "there is no case"
            report((name(c), lambda c=c: check(*c) if isinstance(c, tuple) else check(c)) for c in every)

        # Not functools.wraps: pytest would take the arguments of the function for fixtures.
        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return decorate
