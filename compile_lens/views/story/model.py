"""The story of a capture as data: sentences, what each is about, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from compile_lens.measures.address import Address
from compile_lens.record.figures import AtLeast, Figure

from ..words.characters import wrap

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
    """What ``capture.story()`` returns: ``str()`` is the text, ``sentences`` are its sentences in order.

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
        return tuple((name, tuple(found)) for name, found in groupby(self.sentences, lambda s: s.chapter))

    def __str__(self) -> str:
        lines = [*wrap(self.title, WIDTH)]
        for name, sentences in self.chapters:
            lines += ["", *(wrap(name, WIDTH) if name else ())]
            lines += wrap(self.between.join(s.text for s in sentences), WIDTH, "  " if name else "")
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"<Story in {len(self.sentences)} sentences: {self.title}>"
