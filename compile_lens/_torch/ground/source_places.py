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
    for line in trace.splitlines():
        match = _FRAME.match(line)
        if match:
            file = match["file"]
            parsed.append(Frame(file, int(match["line"]), match["function"], of_torch=is_torch_file(file)))
            text_line = ""
        elif parsed and not text_line and line.startswith("    "):
            text_line = line[4:]
            last = parsed[-1]
            parsed[-1] = dataclasses.replace(last, text=text_line.strip())
        elif parsed and text_line and parsed[-1].column is None and _MARKERS.fullmatch(line):
            # Of a call over several lines Python 3.13 shows more lines, with markers of their own.
            parsed[-1] = _with_columns(parsed[-1], text_line, line[4:])
    return tuple(f for f in parsed if not is_internal(f.file))


MARKS_WHOLE_VALUES = sys.version_info < (3, 13)
"""A stack trace of this Python marks a call that is all that a statement assigns or returns."""


def with_whole_value(trace: str, summary: traceback.FrameSummary) -> str:
    """Return a formatted stack trace that marks such a call also in the frame of this summary, which has columns."""
    start, end = (getattr(summary, name, None) for name in ("colno", "end_colno"))
    line = linecache.getline(summary.filename, summary.lineno or 0).rstrip()
    indent = len(line) - len(line.lstrip())
    # Of other lines it depends on who counted; what begins where its line does is the statement.
    if start is None or end is None or start <= indent:
        return trace
    if getattr(summary, "end_lineno", summary.lineno) != summary.lineno:
        end = len(line.encode("utf-8", "surrogatepass"))
    start, end = (_width(line[: _column(line, offset)]) for offset in (start, end))
    frame = re.escape(f'  File "{summary.filename}", line {summary.lineno}, in {summary.name}\n')
    shown = re.compile(rf"({frame}    ( *){re.escape(line.lstrip())}\n)(?! *[~^])")
    return shown.sub(lambda m: f"{m[1]}    {m[2]}{' ' * (start - indent)}{'^' * (end - start)}\n", trace)


def _with_columns(frame: Frame, text: str, markers: str) -> Frame:
    # A trace shows the line with less of its indentation, or none; columns count in the file's line.
    full = linecache.getline(frame.file, frame.line)
    indent = max(full.find(text.rstrip()), 0)
    start, end = (
        _characters(text, width) for width in (len(markers) - len(markers.lstrip()), len(markers.rstrip()))
    )
    call = text[start:end].strip()
    if call and not _is_part(text, start, end):
        return frame  # the code was compiled from another text, such as one with other indentation
    return dataclasses.replace(frame, column=indent + start, end_column=indent + end, call=call)


WIDE = sys.version_info >= (3, 12) or hasattr(traceback, "_display_width")
"""Markers under a wide character are two, as in a terminal; in an early 3.11 each character has one."""


def _width(text: str) -> int:
    """Return how many markers Python writes under a text."""
    if text.isascii() or not WIDE:
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _characters(text: str, width: int) -> int:
    """Return how many characters at the start of a line have this width; more than it has if the line is shorter."""
    if text.isascii() or not WIDE:
        return width
    at = 0
    while at < len(text) and width > 0:
        width -= _width(text[at])
        at += 1
    return at + max(width, 0)


def column(file: str, line: int, offset: int | None) -> int | None:
    """Return the column at an offset of Python's, which counts bytes; columns count characters."""
    return None if offset is None else _column(source_text.line(file, line), offset)


def _column(text: str, offset: int) -> int:
    if text.isascii():
        return offset
    return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace"))


def _is_part(text: str, start: int, end: int) -> bool:
    """Return True if a piece of a line can be what Python marks: a node of its syntax. Of a line that is a part of a
    statement, an expression between two words."""
    nodes = _nodes(text)
    if nodes is not None:
        return (start, end) in nodes
    if any(_INSIDE_WORD.fullmatch(text[max(at - 1, 0) : at + 1]) for at in (start, end)):
        return False
    try:
        syntax.parse(text[start:end].strip(), mode="eval")
    except (SyntaxError, ValueError):
        return end >= len(text.rstrip())  # it goes on below
    return True


@functools.lru_cache(maxsize=4096)
def _nodes(text: str) -> frozenset[tuple[int, int]] | None:
    """Return the columns of all nodes of a line, None for one that is no statement by itself."""
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
    """Return True for our files and for torch's wrapper around a captured callable: no line of the program."""
    return (
        "/compile_lens/_torch/" in file.replace("\\", "/")
        or is_entry(file)
        or file.endswith("/torch/_dynamo/external_utils.py")
    )


def is_entry(file: str) -> bool:
    """Return True for the wrapper around our public functions, of which a program calls one where it is compiled."""
    return file.replace("\\", "/").endswith("/compile_lens/engine/entry.py")


def place_in_torch(code: types.CodeType, line: int) -> str:
    """Return a place in torch as a reader finds it in any installation; elsewhere just the name of the file."""
    return _place(code.co_filename, line, code.co_name)


@functools.lru_cache(maxsize=1024)
def _place(filename: str, line: int, function: str) -> str:
    root = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
    file = os.path.abspath(filename)
    inside = file.startswith(root + os.sep + "torch" + os.sep)
    name = file[len(root) + 1 :].replace(os.sep, "/") if inside else os.path.basename(file)
    return f"{name}:{line} in {function}"


def is_disable_wrapper(code: types.CodeType) -> bool:
    """Return True for the code of the wrapper that ``torch.compiler.disable(recursive=False)`` makes. All of
    these share one code object of torch's, by which Dynamo recognises them and on which it stores nothing."""
    # Imported here, so that listing a module's parts does not load the compiler.
    from torch._dynamo import decorators

    return code is getattr(decorators, "_nonrecursive_disable_wrapper_code", None)
