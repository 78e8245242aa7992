"""Translates sentences by a table of sentences with placeholders, for pages shown without scripts.

It works like ``views/live/web/translation/translator.js``, which documents the table, so that a page has the same text
with and without scripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_PLACES = re.compile(r"\{([nwc=]?)\}|\[([^\]]*)\]")
_ANY = r"((?:(?!; | · ).)+?)"
_PATTERNS = {
    "n": "((?:at least |up to )?[~≥≈<–−-]?[0-9][0-9.,]*(?:[ \u00a0]?(?:[kKMGTµmn]i?)?(?:B|s|%)(?![a-z]))?)",
    "w": r"(\S+)",
    "c": r"([0-9]+/[0-9]+(?:_[0-9]+)?)",
    "=": _ANY,
    "": _ANY,
}
_SENTENCES = r"(?:(?<=[.?!])|(?<=[.?!][)”\"]))\s+(?=[\"“‘`(]?[A-Z0-9`])"
_CUTS = (
    (" · ", " · ", " · "),
    ("(?<=[：；。])", "", ""),
    (" … ", " … ", " … "),
    ("; ", "；", "; "),
    (", ", "，", ", "),
)
_ENDS = {".": "。", "。": "。", ":": "：", ";": "；", ",": "，"}


class Translator:
    """Translates by a table of English texts and their translations."""

    def __init__(self, table: Iterable[tuple[str, str]]) -> None:
        self._plain: dict[str, str] = {}
        self._entries: dict[str, list[tuple[re.Pattern[str], str, tuple[bool, ...]]]] = {}
        self._known: dict[str, str] = {}
        for key, value in sorted(table, key=lambda row: -len(re.sub(r"\{.?\}|\[.*?\]", "", row[0]))):
            if not _PLACES.search(key):
                self._plain[key] = value
            else:
                first = re.match(r"[^\s{\[]+(?= )", key)
                self._entries.setdefault(first[0] if first else "", []).append(_entry(key, value))

    def translate(self, text: str) -> str:
        """Return the text in the other language; parts without an entry stay unchanged."""
        known = self._known.get(text)
        if known is None:
            words = text.strip()
            known = text
            if re.search("[A-Za-z]{2}", words):
                before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
                known = before + self._whole(words) + after
            self._known[text] = known
        return known

    def _whole(self, text: str) -> str:
        if text.endswith(" …"):
            return f"{self.translate(text[:-2])} …"
        small = text[:1].lower() + text[1:]
        ways: tuple[Callable[[], str | None], ...] = (
            lambda: self._plain.get(text),
            lambda: self._cut(text, "\n", "\n", "\n"),
            lambda: self._ended(text, text.split(" ", 1)[0]),
            lambda: self._ended(small, small.split(" ", 1)[0]),
            lambda: self._cut(text, _SENTENCES, "", " "),
            lambda: self._ended(text, ""),
        )
        other = next((words for way in ways if (words := way()) is not None), None)
        if other is not None:
            return other
        return text if re.fullmatch(r"\w+(?:, \w+)+", text, re.ASCII) else self._listed(text)

    def _listed(self, text: str) -> str:
        for at, between, plain in _CUTS[:4]:
            if (parts := self._cut(text, at, between, plain)) is not None:
                return parts
        head, colon, rest = text.partition(": ")
        if colon:
            return self._joined((head, rest), "：", ": ")
        parts = self._cut(text, *_CUTS[4])
        return text if parts is None else parts

    def _cut(self, text: str, at: str, between: str, plain: str) -> str | None:
        parts = re.split(at, text)
        return self._joined(parts, between, plain) if len(parts) > 1 else None

    def _joined(self, parts: Iterable[str], between: str, plain: str) -> str:
        joined, last = "", None
        for part in parts:
            other = self.translate(part)
            joined += other if last is None else (plain if last else between) + other
            last = other == part
        return joined

    def _ended(self, text: str, begins: str) -> str | None:
        """Translate by an entry, with or without the punctuation at its end."""
        end = _ENDS.get(text[-1:])
        other = self._by_entry(text[:-1], begins) if end else None
        return self._by_entry(text, begins) if other is None or end is None else other + end

    def _by_entry(self, text: str, begins: str) -> str | None:
        if text in self._plain:
            return self._plain[text]
        for pattern, value, as_they_are in self._entries.get(begins, ()):
            match = pattern.fullmatch(text)
            if match is None:
                continue
            parts = [
                part if plain else self.translate(part)
                for part, plain in zip(match.groups(), as_they_are, strict=True)
            ]
            words, number = "", 0
            for at, piece in enumerate(re.split(r"\{(\d?)\}", value)):
                if at % 2 == 0:
                    words += piece
                else:
                    words += parts[int(piece) - 1 if piece else number]
                    number += not piece
            return words
        return None


def _entry(key: str, value: str) -> tuple[re.Pattern[str], str, tuple[bool, ...]]:
    source, as_they_are, end = "", [], 0
    for place in _PLACES.finditer(key):
        source += re.escape(key[end : place.start()])
        end = place.end()
        if place[2] is not None:
            source += f"(?:{place[2]}){'' if '|' in place[2] else '?'}"
        else:
            as_they_are.append(place[1] == "=")
            source += _PATTERNS[place[1]] if source or place[1] else "(.+?)"
    return re.compile(source + re.escape(key[end:]), re.DOTALL), value, tuple(as_they_are)
