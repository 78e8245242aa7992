"""Explanations of a capture's figures in text lines: facts, reasons and suggestions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..words.characters import flat

MAX_LINES = 8
"""Maximum lines of one part; the rest is only counted."""


@dataclass(frozen=True)
class Explanation:
    """Facts, their reasons from the record, and suggestions; a line each."""

    found: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    to_try: tuple[str, ...] = ()

    def text(self, head: str, *rest: str) -> str:
        """Return the text with ``head`` at its top and ``rest`` as lines at its end, without empty parts."""
        parts = (("found", self.found), ("why", self.why), ("to try", self.to_try))
        lines = [flat(head)]
        for title, entries in parts:
            if entries:
                lines += [f"{title}:", *(f"  {flat(line)}" for line in entries)]
        return "\n".join((*lines, *map(flat, rest)))


def few(lines: Iterable[str], what: str, where: str = "", most: int = MAX_LINES) -> tuple[str, ...]:
    """Return the first lines, then the number of further ``what`` and where they are."""
    every = tuple(dict.fromkeys(lines))
    left = len(every) - most
    return (
        every if left <= 0 else (*every[:most], f"… and {left:,} more {what}{f': {where}' if where else ''}")
    )
