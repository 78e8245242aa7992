"""A lesson that was run, and what a lecture takes from it: headings, key sentences, code, outputs and tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compile_lens.course.lessons import EXERCISES
from compile_lens.layout.text import columns

FENCE = re.compile(r"^```(?:python)?\n(.*?)^```$", re.M | re.S)
LISTED = re.compile(r"^(?:-|\d+\.) ", re.M)
WHOLE = re.compile(r"`[^`]+`|\*\*.+?\*\*", re.S)
SENTENCE = re.compile("(?:(?<=[.!?])|(?<=[.!?]\5)|(?<=[.!?][)]))\\s+|(?<=[。！？])(?!\5)|(?<=[。！？]\5)")
HIDDEN = str.maketrans(" \n。！？", "\0\1\2\3\4")
SHOWN = {new: old for old, new in HIDDEN.items()} | {5: "**"}
SKIPPED = {"title", "install", "imports", "progress", "further"}
"""Cells that no slide shows."""

SHORT = 420
"""Width of a text that a slide shows whole; a Chinese character is two wide."""


@dataclass(frozen=True)
class Block:
    """Part of a step: ``text`` as Markdown, ``code``, or an output: ``print``, ``svg``, or ``live``, a page."""

    kind: str
    content: str
    plain: str = ""


@dataclass(frozen=True)
class Step:
    """Content of one slide, if it fits: a heading, and blocks."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Lesson:
    """A lesson: its file's name without the ending, its number, its cells, and its language."""

    name: str
    cells: list[Any]
    language: str

    @property
    def number(self) -> int:
        return int(self.name[:2])

    @property
    def title(self) -> str:
        """The first heading."""
        return str(self._text("title").partition("\n")[0].removeprefix("# "))

    @property
    def opening(self) -> str:
        """The key sentences below the first heading."""
        return key_sentences(_headed(self._text("title"))[1], SHORT)

    @property
    def question(self) -> tuple[str, list[Block]]:
        """The heading and the blocks of the question that is asked before anything runs."""
        heading, text = _headed(self._text("blind"))
        return heading, list(blocks(text, len(text)))

    @property
    def tasks(self) -> list[str]:
        """The tasks of the exercises, as Markdown, with the sizes of their inputs where the lesson names them."""
        text = "\n\n".join(cell.source for cell in self.cells if cell.cell_type == "markdown")
        keys = [key for key in EXERCISES if key.partition(".")[0] == str(self.number)]
        return [re.search(rf"^\*\*{re.escape(key)}\*\*.*$", text, re.M)[0] for key in keys]  # type: ignore[index]

    @property
    def take_home(self) -> tuple[str, str]:
        """The heading and the list of the sentences at the end."""
        return _headed(self._text("take-home"))

    @property
    def exercises(self) -> tuple[str, list[Block]]:
        """The heading of the exercises, and their tasks, each behind the code that it speaks of."""
        heading, parts = "", []
        for cell in self.cells:
            if cell.id == "exercises" or cell.id.startswith("task-"):
                heading = heading or _headed(cell.source)[0]
                parts += [Block("code", code.strip("\n")) for code in FENCE.findall(cell.source)]
                parts += [Block("text", one) for one in self.tasks if one in cell.source]
        return heading, parts

    def steps(self) -> Iterator[Step]:
        """Yield the experiment: each explanation's key sentences, and each cell of code with its outputs."""
        heading, lead = "", []
        for cell, following in zip(self.cells, [*self.cells[1:], None]):
            if cell.id in SKIPPED or cell.id.startswith(("blind", "predict")):
                continue
            if cell.id == "exercises":
                return
            if cell.cell_type == "code":
                yield Step(
                    heading,
                    (
                        *lead,
                        Block("code", re.sub(r"\n{3,}", "\n\n", cell.source.strip("\n"))),
                        *outputs(cell),
                    ),
                )
                lead = []
                continue
            new, text = _headed(cell.source)
            heading = new or heading
            leads = (
                following is not None and following.cell_type == "code" and not cell.id.endswith("meaning")
            )
            shown = list(blocks(text, SHORT // 2 if leads else SHORT))
            if leads:
                lead += shown
            elif shown:
                yield Step(heading, (*lead, *shown))
                lead = []

    def _text(self, name: str) -> str:
        return next(cell.source for cell in self.cells if cell.id == name)


def _headed(text: str) -> tuple[str, str]:
    """Split a cell into its heading and the rest."""
    if not text.startswith("#"):
        return "", text
    heading, _, rest = text.partition("\n")
    return heading.lstrip("# "), rest.strip()


def blocks(text: str, most: int) -> Iterator[Block]:
    """Yield the key sentences of a Markdown text, and its code."""
    parts = FENCE.split(text)
    for prose, code in zip(parts[::2], [*parts[1::2], ""]):
        if prose.strip():
            yield Block("text", key_sentences(prose.strip(), most))
        if code:
            yield Block("code", code.strip("\n"))


def key_sentences(text: str, most: int) -> str:
    """Return a text that is at most ``most`` wide, or its key sentences: of each paragraph the first, those with bold
    words, and what follows the first as long as there is room."""
    if columns(text) <= most:
        return text
    paragraphs = [[one] if LISTED.match(one) else sentences(one) for one in text.split("\n\n")]
    paragraphs = [one for one in paragraphs if one and not one[0].startswith(("(", "（"))]
    kept = [[number == 0 or "**" in one for number, one in enumerate(parts)] for parts in paragraphs]
    left = most - sum(
        columns(one) for parts, keep in zip(paragraphs, kept) for one, k in zip(parts, keep) if k
    )
    for parts, keep in zip(paragraphs, kept):
        for number, one in enumerate(parts):
            if not keep[number] and columns(one) > left:
                break
            left -= 0 if keep[number] else columns(one)
            keep[number] = True
    space = " " if columns(text) < len(text) * 1.3 else ""
    shown = (space.join(one for one, k in zip(parts, keep) if k) for parts, keep in zip(paragraphs, kept))
    return "\n\n".join(shown)


def sentences(paragraph: str) -> list[str]:
    """Split a paragraph into its sentences; code and bold words stay whole."""
    hidden = WHOLE.sub(_hidden, paragraph)
    return [one.strip().translate(SHOWN) for one in SENTENCE.split(hidden) if one.strip()]


def _hidden(span: re.Match[str]) -> str:
    text = span[0]
    # The last mark of bold words may end a sentence; those before it do not.
    return text[:-3].translate(HIDDEN) + text[-3] + "\5" if text.startswith("**") else text.translate(HIDDEN)


_RULE = re.compile("─{3,}")
"""A rule of a text page, which is as wide as a terminal: a slide would break it."""


def outputs(cell: Any) -> Iterator[Block]:
    """Yield what a cell printed, in one block, and what it displayed."""
    streams = [one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout"]
    if "".join(streams).strip():
        yield Block("print", "".join(streams).strip("\n"))
    for output in cell.outputs:
        data = output.get("data", {})
        plain = _RULE.sub("──", data.get("text/plain", "").strip("\n"))
        page = data.get("text/html", "")
        if "image/svg+xml" in data or page.startswith("<svg"):
            yield Block("svg", data.get("image/svg+xml", page), plain)
        elif "<script" in page:
            yield Block("live", page, plain)
        elif plain and plain != "None":
            yield Block("print", plain)
