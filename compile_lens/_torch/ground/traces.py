"""Stack traces that torch keeps as text, as frames."""

from __future__ import annotations

import dataclasses
import functools
import linecache
import re

from ...record.graph import Frame
from .torch_source import internal, of_torch

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)$')
_MARKERS = re.compile(r"    [ ~^]*\^[ ~^]*")


@functools.lru_cache(maxsize=8192)
def frames(trace: str | None) -> tuple[Frame, ...]:
    """The frames in a formatted stack trace, outermost first, with columns where it has markers."""
    if not trace:
        return ()
    found: list[Frame] = []
    text_line = ""
    for line in trace.splitlines():
        match = _FRAME.match(line)
        if match:
            file = match["file"]
            found.append(Frame(file, int(match["line"]), match["function"], of_torch=of_torch(file)))
            text_line = ""
        elif found and not text_line and line.startswith("    "):
            text_line = line[4:]
            last = found[-1]
            found[-1] = dataclasses.replace(last, text=text_line.strip())
        elif found and text_line and found[-1].column is None and _MARKERS.fullmatch(line):
            # Of a call over several lines Python 3.13 shows more lines, with markers of their own.
            found[-1] = _with_columns(found[-1], text_line, line[4:])
    return tuple(f for f in found if not internal(f.file))


def _with_columns(frame: Frame, text: str, markers: str) -> Frame:
    # A trace shows the line without its indentation; columns count in the file's line.
    full = linecache.getline(frame.file, frame.line)
    indent = len(full) - len(full.lstrip()) if full else 0
    start, end = len(markers) - len(markers.lstrip()), len(markers.rstrip())
    # Markers under wide characters are as wide as these: they count no characters of the text.
    call = text[start:end].strip() if text.isascii() else ""
    return dataclasses.replace(frame, column=indent + start, end_column=indent + end, call=call)
