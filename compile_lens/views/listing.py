"""A listing: line numbers, where each line came from, and the coloured text, side by side."""

from __future__ import annotations

from collections.abc import Mapping

from compile_lens.record import Kernel

from . import outline
from .highlight import coloured
from .markup import EDGE, FAINT, INK, MONO, PHASE_COLOURS, SUNK, WHOLE, Budget, div, note, tag, text

_PRE = (
    f"{MONO};font-size:12px;line-height:1.55;margin:0;border:0;white-space:pre;word-break:normal;"
    "overflow:visible"  # the whole listing scrolls, not a column of it; a host may think otherwise
)
_SIDE = 34
"""Characters of the column that names the origins of a line."""


def listing(
    source: str,
    language: str,
    budget: Budget,
    first: int = 1,
    origins: Mapping[int, str] | None = None,
    height: int = 420,
) -> str:
    """HTML of a text. ``first`` is the number of its first line, ``origins`` a word for lines counted from 1.

    Numbers stand in a column of their own, so that the text can be copied without them. What does not fit
    the page's budget is left out, and a note says how much.
    """
    if not source.strip():
        return note("no text")
    shown, left_out = _trim(source, budget)
    lines, done = coloured(shown, language, budget.colour(len(shown)))
    if lines and not lines[-1]:
        lines.pop()
        done = min(done, len(lines))
    numbers = "\n".join(str(first + i) for i in range(len(lines)))
    columns = [_column(numbers, "text-align:right;min-width:24px", "numbers")]
    if origins:
        width = min(max((len(o) for o in origins.values()), default=0), _SIDE)
        # An empty line at the head of a <pre> would be dropped, and the columns would no longer match.
        side = "\n".join(_cut(origins.get(i, " "), width) for i in range(1, len(lines) + 1))
        columns.append(_column(side, f"color:{PHASE_COLOURS['forward']}", "origins"))
    body = "\n".join(f'<span class="cl-line">{line}</span>' for line in lines)
    columns.append(
        tag(
            "pre",
            body,
            f"{_PRE};color:{INK};background:{SUNK};padding:8px 14px 8px 10px;flex:1 0 auto",
            "code",
        )
    )
    frame = (
        f"display:flex;align-items:flex-start;max-height:{height}px;overflow:auto;background:{SUNK};"
        f"border:1px solid {EDGE};border-radius:6px"
    )
    page = div("".join(columns), frame, "listing")
    if left_out:
        page += note(left_out)
    elif language and 0 < done < len(lines):
        page += note(f"coloured up to line {first + done - 1:,}, plain from there on")
    return page


def kernel_origins(kernel: Kernel) -> dict[int, str]:
    """For each line of a kernel the operators it came from, as ``← sin``; empty without a line map."""
    return {line.line: "← " + ", ".join(line.origins) for line in kernel.lines if line.origins}


def _column(content: str, style: str, cls: str) -> str:
    look = f"{_PRE};color:{FAINT};background:{SUNK};padding:8px 8px 8px 8px;flex:0 0 auto;{style}"
    return tag("pre", content, look, cls)


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
        f"{total - kept:,} of {outline.plural(total, 'line')}"
        if cut > 0 or not shown
        else "the rest of a long line"
    )
    return (
        shown,
        f"{lines} ({len(source) - len(shown):,} characters) left out to keep the page small; {WHOLE}",
    )
