"""Columns of a frame: those that Python marks, where they are of the text that the file holds."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import traceback
from collections.abc import Iterator

import pytest
import torch.nn.functional

from compile_lens._torch.ground.source_places import frames, with_whole_value
from compile_lens.record.graph import Frame

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="tracebacks of Python 3.10 have no columns"
)

FILE = inspect.getsourcefile(torch.nn.functional) or ""

INDENT = 4

EACH = 8
"""Step between the expressions that are looked at."""


def shown(node: ast.expr, left: int) -> Frame:
    """The frame of a traceback that marks a node, ``left`` characters too far to the left."""
    summary = traceback.FrameSummary(
        FILE,
        node.lineno,
        "f",
        end_lineno=node.end_lineno,
        colno=node.col_offset - left,
        end_colno=(node.end_col_offset or 0) - left,
    )
    (frame,) = frames("".join(traceback.StackSummary.from_list([summary]).format()))
    return frame


def indented_calls() -> Iterator[ast.expr]:
    """Calls, operators and subscripts of one line each, in the bodies of functions."""
    tree = ast.parse("".join(linecache.getlines(FILE)))
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            if (
                isinstance(node, ast.Call | ast.BinOp | ast.Subscript | ast.Attribute)
                and node.end_lineno == node.lineno
                and linecache.getline(FILE, node.lineno).isascii()
            ):
                yield node


def test_columns_are_those_of_the_node() -> None:
    nodes = list(indented_calls())[::EACH]
    marked = [(node, frame) for node in nodes if (frame := shown(node, 0)).column is not None]
    assert len(marked) > 0.8 * len(nodes) > 80  # a line that is marked as a whole has no markers
    for node, frame in marked:
        assert (frame.column, frame.end_column) == (node.col_offset, node.end_col_offset)
        assert frame.call == linecache.getline(FILE, node.lineno)[node.col_offset : node.end_col_offset]


def whole_values() -> Iterator[ast.Call]:
    """Calls of which the value of a statement consists, on whose first line they begin."""
    for statement in ast.walk(ast.parse("".join(linecache.getlines(FILE)))):
        if isinstance(statement, ast.Assign | ast.Return) and isinstance(statement.value, ast.Call):
            if statement.lineno == statement.value.lineno:
                yield statement.value


def test_a_call_that_python_does_not_mark_has_the_columns_of_its_node() -> None:
    """As Python 3.13 shows the frame of a call that is all that a statement assigns or returns: without markers."""
    calls = list(whole_values())[::EACH]
    assert len(calls) > 30 and any(call.end_lineno != call.lineno for call in calls)
    for call in calls:
        place = {"end_lineno": call.end_lineno, "colno": call.col_offset, "end_colno": call.end_col_offset}
        summary = traceback.FrameSummary(FILE, call.lineno, "f", **place)
        line = linecache.getline(FILE, call.lineno).rstrip()
        for shown in {line, line.lstrip()}:  # 3.13 leaves what the first of several lines is indented more
            trace = f'  File "{FILE}", line {call.lineno}, in f\n    {shown}\n'
            marked = with_whole_value(trace, summary)
            (frame,) = frames(marked)
            end = call.end_col_offset if call.end_lineno == call.lineno else len(line)
            assert (frame.column, frame.end_column) == (call.col_offset, end)
            assert frame.call == line[call.col_offset : end]
            assert with_whole_value(marked, summary) == marked
            for unknown in (None, start_of_line(call)):  # what begins with its line is the statement
                other = traceback.FrameSummary(FILE, call.lineno, "f", **place | {"colno": unknown})
                assert with_whole_value(trace, other) == trace


def test_no_column_where_the_code_was_compiled_without_the_files_indentation() -> None:
    """As marimo compiles its cells where it shows a notebook as an app. Python marks nothing before a line's start."""
    nodes = [node for node in indented_calls() if node.col_offset - INDENT >= start_of_line(node)][::EACH]
    assert len(nodes) > 80
    wrong = [frame.call for node in nodes if (frame := shown(node, INDENT)).column is not None]
    assert len(wrong) <= 0.01 * len(nodes), wrong


def start_of_line(node: ast.expr) -> int:
    line = linecache.getline(FILE, node.lineno)
    return len(line) - len(line.lstrip())
