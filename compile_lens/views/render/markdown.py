"""Rendering of a Document as Markdown, for issues, reviews and notes. All user strings are escaped or fenced."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compile_lens.record.breaks import BREAK
from compile_lens.record.compilation import Compilation
from compile_lens.record.kernel import Kernel
from compile_lens.record.messages import plain_name

from ..document import (
    ANY,
    PAGE,
    Changes,
    Column,
    Columns,
    Compiled,
    Document,
    Entries,
    Entry,
    Finding,
    Flow,
    Group,
    Listings,
    Prose,
    Section,
    Table,
)
from ..words import labels, machine, outcome, quantities, sentences, stamp
from ..words.characters import capitalized, clean, flat
from ..words.failed_line import failed_at
from ..words.flow import ARROW
from ..words.outcome import saved
from ..words.quantities import launched

CODE_LIMIT = 60_000
"""Maximum characters of a shown kernel."""

TEXT_LIMIT = 20_000
"""Maximum characters of a shown stage's text."""

TOTAL_LIMIT = 2_000_000
"""Maximum characters of code and text on a page."""

MAX_ENTRIES = 100
"""Maximum entries, sources and notes; the rest is only counted."""

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_START = re.compile(r"^(\d*)([-+=.)])")  # would start a list, a heading or a rule


def page(document: Document) -> str:
    """Return a Document as Markdown, ending in a newline."""
    out = Out()
    out.add(f"# {escape(document.heading)}")
    out.add(f"**{escape(document.verdict)}**")
    facts = [*map(escape, document.facts)]
    facts += [escape(f"{label}: {text}" if label else text) for label, text in document.details]
    facts += [escape(document.created)] if document.inputs is not None and document.created else []
    facts += [saved(change) for change in document.changes]
    facts += [f"input {code(text)}" for text in (document.inputs or ())[:MAX_ENTRIES]]
    out.add("\n".join(f"- {fact}" for fact in facts))
    out.more(len(document.inputs or ()) - MAX_ENTRIES, "input")
    if document.failure is not None:
        if place := failed_at(document.failure):
            out.listing("\n".join(place), "text", TEXT_LIMIT)
        out.listing(document.failure.message, "text", TEXT_LIMIT)
        if document.failure.traceback:
            out.listing(document.failure.traceback, "text", TEXT_LIMIT)
    for remark in document.remarks:
        out.add(escape(remark))
    for finding in document.findings:
        if finding.room in (ANY, PAGE):
            _finding(out, finding)
    if document.notes:
        out.add(f"## {escape(document.notes_title or 'Notes')}")
        out.add("\n".join(f"- {escape(note)}" for note in document.notes[:MAX_ENTRIES]))
        out.more(len(document.notes) - MAX_ENTRIES, "note")
    return out.text()


def _finding(out: Out, finding: Finding, level: str = "##") -> None:
    if finding.title:
        out.add(f"{level} {escape(finding.title)}" + (f": {escape(finding.fact)}" if finding.fact else ""))
    out.add(escape(finding.intro))
    for section in finding.sections:
        if getattr(section, "room", ANY) in (ANY, PAGE):
            show(out, section)


def escape(text: str) -> str:
    """Return text on one line, escaped for Markdown and for HTML in it."""
    shown = _SPECIAL.sub(r"\\\1", flat(text))
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _START.sub(r"\1\\\2", shown.strip())


def code(text: str) -> str:
    """Return text as a one-line code span, with a fence longer than any run of backticks in it."""
    shown = flat(text) or " "
    fence = "`" * (_longest_run(shown) + 1)
    space = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{space}{shown}{space}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Return text as a code block, with a fence longer than any run of backticks in it."""
    shown = clean(text).rstrip("\n")
    fence = "`" * max(_longest_run(shown) + 1, 3)
    return f"{fence}{language}\n{shown}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


class Out:
    """Paragraphs of a page, and the remaining budget for code."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._room = TOTAL_LIMIT

    def add(self, part: str) -> None:
        """Add a paragraph unless it is empty."""
        if part:
            self.parts.append(part)

    def text(self) -> str:
        """Return the page."""
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
    """Add a section."""
    if isinstance(section, Table):
        limit = MAX_ENTRIES if section.room == PAGE else _ROWS
        if section.title:
            out.add(f"**{escape(section.title)}**")
        out.add("\n".join(f"- {escape(words)}" for words in section.words))
        lines = [line_of(section.head), "| " + " | ".join(_SIDES.get(k, "---") for k in section.kinds) + " |"]
        lines += [line_of(quantities.cells(row)) for row in section.rows[:limit]]
        out.add("\n".join(lines))
        left = max(len(section.rows) - limit, 0) + section.left
        if left > 0:
            out.add(f"… and {quantities.plural(left, 'row')} more.")
        if section.notes:
            out.add(escape(section.notes[0]) + ".")
            out.add("\n".join(f"- {escape(note)}" for note in section.notes[1:][:MAX_ENTRIES]))
    elif isinstance(section, Prose):
        title = f"**{escape(section.title)}**{':' if section.inline else ''} " if section.title else ""
        out.add(title + "\\\n".join(escape(words) for words in section.paragraphs))
    elif isinstance(section, Changes):
        lines = [
            f"{n}. {code(s.title)}: {escape(s.words[0])}" for n, s in enumerate(section.changes[:_ROWS], 1)
        ]
        left = len(section.changes) - _ROWS + section.left
        lines += [f"\n… and {quantities.plural(left, 'change')} more."] if left > 0 else []
        out.add("\n".join(lines))
    elif isinstance(section, Columns):
        head = ["", *(what for what, _ in section.columns[0].figures)] if section.columns else [""]
        lines = [line_of(head), "| --- |" + " ---: |" * (len(head) - 1)]
        lines += [
            line_of((c.title, *(quantities.printed(value) for _, value in c.figures)))
            for c in section.columns
        ]
        if len(head) > 1:
            out.add("\n".join(lines))
        for column in section.columns if len(head) == 1 else ():
            _column(out, column)
    elif isinstance(section, Entries):
        for entry in section.entries[:MAX_ENTRIES]:
            (_item if section.listed else _entry)(out, entry)
        out.more(len(section.entries) - MAX_ENTRIES, section.style)
    elif isinstance(section, Listings) and not section.legend:  # legends need colours
        for listing in section.listings[:MAX_ENTRIES]:
            source = listing.source
            out.add(f"{code(source.name)} in {code(f'{source.file}:{source.first_line}')}:")
            out.listing(source.text, "python", TEXT_LIMIT)
    elif isinstance(section, Flow):
        _flow(out, section)
    elif isinstance(section, Group):
        _group(out, section)
    elif isinstance(section, Compiled):
        _compiled(out, section)


def _flow(out: Out, flow: Flow) -> None:
    lines = [
        escape(f"{phase}: {ARROW.join(words)}" if phase else ARROW.join(words)) for phase, words in flow.lines
    ]
    out.add("\n".join(f"- {line}" for line in lines) or escape(sentences.NO_STAGE))
    if not lines:
        return
    table = ["| stage | holds | time |", "| --- | --- | ---: |"]
    for lane in flow.lanes:
        for step in lane.steps:
            holds = f"missing: {step.missing}" if step.missing else ", ".join(step.facts)
            holds = f"none: {step.none}" if step.none else holds
            table.append(f"| {escape(step.key)} | {escape(holds)} | {quantities.duration(step.seconds)} |")
    out.add("\n".join(table))


def _group(out: Out, group: Group) -> None:
    for finding in group.findings:
        _finding(out, finding, "###")
        out.add(f"All of it: {code(finding.where)}; the .html report shows it with code and pictures.")
    for reason, titles in group.unknown:
        out.add(f"{escape(', '.join(titles))}: {escape(reason)}.")


def _entry(out: Out, entry: Entry) -> None:
    out.add(f"### {escape(entry.head)}")
    lines = [escape(entry.detail)]
    lines += [
        f"{escape(capitalized(label))}: {escape(text)}" if label else escape(text)
        for label, text in entry.lines
    ]
    out.add("\n\n".join(line for line in lines if line))
    frames = [
        f"- {code(f'{f.file}:{f.within}')} in {code(plain_name(f.function))}"
        + (f": {code(f.text.strip())}" if f.text.strip() else "")
        for f in entry.frames
    ]
    if frames:
        out.add("\n".join(frames))
    if entry.code is not None:
        out.add(fenced(entry.code.text, entry.code.language))


def _item(out: Out, entry: Entry) -> None:
    """Add one item of a list, with its facts."""
    lines = [f"- {escape(f'{entry.head} {entry.detail}')}"]
    lines += [f"  - {escape(f'{label}: {text}' if label else text)}" for label, text in entry.lines]
    lines += [f"  - {escape(line)}" for line in entry.whole.splitlines()]
    out.add("\n".join(lines))
    if entry.code is not None:
        out.listing(entry.code.text + "\n", entry.code.language, TEXT_LIMIT)


def _column(out: Out, column: Column) -> None:
    """Add one column: its words, then its code."""
    out.add(f"### {escape(column.title)}")
    out.add("\n".join(f"- {escape(words)}" for words in column.words))
    for block in column.blocks:
        if block.text and not block.folded:
            out.add(code(block.title))
            language = {"triton": "python", "metal": "cpp"}.get(block.language, block.language)
            out.listing(block.text, language, TEXT_LIMIT)


def line_of(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


_SIDES = {"number": "---:"}
_ROWS = 20
"""Maximum rows of a table and single changes; the rest is only counted."""


def _compiled(out: Out, section: Compiled) -> None:
    capture, compilation = section.capture, section.compilation
    where = f"{compilation.file}:{compilation.line}" if compilation.file else "an unknown place"
    out.add(f"From {code(where)}.")
    for reason in compilation.recompile_reasons[:MAX_ENTRIES]:
        out.add(f"A recompile: {escape(reason)}")
    if compilation.ending is not None and compilation.ending.kind == BREAK:
        out.add(f"Ended in a graph break: {escape(outcome.reason(compilation.ending).what)}")
    _stages(out, compilation)
    origins = labels.Origins(capture)
    for phase, module in compilation.code.items():
        out.add(f"### {phase} kernels")
        if module.model:
            out.add(f"{escape(stamp.of_code(module))}.")
        if module.may_differ:
            lines = [f"- {escape(words)}" for words in stamp.differences(module, MAX_ENTRIES)]
            out.add("\n".join(("May differ on the real device:\n", *lines)))
        if not module.kernels:
            out.add("This module launches no kernel.")
        for kernel in module.kernels:
            _kernel(out, kernel, launched(module, kernel), origins.of(kernel))
        around = quantities.plural(len(module.text.splitlines()), "line")
        out.add(f"The module around them ({around}) is in the .html report.")
    if compilation.guards:
        out.add(f"### {quantities.plural(len(compilation.guards), 'guard')}")
        out.add("\n".join(f"- {code(g.text)}" for g in compilation.guards[:MAX_ENTRIES]))
        out.more(len(compilation.guards) - MAX_ENTRIES, "guard")


def _stages(out: Out, compilation: Compilation) -> None:
    shown = [graph for graph in compilation.graphs.values() if graph.text.strip()]
    if shown:
        out.add("### Stages")
    graphs = compilation.graphs
    for graph in shown:
        before = graphs[graph.before] if graph.before in graphs else None
        if labels.unchanged(graph, before):
            out.add(f"#### {escape(graph.key)}\n\nThe same operations as in {escape(graph.before)}.")
            continue
        out.add(f"#### {escape(graph.key)}")
        out.listing(graph.text, "python", TEXT_LIMIT)


def _kernel(out: Out, kernel: Kernel, launches: str, origin: labels.Origin) -> None:
    language = labels.LANGUAGES.get(kernel.language, kernel.language)
    facts = [language] if kernel.kind == kernel.language else [language, kernel.kind]
    facts.append(launches)
    size = labels.traffic(kernel)
    facts += [f"{size} read and written"] if size else []
    out.add(f"#### {code(kernel.name)}")
    chain = [", ".join(code(o) for o in origin.operators)] if origin.operators else []
    chain += [code(labels.places(origin.lines))] if origin.lines else []
    chain += [escape(origin.unknown)] if origin.unknown else []
    line = escape(" · ".join(facts)) + "\\\n← " + " ← ".join(chain)
    out.add(line + ("\\\n" + escape(again) if (again := labels.again(origin)) else ""))
    if kernel.source.strip():
        out.listing(
            kernel.source, {"triton": "python", "metal": "cpp"}.get(kernel.language, "cpp"), CODE_LIMIT
        )
    _machine(out, kernel)


def _machine(out: Out, kernel: Kernel) -> None:
    shown = [
        (name, value) for name, value in zip(machine.HEAD, machine.figures(kernel), strict=True) if value
    ]
    if shown:
        names, values = zip(*shown, strict=True)
        out.add("\n".join((line_of(names), "|" + " --- |" * len(names), line_of(values))))
    remark = machine.configurations(kernel)
    if remark is not None:
        lines = [f"- {code(line)}" for line in remark.lines]
        out.add("\n".join((f"{escape(remark.title)}.", "", *lines)).rstrip())
    for words in machine.missing(kernel):
        out.add(f"{escape(words)}.")
    if forms := machine.names(kernel):
        out.add(f"The code itself: {', '.join(code(name) for name in forms.split(', '))}.")
