"""A Document as Markdown, for issues, reviews and notes. Every string of the user's is escaped or fenced."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compile_lens.record.messages import plain

from ..document import Columns, Document, Entries, Entry, Listings, Prose, Section, Steps, Table
from ..words import quantities
from ..words.characters import clean, flat

CODE_LIMIT = 60_000
"""Characters of one kernel that are shown."""

TEXT_LIMIT = 20_000
"""Characters of one stage's text that are shown."""

TOTAL_LIMIT = 2_000_000
"""Characters of code and text on one page."""

MANY = 100
"""Entries, sources and notes before the rest is only counted."""

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_START = re.compile(r"^(\d*)([-+=.)])")  # would make a list, a heading or a rule of a line


def page(document: Document) -> str:
    """A Document as Markdown, ending in a newline."""
    out = Out()
    out.add(f"# {escape(document.heading)}")
    out.add(f"**{escape(document.verdict)}**")
    facts = [*map(escape, document.facts)]
    facts += [f"{escape(label)}: {escape(text)}" for label, text in document.details]
    out.add("\n".join(f"- {fact}" for fact in facts))
    for finding in document.findings:
        out.add(f"## {escape(finding.title)}" + (f": {escape(finding.fact)}" if finding.fact else ""))
        out.add(escape(finding.intro))
        for section in finding.sections:
            show(out, section)
    if document.notes:
        out.add("## Notes")
        out.add("\n".join(f"- {escape(note)}" for note in document.notes))
    return out.text()


def escape(text: str) -> str:
    """Text on one line that Markdown, and HTML inside it, shows as it is."""
    shown = _SPECIAL.sub(r"\\\1", flat(text))
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _START.sub(r"\1\\\2", shown.strip())


def code(text: str) -> str:
    """Text as a code span, on one line, with a fence longer than any run of backticks in it."""
    shown = flat(text) or " "
    fence = "`" * (_longest_run(shown) + 1)
    space = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{space}{shown}{space}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Text as a code block, with a fence longer than any run of backticks in it."""
    shown = clean(text).rstrip("\n")
    fence = "`" * max(_longest_run(shown) + 1, 3)
    return f"{fence}{language}\n{shown}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


class Out:
    """The paragraphs of a page, and the code that it may still show."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._room = TOTAL_LIMIT

    def add(self, part: str) -> None:
        """A paragraph; an empty one is left out."""
        if part:
            self.parts.append(part)

    def text(self) -> str:
        """The page."""
        return "\n\n".join(self.parts) + "\n"

    def more(self, count: int, what: str) -> None:
        if count > 0:
            self.add(
                f"… and {quantities.plural(count, what)} more; `capture.save('capture.json')` keeps everything."
            )

    def listing(self, text: str, language: str, limit: int) -> None:
        room = min(limit, self._room)
        if len(text) <= room:
            self._room -= len(text)
            self.add(fenced(text, language))
            return
        shown = text[: text.rfind("\n", 0, room) + 1]
        self._room -= len(shown)
        if shown:
            self.add(fenced(shown, language))
        left = len(text) - len(shown)
        self.add(f"… {left:,} characters left out; `capture.save('capture.json')` keeps everything.")


def show(out: Out, section: Section) -> None:
    if isinstance(section, Table):
        if section.full:
            return
        if section.title:
            out.add(f"**{escape(section.title)}**")
        out.add("\n".join(f"- {escape(words)}" for words in section.words))
        lines = [line_of(section.head), "| " + " | ".join(_SIDES.get(k, "---") for k in section.kinds) + " |"]
        lines += [line_of(quantities.cells(row)) for row in section.rows[:_ROWS]]
        out.add("\n".join(lines))
        left = len(section.rows) - _ROWS + section.left
        if left > 0:
            out.add(f"… and {quantities.plural(left, 'row')} more.")
    elif isinstance(section, Prose):
        title = f"**{escape(section.title)}** " if section.title else ""
        out.add(title + "\\\n".join(escape(words) for words in section.paragraphs))
    elif isinstance(section, Steps):
        lines = [
            f"{n}. {code(s.title)}: {escape(s.words[0])}" for n, s in enumerate(section.steps[:_ROWS], 1)
        ]
        left = len(section.steps) - _ROWS + section.left
        lines += [f"\n… and {quantities.plural(left, 'change')} more."] if left > 0 else []
        out.add("\n".join(lines))
    elif isinstance(section, Columns):
        head = ["", *(what for what, _ in section.columns[0].figures)] if section.columns else [""]
        lines = [line_of(head), "| --- |" + " ---: |" * (len(head) - 1)]
        lines += [
            line_of((c.title, *(quantities.printed(value) for _, value in c.figures)))
            for c in section.columns
        ]
        out.add("\n".join(lines))
    elif isinstance(section, Entries):
        for entry in section.entries[:MANY]:
            _entry(out, entry)
        out.more(len(section.entries) - MANY, section.style)
    elif isinstance(section, Listings) and not section.legend:  # states of lines need their colours
        for listing in section.listings[:MANY]:
            source = listing.source
            out.add(f"{code(source.name)} in {code(f'{source.file}:{source.first_line}')}:")
            out.listing(source.text, "python", TEXT_LIMIT)


def _entry(out: Out, entry: Entry) -> None:
    out.add(f"### {escape(entry.head)}")
    lines = [escape(entry.detail)]
    lines += [
        f"{escape(label[:1].upper() + label[1:])}: {escape(text)}" if label else escape(text)
        for label, text in entry.lines
    ]
    out.add("\n\n".join(line for line in lines if line))
    frames = [
        f"- {code(f'{f.file}:{f.within}')} in {code(plain(f.function))}"
        + (f": {code(f.text.strip())}" if f.text.strip() else "")
        for f in entry.frames
    ]
    if frames:
        out.add("\n".join(frames))
    if entry.code is not None:
        out.add(fenced(entry.code.text, entry.code.language))


def line_of(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


_SIDES = {"number": "---:"}
_ROWS = 20
"""Rows of one table, and changes one by one, before the rest is only counted."""
