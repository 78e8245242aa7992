"""Listings: line numbers, the origin of each line, and coloured text, side by side; and machine code, whose last form
is a listing if there is room."""

from __future__ import annotations

import html
import os
from collections.abc import Collection, Mapping

from compile_lens.record.capture import Record
from compile_lens.record.graph import Source
from compile_lens.record.kernel import Form, Kernel

from ...words import machine, quantities, sentences
from ...words.characters import clean, short
from ...words.derivatives import Whose, of_names, phrase
from ...words.folds import machine_folds
from ...words.highlight import INKS, runs
from ...words.palette import INK
from .markup import EDGE, FAINT, PHASE_COLOURS, SUNK, WHOLE, Budget, div, fold, mono, note, span, tag, text
from .tables import figures_table

_PRE = (
    "font:inherit;margin:0;border:0;white-space:pre;background:none;"
    "overflow:visible"  # the whole listing scrolls, not a column; overrides a host
)
_PAPER = 92
"""Characters of 9 pt per printed line, including side columns."""

_PAPER_SMALL = 112
"""Characters of 7.5 pt per printed line, the smallest size used to fit side columns."""

_SIDE = 34
"""Width of the column of origins, in characters."""


def source_head(source: Source, modules: tuple[str, ...] = ()) -> str:
    """Return the head of a listing: function name, number of modules that ran it, file and line; the folder is in the
    tooltip."""
    place = f"{source.file}:{source.first_line}"
    where = tag(
        "span",
        text(short(os.path.basename(place), 1000)),
        f"color:{FAINT};font-size:12px;margin-left:8px",
        extra=f'title="{text(short(place, 1000))}"',
    )
    name = mono(source.name, "font-size:13px;font-weight:600")
    short_form, words = sentences.ran_by(modules)
    often = (
        tag("span", short_form, f"color:{FAINT};font-weight:600", extra=f'title="{text(words)}"')
        if modules
        else ""
    )
    return div(name + (f" {often}" if often else "") + where, "margin:8px 0 4px;overflow-wrap:anywhere")


def listing(
    source: str,
    language: str,
    budget: Budget,
    first: int = 1,
    origins: Mapping[int, str] | None = None,
    height: int = 420,
    numbered: bool = True,
    inks: Mapping[int, str] | None = None,
) -> str:
    """Return the HTML of a text. ``first`` is the number of its first line; ``origins`` maps line indices (from 1) to
    words; ``inks`` are the colours of those words, if they differ.

    Numbers are in a separate column, so that the text can be copied without them. Text beyond the page's budget is
    omitted, with a note.
    """
    if not source.strip():
        return note("no text")
    shown, left_out = _trim(source, budget)
    lines, done = coloured(shown, language, budget.colour(len(shown)))
    if lines and not lines[-1]:
        lines.pop()
        done = min(done, len(lines))
    columns = []
    beside: list[int] = []
    """Characters that each column beside the text takes, with its margins."""
    if numbered:
        numbers = "\n".join(str(n) for n in range(first, first + len(lines)))
        beside.append(len(str(first + len(lines))) + 3)
        columns.append(_column(numbers, f"color:{FAINT};text-align:right", "numbers"))
    if origins:
        width = min(max((len(o) for o in origins.values()), default=0), _SIDE)
        words = [_cut(origins.get(i, " "), width) for i in range(1, len(lines) + 1)]
        if inks:
            words = [span(w, f"color:{inks[i]}") if i in inks else w for i, w in enumerate(words, 1)]
        side = "\n".join(words)
        beside.append(width + 3)
        columns.append(_column(side, f"color:{PHASE_COLOURS['forward']}", "origins"))
    body = "\n".join(lines)
    if lines and not lines[0]:
        body = "\n" + body  # the first newline in a <pre> is dropped
    columns.append(
        tag(
            "pre",
            body,
            f"{_PRE};color:{INK};padding:8px 12px",
            "code",
        )
    )
    frame = (
        f"display:flex;max-height:{height}px;overflow:auto;background:{SUNK};border:1px solid {EDGE};"
        "font:12px Menlo,monospace;line-height:1.55"
    )
    # Focusable, since it scrolls. In print long lines wrap, and the side columns would no longer match.
    taken = max(map(len, shown.split("\n"))) + sum(beside)
    name = "listing" + ("" if taken <= _PAPER else " cl-wide" if taken <= _PAPER_SMALL else " cl-long")
    page = tag("div", "".join(columns), frame, name, 'tabindex="0"')
    if left_out:
        page += note(left_out)
    elif language and 0 < done < len(lines):
        page += note(f"coloured up to line {first + done - 1:,}, plain from there on")
    return page


def kernel_origins(kernel: Kernel, again: Collection[str] = (), whose: Whose = ()) -> dict[int, str]:
    """Return the operators that each line of a kernel came from, as ``← sin``; empty without a line map.

    Operators in ``again``, which other kernels also compute, are marked; ``whose`` gives the forward operators of
    gradients.
    """
    return {
        line.line: "← "
        + ", ".join(f"{o} (again)" if o in again else o for o in line.origins)
        + (f", {words}" if (words := phrase(of_names(whose, line.origins))) else "")
        for line in kernel.lines
        if line.origins
    }


def _column(content: str, style: str, cls: str) -> str:
    return tag("div", content, f"white-space:pre;padding:8px;{style}", cls)


def _cut(value: str, width: int) -> str:
    return text(value if len(value) <= width else value[: width - 1] + "…")


def _trim(source: str, budget: Budget) -> tuple[str, str]:
    room = budget.show(len(source))
    if room >= len(source):
        return source, ""
    cut = source.rfind("\n", 0, room + 1)
    shown = source[: cut if cut > 0 else room]
    total = source.count("\n") + 1
    kept = shown.count("\n") + 1 if shown else 0
    lines = (
        f"{total - kept:,} of {quantities.plural(total, 'line')}"
        if cut > 0 or not shown
        else "the rest of a long line"
    )
    return (
        shown,
        f"{lines} ({len(source) - len(shown):,} characters) left out to keep the page small; {WHOLE}",
    )


_BOLD = INKS.index("#b3202c") + 1
"""Colour index of keywords, shown in bold: they are frequent, and the tag is five times shorter than a styled span."""


_COMMON = INKS.index("#0550ae") + 1
"""Colour index of numbers and types, shown plain: they would be half of all spans of generated code."""


def coloured(source: str, language: str, limit: int) -> tuple[list[str], int]:
    """Return the HTML of each line, and the number of coloured lines.

    Lines past ``limit`` characters, and all lines in a language without a lexer, are escaped plain text.
    """
    source = clean(source)
    lines: list[str] = []
    line: list[str] = []
    start = 0
    for length, ink in runs(source, language, limit):
        for index, piece in enumerate(source[start : start + length].split("\n")):
            if index:
                lines.append("".join(line))
                line = []
            line.append(_span(piece, ink))
        start += length
    rest = _escaped(source[start:]).split("\n")
    if not start:
        return rest, 0
    if start == len(source):
        return [*lines, "".join(line)], len(lines) + 1
    return [*lines, *rest], len(lines)  # the coloured head ends in a newline


def _escaped(source: str) -> str:
    """Return source escaped as element text, where quotes need no escaping."""
    return html.escape(source, quote=False)


def _span(piece: str, ink: int) -> str:
    if not ink or ink == _COMMON or not piece or piece.isspace():
        return _escaped(piece)
    # Leading spaces need no colour.
    inner = piece.lstrip()
    start, end = ("<b>", "</b>") if ink == _BOLD else (f'<span style="color:{INKS[ink - 1]}">', "</span>")
    return f"{piece[: len(piece) - len(inner)]}{start}{_escaped(inner)}{end}"


ROOM = 60_000
"""Maximum total characters of the kernels' last forms on a page."""

FONT = "font-size:13px"


class MachineCode:
    """HTML of the machine code of kernels, with their last forms if those of all kernels fit."""

    def __init__(self, capture: Record, budget: Budget) -> None:
        self._budget = budget
        last = (machine.last(kernel) for kernel in capture.kernels)
        self._roomy = sum(len(form.text) for form in last if form is not None) <= ROOM

    def of(self, kernel: Kernel) -> str:
        """Return the part below a kernel's source; ``""`` if nothing is known."""
        shown = [pair for pair in zip(machine.HEAD, machine.figures(kernel), strict=True) if pair[1]]
        parts = [figures_table([name for name, _ in shown], [[value for _, value in shown]])] if shown else []
        remark = machine.configurations(kernel)
        if remark is not None and remark.lines:
            lines = "".join(div(mono(line, FONT)) for line in remark.lines)
            parts.append(fold(text(remark.title), lines, "configurations", level=1))
        elif remark is not None:
            parts.append(div(text(remark.title), FONT))
        parts += [note(text(short(words, 1000))) for words in machine.missing(kernel)]
        return "".join(parts) + self._form(kernel)

    def _form(self, kernel: Kernel) -> str:
        form = machine.last(kernel)
        if form is None:
            return ""
        names = text(machine.names(kernel))
        if not self._roomy:
            return note(f"left out to keep the page small: {names}")
        linked: dict[int, str] = {}
        first = kernel.first_line or 1  # numbered as the source above
        for line, of in form.links:
            number = first + of - 1
            linked[line] = f"{linked[line]}, {number}" if line in linked else f"← line {number}"
        title = f"{text(machine.title(form.kind))}, with the lines of the source above that it came from"
        return fold(title, self._lines(form, linked) + note(f"in Python: {names}"), "form", level=1)

    def _lines(self, form: Form, linked: dict[int, str]) -> str:
        """Return the instructions; text before the first and after the last one is folded."""
        lines = form.text.removesuffix("\n").split("\n")
        folds = machine_folds(form.kind, form.text, linked)
        before = folds[0].last if folds and folds[0].first == 1 else 0
        behind = [one for one in folds if one.last == len(lines)][:1]
        runs = [(before + 1, behind[0].first - 1 if behind else len(lines), "")]
        if before:
            runs.insert(0, (1, before, folds[0].label))
        runs += [(one.first, one.last, one.label) for one in behind]
        parts = []
        for first, last, label in runs:
            origins = {n - first + 1: linked[n] for n in linked if first <= n <= last}
            part = "\n".join(lines[first - 1 : last])
            body = listing(part, "", self._budget, first, origins, height=520)
            count = quantities.plural(last - first + 1, "line")
            parts.append(fold(text(f"{count}: {label}"), body, "folded", level=1) if label else body)
        return "".join(parts)
