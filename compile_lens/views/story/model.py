"""The story of a capture as data: sentences, what each is about, and what it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby

from compile_lens.measures.address import Address
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.figures import AtLeast, Figure
from compile_lens.record.missing import Missing, NotApplicable

from ..words.characters import wrap
from ..words.labels import UNSAID
from .language import Amount, Language, Names, Value, text

WIDTH = 96
"""Cells of a line of the text."""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a story.

    Attributes:
        key: which sentence of the language it is.
        text: its words, on one line: what a program put in is written out (``characters.flat``).
        chapter: the heading that it stands under.
        compilation: the compile id of what it tells of, ``""`` for the whole call.
        stage: the stage key, ``""`` where it tells of no single one.
        about: addresses of what it names, as ``capture.chain`` has them: nodes, loops, groups, kernels, Python lines.
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
        title: what it is the story of.
        lang: the language of the words.
        between: what stands between two sentences in it.
    """

    title: str
    lang: str
    sentences: tuple[Sentence, ...]
    between: str = " "

    @property
    def chapters(self) -> tuple[tuple[str, tuple[Sentence, ...]], ...]:
        """The sentences under their headings."""
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
    """Tells of one capture; ``chapter`` is the heading under which the next sentences stand."""

    capture: Record
    language: Language
    compilation: Compilation | None = None
    chapter: str = ""
    told: list[Sentence] = field(default_factory=list)

    def at(self, compilation: Compilation, chapter: str) -> Teller:
        """The same teller at another chapter; what it tells stands with the rest."""
        many = len(self.capture.compilations) > 1
        head = f"{compilation.id} {text(self.language.function(compilation.function))}: " if many else ""
        return replace(self, compilation=compilation, chapter=head + self.language.word(chapter))

    def say(self, key: str, stage: str = "", about: Iterable[str | Address] = (), **values: Value) -> None:
        """One sentence; a name in ``about`` is one of a node of ``stage``."""
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
        """Tell the absent stages and the reasons, those of one reason together."""
        by_reason: dict[tuple[str, str], list[str]] = {}
        for stage in self.compilation.stages if self.compilation is not None else ():
            if isinstance(stage, (Missing, NotApplicable)) and stages(stage.stage):
                kind = "missing" if isinstance(stage, Missing) else "none"
                by_reason.setdefault((kind, stage.reason or UNSAID), []).append(stage.stage)
        for (kind, reason), keys in by_reason.items():
            key = kind if len(keys) == 1 else f"{kind}_many"
            self.say(key, keys[0], names=Names(tuple(keys)), reason=reason)
