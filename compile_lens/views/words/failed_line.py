"""The program's line at which a capture failed, and its callers."""

from __future__ import annotations

from compile_lens.record.capture import Failure
from compile_lens.record.graph import Frame

from . import characters, labels

MAX_LINE_CHARACTERS = 88
"""Maximum characters of a code line shown completely."""


def own_frames(failure: Failure) -> list[Frame]:
    """Return the program's own frames at a failure, callers first, or torch's frames if there are no others."""
    own = [f for f in failure.frames if not (f.of_torch or f.file.startswith("<eval_with_key>"))]
    return own or [*failure.frames]


def marked(frame: Frame) -> tuple[str, str]:
    """Return the line of a frame and carets under the computed expression; ``""`` if unknown."""
    text = frame.text.strip()
    start = text.find(frame.call) if frame.call else -1
    if start < 0 or text.count(frame.call) > 1 or characters.flat(text) != text:
        return text, ""
    if len(text) > MAX_LINE_CHARACTERS:  # the expression is what matters
        return (frame.call, "") if len(frame.call) < len(text) else (text, "")
    return text, " " * characters.cells(text[:start]) + "^" * characters.cells(frame.call)


def where(frame: Frame) -> str:
    """Return ``model.py:19 in Block.forward``."""
    return f"{labels.place(frame)} in {frame.function}" if frame.function else labels.place(frame)


def failed_at(failure: Failure) -> tuple[str, ...]:
    """Return the location and the line, carets under the expression, and callers; nothing if unknown."""
    frames = own_frames(failure)
    if not frames:
        return ()
    code = [f"  {words}" for words in marked(frames[-1]) if words]
    callers = [f"called from {where(frame)}: {frame.text.strip()}" for frame in reversed(frames[:-1])]
    return (f"at {where(frames[-1])}", *code, *callers)
