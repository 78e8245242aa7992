"""Nesting of child processes: the program's code that they run may itself start a capture for a target."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

from ..errors import UsageError

LIMIT = 3
"""Maximum depth of child processes that start one another."""


class Nesting:
    """State of this process among nested child processes.

    Attributes:
        depth: number of ancestors up to the program; 0 in the program itself.
        loading: True while a request is loaded, which imports modules of the program.
    """

    depth: ClassVar[int] = 0
    loading: ClassVar[bool] = False


@contextlib.contextmanager
def loading(now: bool = True) -> Iterator[None]:
    """Set ``Nesting.loading`` for the duration. Meanwhile a module that captures when it is imported captures in this
    process: a child would import the module too and start a child in turn."""
    before, Nesting.loading = Nesting.loading, now
    try:
        yield
    finally:
        Nesting.loading = before


def check() -> None:
    """Raise ``UsageError`` if child processes are already nested too deep."""
    if Nesting.depth >= LIMIT:
        raise UsageError(
            f"captures for a target are nested {Nesting.depth + 1} deep: what is captured imports or calls code that "
            "captures it again. Import the module before, or capture in a function that only your script calls (under "
            '`if __name__ == "__main__":`)'
        )
