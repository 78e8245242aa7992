"""Places in torch's own source, and the frames in the stack traces that torch keeps as text."""

from __future__ import annotations

import ast
import dataclasses
import functools
import linecache
import os
import re
import sys
import traceback
import types
import unicodedata

import torch

from ...record import syntax
from ...record.graph import Frame
from . import source_text

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)$')
_MARKERS = re.compile(r"    [ ~^]*\^[ ~^]*")
_INSIDE_WORD = re.compile(r"\w\w")
_ELSE_IF = re.compile(r"^elif\b")


def frames(trace: str | None) -> tuple[Frame, ...]:
    """Return the frames of a formatted stack trace, outermost first, with columns if it has markers."""
    parsed = _frames(trace) if trace else ()
    changed = any(source_text.is_foreign(frame.file, frame.line) for frame in parsed)
    return tuple(map(as_compiled, parsed)) if changed else parsed


def as_compiled(frame: Frame) -> Frame:
    """Return a frame; without text and columns if its file holds another text than the one that was compiled."""
    foreign = source_text.is_foreign(frame.file, frame.line)
    return dataclasses.replace(frame.whole_line, text="") if foreign else frame


@functools.lru_cache(maxsize=8192)
def _frames(trace: str) -> tuple[Frame, ...]:
    parsed: list[Frame] = []
    text_line = ""
    for line in trace.split("\n"):  # no other character ends a line of a program
        match = _FRAME.match(line)
        if match:
            file = match["file"]
            parsed.append(Frame(file, int(match["line"]), match["function"], of_torch=is_torch_file(file)))
            text_line = ""
        elif parsed and not text_line and line.startswith("    "):
            text_line = line[4:]
            last = parsed[-1]
            parsed[-1] = dataclasses.replace(last, text=_whole_line(last, text_line.strip()))
        elif text_line and parsed[-1].column is None and _MARKERS.fullmatch(line):
            # For a call over several lines, Python 3.13 shows more lines with markers of their own.
            if parsed[-1].text == text_line.strip():  # not cut: the markers are those of the whole line
                parsed[-1] = _with_columns(parsed[-1], text_line, line[4:])
    return tuple(f for f in parsed if not is_internal(f.file))


def _whole_line(frame: Frame, text: str) -> str:
    """Return the text of a frame's line; traces of Python 3.13 cut it at a form feed inside a string."""
    line = linecache.getline(frame.file, frame.line).strip()
    return line if [part.rstrip() for part in line.splitlines()[:1]] == [text] else text


MARKS_WHOLE_VALUES = sys.version_info < (3, 13)
"""True if this Python's stack traces mark a call that is the whole value of an assignment or return."""


def with_whole_value(trace: str, summary: traceback.FrameSummary) -> str:
    """Return a formatted stack trace in which such a call is marked in the frame of ``summary`` too, by its columns."""
    start, end = (getattr(summary, name, None) for name in ("colno", "end_colno"))
    line = linecache.getline(summary.filename, summary.lineno or 0).rstrip()
    indent = len(line) - len(line.lstrip())
    # Without columns there is nothing to mark; a range that begins with the line's text is the whole statement.
    if start is None or end is None or start <= indent:
        return trace
    if getattr(summary, "end_lineno", summary.lineno) != summary.lineno:
        end = len(line.encode("utf-8", "surrogatepass"))
    start, end = (_width(line[: _column(line, offset)]) for offset in (start, end))
    frame = re.escape(f'  File "{summary.filename}", line {summary.lineno}, in {summary.name}\n')
    shown = re.compile(rf"({frame}    ( *){re.escape(line.lstrip())}\n)(?! *[~^])")
    return shown.sub(lambda m: f"{m[1]}    {m[2]}{' ' * (start - indent)}{'^' * (end - start)}\n", trace)


def _with_columns(frame: Frame, text: str, markers: str) -> Frame:
    # A trace shows the line with reduced or no indentation; columns count from the start of the file's line.
    full = linecache.getline(frame.file, frame.line)
    indent = max(full.find(text.rstrip()), 0)
    start, end = (
        _characters(text, width) for width in (len(markers) - len(markers.lstrip()), len(markers.rstrip()))
    )
    call = text[start:end].strip()
    if call and not _is_part(text, start, end):
        return frame  # the code was compiled from another text, such as one with different indentation
    return dataclasses.replace(frame, column=indent + start, end_column=indent + end, call=call)


WIDE_MARKERS = sys.version_info >= (3, 12) or hasattr(traceback, "_display_width")
"""True if this Python writes two markers under a wide character, as early versions of 3.11 do not."""


def _width(text: str) -> int:
    """Return the number of markers that Python writes under a text."""
    if text.isascii() or not WIDE_MARKERS:
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _characters(text: str, width: int) -> int:
    """Return the number of characters at the start of a line that have this width; beyond its end, each column counts
    as one character."""
    if text.isascii() or not WIDE_MARKERS:
        return width
    at = 0
    while at < len(text) and width > 0:
        width -= _width(text[at])
        at += 1
    return at + max(width, 0)


def column(file: str, line: int, offset: int | None) -> int | None:
    """Return the column, in characters, of a Python offset, in UTF-8 bytes."""
    return None if offset is None else _column(source_text.line(file, line), offset)


def _column(text: str, offset: int) -> int:
    if text.isascii():
        return offset
    return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace"))


def _is_part(text: str, start: int, end: int) -> bool:
    """Return True if Python may mark this range of a line: it is a node of the syntax tree, or, if the line is only
    part of a statement, an expression that cuts no word."""
    nodes = _nodes(text)
    if nodes is not None:
        return (start, end) in nodes
    if any(_INSIDE_WORD.fullmatch(text[max(at - 1, 0) : at + 1]) for at in (start, end)):
        return False
    try:
        syntax.parse(text[start:end].strip(), mode="eval")
    except (SyntaxError, ValueError):
        return end >= len(text.rstrip())  # the expression continues on the next line
    return True


@functools.lru_cache(maxsize=4096)
def _nodes(text: str) -> frozenset[tuple[int, int]] | None:
    """Return the column ranges of all syntax nodes of a line; None if the line alone is no statement."""
    if text.startswith(("+", "-")):  # more likely the rest of an expression
        return None
    line = _ELSE_IF.sub("  if", text)
    try:
        tree = syntax.parse(f"{line} pass" if line.endswith(":") else line)
    except (SyntaxError, ValueError):
        return None
    places = (
        (getattr(node, "col_offset", None), getattr(node, "end_col_offset", None)) for node in ast.walk(tree)
    )
    return frozenset(
        (_column(text, start), _column(text, end))
        for start, end in places
        if start is not None and end is not None
    )


TORCH = os.path.join(os.path.dirname(torch.__file__), "")
"""The folder of torch's own files."""


def is_torch_file(file: str) -> bool:
    """Return True if a file is torch's own."""
    return file.startswith(TORCH)


def is_internal(file: str) -> bool:
    """Return True for our files and torch's wrapper around a captured callable, which have no lines of the program."""
    return (
        "/compile_lens/_torch/" in file.replace("\\", "/")
        or is_entry(file)
        or file.endswith("/torch/_dynamo/external_utils.py")
    )


def is_entry(file: str) -> bool:
    """Return True for the file of the wrapper around our public functions, through which a program calls them."""
    return file.replace("\\", "/").endswith("/compile_lens/engine/entry.py")


def place_in_torch(code: types.CodeType, line: int) -> str:
    """Return ``file:line in function`` with a path relative to torch's parent folder; for other files, only the file's
    name."""
    return _place(code.co_filename, line, code.co_name)


@functools.lru_cache(maxsize=1024)
def _place(filename: str, line: int, function: str) -> str:
    root = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
    file = os.path.abspath(filename)
    inside = file.startswith(root + os.sep + "torch" + os.sep)
    name = file[len(root) + 1 :].replace(os.sep, "/") if inside else os.path.basename(file)
    return f"{name}:{line} in {function}"


def is_disable_wrapper(code: types.CodeType) -> bool:
    """Return True for the code of the wrapper that ``torch.compiler.disable(recursive=False)`` returns. All such
    wrappers share one code object, by which Dynamo recognises them and on which it stores nothing."""
    # Imported here, so that importing this module does not load the compiler.
    from torch._dynamo import decorators

    return code is getattr(decorators, "_nonrecursive_disable_wrapper_code", None)
