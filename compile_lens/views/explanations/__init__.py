"""Explanations of a capture's figures in plain lines: the facts, the reasons, and what to try."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..words.characters import flat

FEW = 8
"""Lines of one part before the rest is only counted."""


@dataclass(frozen=True)
class Explanation:
    """Facts, the record's reasons for them, and what the record suggests to try; a line each."""

    found: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    to_try: tuple[str, ...] = ()

    def text(self, head: str, *rest: str) -> str:
        """As text under ``head``; ``rest`` are lines at the end. A part without a line is left out."""
        parts = (("found", self.found), ("why", self.why), ("to try", self.to_try))
        lines = [flat(head)]
        for title, entries in parts:
            if entries:
                lines += [f"{title}:", *(f"  {flat(line)}" for line in entries)]
        return "\n".join((*lines, *map(flat, rest)))


def few(lines: Iterable[str], what: str, where: str = "", most: int = FEW) -> tuple[str, ...]:
    """The first lines, then how many more ``what`` there are and where."""
    every = tuple(dict.fromkeys(lines))
    left = len(every) - most
    return (
        every if left <= 0 else (*every[:most], f"… and {left:,} more {what}{f': {where}' if where else ''}")
    )
