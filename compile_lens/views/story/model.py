"""The story of a capture as data: sentences with their subjects and counts; and the tables and functions of a language
that print it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from compile_lens.measures.address import Address
from compile_lens.measures.ledger import MODELLED
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.figures import AtLeast, Figure
from compile_lens.record.missing import Missing, NotApplicable

from ..words.characters import flat, wrap
from ..words.labels import UNSAID, readable
from ..words.quantities import memory_in_short
from ..words.sentences import entry

WIDTH = 96
"""Line width of the text, in cells."""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a story.

    Attributes:
        key: key of the sentence in the language.
        text: its text on one line, with program strings made visible (``characters.flat``).
        chapter: heading above it.
        compilation: compile id of its subject, ``""`` for the whole call.
        stage: stage key, ``""`` if not about a single stage.
        about: addresses of its subjects, as in ``capture.chain``: nodes, loops, groups, kernels, Python lines.
        counts: each number in it by name; bytes too.
    """

    key: str
    text: str
    chapter: str = ""
    compilation: str = ""
    stage: str = ""
    about: tuple[Address, ...] = ()
    counts: tuple[tuple[str, int | Figure | AtLeast], ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, repr=False)
class Story:
    """The result of ``capture.story()``: ``str()`` is the text, ``sentences`` are its sentences in order.

    Attributes:
        title: subject of the story.
        lang: language of the text.
        between: separator of two sentences.
    """

    title: str
    lang: str
    sentences: tuple[Sentence, ...]
    between: str = " "

    @property
    def chapters(self) -> tuple[tuple[str, tuple[Sentence, ...]], ...]:
        """Return the sentences by heading."""
        return tuple(
            (name, tuple(sentences)) for name, sentences in groupby(self.sentences, lambda s: s.chapter)
        )

    def __str__(self) -> str:
        lines = [*wrap(self.title, WIDTH)]
        for name, sentences in self.chapters:
            lines += ["", *(wrap(name, WIDTH) if name else ())]
            lines += wrap(self.between.join(s.text for s in sentences), WIDTH, "  " if name else "")
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"<Story in {len(self.sentences)} sentences: {self.title}>"


@dataclass
class Teller:
    """Writer of the sentences about one capture; ``chapter`` is the heading for the next sentences."""

    capture: Record
    language: Language
    compilation: Compilation | None = None
    chapter: str = ""
    told: list[Sentence] = field(default_factory=list)

    def at(self, compilation: Compilation, chapter: str) -> Teller:
        """Return a teller for another chapter that adds to the same story."""
        many = len(self.capture.compilations) > 1
        head = f"{compilation.id} {text(self.language.function(compilation.function))}: " if many else ""
        return replace(self, compilation=compilation, chapter=head + self.language.word(chapter))

    def say(self, key: str, stage: str = "", about: Iterable[str | Address] = (), **values: Value) -> None:
        """Add one sentence; a plain name in ``about`` is that of a node of ``stage``."""
        cid = self.compilation.id if self.compilation is not None else ""
        self.told.append(
            Sentence(
                key,
                self.language.say(key, values),
                self.chapter,
                cid,
                stage,
                tuple((cid, stage, name) if isinstance(name, str) else name for name in about),
                tuple((name, value.value) for name, value in values.items() if isinstance(value, Amount)),
            )
        )

    def absent(self, stages: Callable[[str], bool]) -> None:
        """Add sentences on absent stages, grouped by reason."""
        by_reason: dict[tuple[str, str], list[str]] = {}
        for stage in self.compilation.stages if self.compilation is not None else ():
            if isinstance(stage, (Missing, NotApplicable)) and stages(stage.stage):
                kind = "missing" if isinstance(stage, Missing) else "none"
                by_reason.setdefault((kind, stage.reason or UNSAID), []).append(stage.stage)
        for (kind, reason), keys in by_reason.items():
            key = kind if len(keys) == 1 else f"{kind}_many"
            self.say(key, keys[0], names=Names(tuple(keys)), reason=reason)


MAX_TEXT_CHARACTERS = 400
"""Maximum characters of a text of the program or the compiler; pages have the rest."""

MAX_NAMES = 6
"""Maximum names in a list; the rest is only counted."""

BYTES = "bytes"
"""Noun of an ``Amount`` of bytes moved, printed with a unit prefix."""

MEMORY = "memory"
"""Noun of an ``Amount`` of bytes of memory."""


@dataclass(frozen=True)
class Amount:
    """A number with its noun, a key of the language's ``nouns``; ``""`` for the bare number."""

    value: int | Figure | AtLeast
    noun: str = ""


@dataclass(frozen=True)
class Names:
    """A list of names, as in the record."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Word:
    """A word or clause of the language, by key."""

    key: str


Value = str | Amount | Names | Word
"""A value in a sentence; a ``str`` is text of the program or of the compiler."""


@dataclass(frozen=True)
class Language:
    """One language.

    Attributes:
        sentences: sentences by key; ``{name}`` is the place of a value. A pair has the forms for ``n`` = 1 and for
            others.
        nouns: singular and plural, equal in a language without plural.
        words: clauses and short words, by key.
        counted: function that prints a number with its noun (singular, plural).
        amount: function that prints bytes with a unit prefix.
        more: function that prints a list of names of which more are omitted.
        separator: separator of names in a list.
        between: separator of two sentences.
        reasons: translations of fixed reasons in the record.
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
        """Return the sentence with its values. Raises ``LookupError`` if the language has no such sentence, noun or
        word."""
        template = entry(self.sentences, key, self.name, "sentence")
        if not isinstance(template, str):
            n = values.get("n")
            template = template[not (isinstance(n, Amount) and n.value == 1)]
        return template.format_map({name: self._value_text(value) for name, value in values.items()})

    def function(self, name: str) -> str:
        """Return a readable name of a compiled function."""
        return readable(name, self.word("after"))

    def word(self, key: str) -> str:
        """Return a word or clause by its key. Raises ``LookupError`` if the language has none."""
        return entry(self.words, key, self.name, "word")

    def noun(self, key: str) -> tuple[str, str]:
        """Return the singular and plural of a noun by its key. Raises ``LookupError`` if the language has none."""
        return entry(self.nouns, key, self.name, "noun")

    def _value_text(self, value: Value) -> str:
        if isinstance(value, str):
            return text(self.reasons.get(value, value))
        if isinstance(value, Word):
            return self.word(value.key)
        if isinstance(value, Names):
            some = self.separator.join(text(name) for name in value.names[:MAX_NAMES])
            left = len(value.names) - MAX_NAMES
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
    """Return a text of the program for use in a sentence: on one line, cut if long, without a full stop."""
    line = flat(" ".join(part.strip() for part in words.strip().split("\n")))
    line = line if len(line) <= MAX_TEXT_CHARACTERS else f"{line[:MAX_TEXT_CHARACTERS]}…"
    return line.rstrip(".") or line
