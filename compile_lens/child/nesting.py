"""Nesting of child processes: they run the program's code, which may capture for a target itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

from ..errors import UsageError

LIMIT = 3
"""Most child processes of which each was started by the one before."""


class Nesting:
    """The place of this process among nested ones.

    Attributes:
        depth: how many processes that are waiting for it started each other; 0 in the program itself.
        loading: True while a request is loaded, which imports modules of the program.
    """

    depth: ClassVar[int] = 0
    loading: ClassVar[bool] = False


@contextlib.contextmanager
def loading(now: bool = True) -> Iterator[None]:
    """Mark the time in which a request is loaded. A module that captures when it is imported does so in this process
    then: a further child would import it too, and so would the next one. What is captured may start one again."""
    before, Nesting.loading = Nesting.loading, now
    try:
        yield
    finally:
        Nesting.loading = before


def check() -> None:
    """Raises ``UsageError`` if this process may not start a child."""
    if Nesting.depth >= LIMIT:
        raise UsageError(
            f"captures for a target are nested {Nesting.depth + 1} deep: what is captured imports or calls code that "
            "captures it again. Import the module before, or capture in a function that only your script calls (under "
            '`if __name__ == "__main__":`)'
        )
