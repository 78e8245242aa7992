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

from compile_lens._torch.ground.source_places import frames
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


def test_no_column_where_the_code_was_compiled_without_the_files_indentation() -> None:
    """As marimo compiles its cells where it shows a notebook as an app. Python marks nothing before a line's start."""
    nodes = [node for node in indented_calls() if node.col_offset - INDENT >= start_of_line(node)][::EACH]
    assert len(nodes) > 80
    wrong = [frame.call for node in nodes if (frame := shown(node, INDENT)).column is not None]
    assert len(wrong) <= 0.01 * len(nodes), wrong


def start_of_line(node: ast.expr) -> int:
    line = linecache.getline(FILE, node.lineno)
    return len(line) - len(line.lstrip())
