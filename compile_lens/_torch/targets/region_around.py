"""A region of autocast that a program is in when it asks for a capture, and that casts for no device."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from typing import Any

import torch

from ...record.device import Question
from .carried_settings import KINDS
from .questions import frame_at, internal, line_running

OFF = (
    "around the capture, where it is off, by torch as there is no such device, or by the program: nothing was cast for "
    "it. Enter it within the function"
)


def found() -> tuple[Question, ...]:
    """It, with the line of its ``with`` where that is seen, else with that from which the capture was asked for."""
    torch.autocast_increment_nesting()
    inside = torch.autocast_decrement_nesting() > 0
    if not inside or any(map(torch.is_autocast_enabled, KINDS)):
        return ()
    for frame in _of_the_program():
        region = _region(frame)
        if region is not None:
            text, line = region
            at = frame_at(frame.f_code.co_filename, line, frame.f_code.co_name)
            return (Question(text, OFF, at, kind="entered"),)
    asked = line_running()
    return () if asked is None else (Question("torch.autocast", OFF, asked, kind="entered"),)


def _of_the_program() -> Iterator[Any]:
    """Frames of the program, from the innermost on."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not internal(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _region(frame: Any) -> tuple[str, int] | None:
    """The innermost ``with`` around where a frame is that enters a region by its name: as text, and its line."""
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
    except (SyntaxError, ValueError):
        return None
    best: tuple[str, int] | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.AsyncWith)) and _within(node, frame.f_lineno):
            for item in node.items:
                text = ast.unparse(item.context_expr)
                if "autocast" in text and (best is None or node.lineno >= best[1]):
                    best = text, item.context_expr.lineno
    return best


def _within(node: ast.With | ast.AsyncWith, line: int) -> bool:
    return node.body[0].lineno <= line <= (node.end_lineno or 0)
