"""The part of a Summary about a failure: the line and expression of the program first, torch's words after them."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.record import messages
from compile_lens.record.capture import Record

from ..words import labels, outcome
from ..words.failed_line import marked, own_frames, where
from .summary import Part, Row


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
