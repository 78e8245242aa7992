"""Columns of a frame: those that Python marks, if they refer to the text in the file."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch.nn.functional

from compile_lens._torch.graphs.fx import frame_of
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
    """The frame of a traceback whose markers for a node are ``left`` characters too far left."""
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
    """Single-line calls, operators and subscripts in the bodies of functions."""
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
    assert len(marked) > 0.8 * len(nodes) > 80  # Python prints no markers if the whole line is marked
    for node, frame in marked:
        assert (frame.column, frame.end_column) == (node.col_offset, node.end_col_offset)
        assert frame.call == linecache.getline(FILE, node.lineno)[node.col_offset : node.end_col_offset]


def whole_values() -> Iterator[ast.Call]:
    """Calls that are the whole value of a statement and start on its first line."""
    for statement in ast.walk(ast.parse("".join(linecache.getlines(FILE)))):
        if isinstance(statement, ast.Assign | ast.Return) and isinstance(statement.value, ast.Call):
            if statement.lineno == statement.value.lineno:
                yield statement.value


def test_a_call_that_python_does_not_mark_has_the_columns_of_its_node() -> None:
    """Since 3.13, Python prints no markers for a call that is the whole value of an assignment or a return."""
    calls = list(whole_values())[::EACH]
    assert len(calls) > 30 and any(call.end_lineno != call.lineno for call in calls)
    for call in calls:
        place = {"end_lineno": call.end_lineno, "colno": call.col_offset, "end_colno": call.end_col_offset}
        summary = traceback.FrameSummary(FILE, call.lineno, "f", **place)
        line = linecache.getline(FILE, call.lineno).rstrip()
        for shown in {line, line.lstrip()}:  # 3.13 strips the extra indentation of the first of several lines
            trace = f'  File "{FILE}", line {call.lineno}, in f\n    {shown}\n'
            marked = with_whole_value(trace, summary)
            (frame,) = frames(marked)
            end = call.end_col_offset if call.end_lineno == call.lineno else len(line)
            assert (frame.column, frame.end_column) == (call.col_offset, end)
            assert frame.call == line[call.col_offset : end]
            assert with_whole_value(marked, summary) == marked
            for unknown in (None, start_of_line(call)):  # a node that starts with its line is the statement
                other = traceback.FrameSummary(FILE, call.lineno, "f", **place | {"colno": unknown})
                assert with_whole_value(trace, other) == trace


def test_no_column_where_the_code_was_compiled_without_the_files_indentation() -> None:
    """marimo compiles cells this way when it runs a notebook as an app. Python marks nothing before a line's start."""
    nodes = [node for node in indented_calls() if node.col_offset - INDENT >= start_of_line(node)][::EACH]
    assert len(nodes) > 80
    wrong = [frame.call for node in nodes if (frame := shown(node, INDENT)).column is not None]
    assert len(wrong) <= 0.01 * len(nodes), wrong


def start_of_line(node: ast.expr) -> int:
    line = linecache.getline(FILE, node.lineno)
    return len(line) - len(line.lstrip())


WIDE = """\
def f(x, 名):
    s = "é日本" ; y = x.sin() ; ñ = y.cos()  # 结果
    if 名: y = torch.add(ñ, 名.view(-1)[0]) + x.exp() ; print("ｆｕｌｌ", y.tan())
    値 = {"k": [x.relu(), "한"][0], "ä": y @ ñ}; return 値["ä"].sum()
    return helper(
        x.exp(), "日本", y.tan(),
    )
"""


def wide_nodes() -> Iterator[tuple[ast.expr, str]]:
    """Single-line expressions with their texts."""
    for node in ast.walk(ast.parse(WIDE)):
        if isinstance(node, ast.Call | ast.BinOp | ast.Subscript | ast.Attribute):
            if node.end_lineno == node.lineno:
                yield node, ast.get_source_segment(WIDE, node) or ""


def test_columns_count_characters_of_a_line_with_others_than_ascii(tmp_path: Path) -> None:
    """Python counts bytes in code, and display width in a traceback."""
    path = str(tmp_path / "wide.py")
    Path(path).write_text(WIDE, encoding="utf-8")
    marked = 0
    for node, text in wide_nodes():
        place = {"end_lineno": node.end_lineno, "colno": node.col_offset, "end_colno": node.end_col_offset}
        summary = traceback.FrameSummary(path, node.lineno, "f", **place)
        line = linecache.getline(path, node.lineno)
        own = frame_of(summary)
        assert line[own.column : own.end_column] == text
        trace = "".join(traceback.StackSummary.from_list([summary]).format())
        for frame in frames(trace) + frames(with_whole_value(trace, summary)):
            if frame.column is not None:
                marked += 1
                assert (frame.call, line[frame.column : frame.end_column]) == (text, text)
    assert marked > 30
