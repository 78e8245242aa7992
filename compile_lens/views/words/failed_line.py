"""The line of the program at which a capture failed, and its callers."""

from __future__ import annotations

from compile_lens.record.capture import Failure
from compile_lens.record.graph import Frame

from . import characters, labels

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
    if start < 0 or text.count(frame.call) > 1 or characters.flat(text) != text:
        return text, ""
    if len(text) > LONG:  # the expression is what matters
        return (frame.call, "") if len(frame.call) < len(text) else (text, "")
    return text, " " * characters.cells(text[:start]) + "^" * characters.cells(frame.call)


def where(frame: Frame) -> str:
    """``model.py:19 in Block.forward``."""
    return f"{labels.place(frame)} in {frame.function}" if frame.function else labels.place(frame)


def failed_at(failure: Failure) -> tuple[str, ...]:
    """The place and the line of the program, carets under the expression, then callers; none if unknown."""
    frames = own_frames(failure)
    if not frames:
        return ()
    code = [f"  {words}" for words in marked(frames[-1]) if words]
    callers = [f"called from {where(frame)}: {frame.text.strip()}" for frame in reversed(frames[:-1])]
    return (f"at {where(frames[-1])}", *code, *callers)
