"""Strings of the user's as the page carries them: cut where they are endless, nothing in them hidden."""

from __future__ import annotations

from collections.abc import Iterable

from ..words.characters import clean, flat, short


def line(value: str) -> str:
    """A string on one line."""
    if len(value) < 1000 and value.isascii() and value.isprintable():
        return value  # nearly all of them, and there are many
    return flat(short(value))


def block(value: str, limit: int = 12_000) -> str:
    """A string that keeps its lines."""
    return clean(short(value, limit))


class Strings:
    """Strings under numbers: each stands once in the part, however often it is used."""

    def __init__(self, first: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self._known: dict[str, int] = {}
        for value in first:
            self.number(value)

    def number(self, value: str) -> int:
        """The number of a string."""
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._numbers.setdefault(line(value), len(self._numbers))
        return known

    def all(self) -> list[str]:
        """The strings, by number."""
        return list(self._numbers)
