"""A language: tables of sentences, nouns and words, and functions that print numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compile_lens.measures.ledger import MODELLED
from compile_lens.record.figures import AtLeast, Figure

from ..words.characters import flat
from ..words.labels import readable
from ..words.quantities import memory_in_short
from ..words.sentences import entry

LONGEST = 400
"""Characters of one text of the program's or the compiler's: more of it belongs to the pages, not to a story."""

FEW = 6
"""Names in a row before the rest is only counted."""

BYTES = "bytes"
"""The noun of an ``Amount`` of bytes, which is said in a unit that reads well."""

MEMORY = "memory"
"""The noun of an ``Amount`` of bytes that are held."""


@dataclass(frozen=True)
class Amount:
    """A number with its noun, a key of the language's ``nouns``; ``""`` for the bare number."""

    value: int | Figure | AtLeast
    noun: str = ""


@dataclass(frozen=True)
class Names:
    """Names in a row, as the record has them."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Word:
    """A word or clause of the language itself, by its key."""

    key: str


Value = str | Amount | Names | Word
"""What stands in a sentence; a ``str`` is text of the program or of the compiler."""


@dataclass(frozen=True)
class Language:
    """One language.

    Attributes:
        sentences: each sentence by its key; ``{name}`` is the place of a value. A pair has a form for ``n`` being
            one, and one for all else.
        nouns: for one and for many; of a language without number both are the same.
        words: clauses and short words, by key.
        counted: a number with its noun (for one, for many).
        amount: bytes in a unit that reads well.
        more: names in a row, of which so many more are left out.
        separator: what stands between names in a row.
        between: what stands between two sentences.
        reasons: reasons that the record gives in words that are always the same, and how they are said.
    """

    name: str
    sentences: Mapping[str, str | tuple[str, str]]
    nouns: Mapping[str, tuple[str, str]]
    words: Mapping[str, str]
    counted: Callable[[int | Figure | AtLeast, str, str], str]
    amount: Callable[[Figure | AtLeast], str]
    more: Callable[[str, int], str]
    separator: str = ", "
    between: str = " "
    reasons: Mapping[str, str] = field(default_factory=dict)

    def say(self, key: str, values: Mapping[str, Value]) -> str:
        """The sentence with its values. Raises ``LookupError`` if the language has no such sentence, noun or word."""
        template = entry(self.sentences, key, self.name, "sentence")
        if not isinstance(template, str):
            n = values.get("n")
            template = template[not (isinstance(n, Amount) and n.value == 1)]
        return template.format_map({name: self._said(value) for name, value in values.items()})

    def function(self, name: str) -> str:
        """The name of a compiled function as a reader knows it."""
        return readable(name, self.word("after"))

    def word(self, key: str) -> str:
        """A word or clause by its key. Raises ``LookupError`` if the language has none."""
        return entry(self.words, key, self.name, "word")

    def noun(self, key: str) -> tuple[str, str]:
        """A noun for one and for many, by its key. Raises ``LookupError`` if the language has none."""
        return entry(self.nouns, key, self.name, "noun")

    def _said(self, value: Value) -> str:
        if isinstance(value, str):
            return text(self.reasons.get(value, value))
        if isinstance(value, Word):
            return self.word(value.key)
        if isinstance(value, Names):
            some = self.separator.join(text(name) for name in value.names[:FEW])
            left = len(value.names) - FEW
            return self.more(some, left) if left > 0 else some
        if value.noun == MEMORY and not isinstance(value.value, AtLeast):
            mark = "~" if _basis(value) == MODELLED else ""
            return f"{mark}{memory_in_short(value.value)}"
        if value.noun == BYTES:
            return self.amount(
                value.value if isinstance(value.value, AtLeast) else Figure(value.value, _basis(value))
            )
        return self.counted(value.value, *(self.noun(value.noun) if value.noun else ("", "")))


def _basis(amount: Amount) -> str:
    return getattr(amount.value, "basis", "measured")


def text(words: str) -> str:
    """A text of the program's in a sentence: one line, cut where it is long, without a full stop of its own."""
    line = flat(
        " ".join(part.strip() for part in words.strip().split("\n"))
    )  # in a paragraph, lines are no lines
    line = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
    return line.rstrip(".") or line
