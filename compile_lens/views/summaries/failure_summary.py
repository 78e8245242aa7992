"""The part of a Summary about a failure: the line and expression of the program first, torch's words after them."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.record import messages
from compile_lens.record.capture import Failure, Record
from compile_lens.record.graph import Frame

from ..words import labels, outcome
from .summary import Part, Row

LONG = 88
"""Characters of a line of code that is shown whole."""


def own_frames(failure: Failure) -> list[Frame]:
    """The program's own lines at a failure, callers first; torch's where there are no others."""
    own = [f for f in failure.frames if not (f.of_torch or f.file.startswith("<eval_with_key>"))]
    return own or [*failure.frames]


def marked(frame: Frame) -> tuple[str, str]:
    """The line of a frame, and carets under what was computed there; ``""`` for what is not known."""
    text = frame.text.strip()
    start = text.find(frame.call) if frame.call else -1
    if start < 0 or text.count(frame.call) > 1 or not text.isascii():
        return text, ""
    if len(text) > LONG:  # the expression is what matters
        return (frame.call, "") if len(frame.call) < len(text) else (text, "")
    return text, " " * start + "^" * len(frame.call)


def where(frame: Frame) -> str:
    """``model.py:19 in Block.forward``."""
    return f"{labels.place(frame)} in {frame.function}" if frame.function else labels.place(frame)


def failure_rows(capture: Record) -> Iterator[Part]:
    """The line that failed with its callers, what torch says of it, and what to do."""
    failure = capture.failure
    assert failure is not None
    frames = own_frames(failure)
    if frames:
        text, carets = marked(frames[-1])
        lines = tuple(("code", line) for line in (text, carets) if line)
        yield Part("At", where(frames[-1]), (Row("", lines=lines),) if lines else ())
        callers = tuple(Row("", where(frame), frame.text) for frame in reversed(frames[:-1]))
        if callers:
            yield Part("Called from", "", callers)
    raised, message = outcome.raised(failure), messages.summary(failure.message)
    if raised not in (message, f"{failure.type}: {message}"):
        yield Part("Error", labels.without_folders(raised))
    by = "Error" if failure.stage == "run" else "torch says"
    yield Part(by, f"{failure.type}: {labels.without_folders(message)}")
    if failure.hint:
        yield Part("Hint", labels.without_folders(" ".join(failure.hint.split())))
    if failure.link:
        yield Part("Reference", failure.link)
