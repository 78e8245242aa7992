"""Columns in non-ASCII lines: a page's script counts UTF-16 units, a terminal cells, Python's syntax bytes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens.record.capture import Failure
from compile_lens.record.graph import Frame, Source
from compile_lens.results.capture import Capture
from compile_lens.views.live.index import coloured
from compile_lens.views.live.items import Items
from compile_lens.views.words.characters import clean
from compile_lens.views.words.failed_line import failed_at

LINES = {
    "umlauts": "größe.sin() + x.cos()",
    "wide": 'größe.tanh() * (x.exp(), "日本語")[0]',
    "beyond 16 bits": '(größe.relu(), "😀")[0].floor() + x.exp2()',
    "hidden": '("\u200b\u202e\u2028", größe.sigmoid())[1] * x.tan()',
    "a form feed": '(größe.sqrt(), "\x0c\x1c")[0] - x.log()',
}

with_columns = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="stack traces of Python 3.10 have no columns"
)


def captured(folder: Path, line: str) -> Capture:
    text = f"def f(größe, x):\n    return {line}\n"
    file = folder / "wide.py"
    file.write_text(text, encoding="utf-8")
    scope: dict[str, Callable[..., Any]] = {}
    exec(compile(text, str(file), "exec"), scope)
    return compile_lens.capture(scope["f"], torch.rand(4), torch.rand(4))


@pytest.mark.torch
@with_columns
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_page_marks_the_calls_of_such_a_line(tmp_path: Path, line: str) -> None:
    capture = captured(tmp_path, line)
    data: Any = coloured(capture, Items(capture))
    shown = clean(f"    return {line}").encode("utf-16-le")
    marked = {shown[2 * unit["column"] : 2 * unit["end"]].decode("utf-16-le") for unit in data["units"]}
    nodes = [node for node in ast.walk(ast.parse(line)) if isinstance(node, (ast.Call, ast.BinOp))]
    calls = {clean(ast.get_source_segment(line, node) or "") for node in nodes}
    # Python 3.13 truncates such a line in its stack traces: no range of it is known.
    cut = sys.version_info >= (3, 13) and len(line.splitlines()) > 1
    assert marked == ({""} if cut else calls)


def test_only_a_newline_ends_a_line() -> None:
    source = Source("m.py", 7, "f", 'def f(x):\n    y = "\x0c\u2028"\n    return x\n')
    assert source.lines == ["def f(x):", '    y = "\x0c\u2028"', "    return x"]
    assert source.numbers == range(7, 10)


@pytest.mark.parametrize(
    ("text", "call", "carets"),
    [
        ("y = größe.sin() + 1", "größe.sin()", "    ^^^^^^^^^^^"),
        ("结果 = x.sin() + 1", "x.sin()", "       ^^^^^^^"),
        ("y = 结果.sin() + 1", "结果.sin()", "    ^^^^^^^^^^"),
        ("e\u0301 = x.sin() + 1", "x.sin()", "    ^^^^^^^"),
        ('y = "\u200b" + x.sin()', "x.sin()", ""),
    ],
)
def test_carets_stand_below_the_cells_of_a_call(text: str, call: str, carets: str) -> None:
    failure = Failure("run", "ValueError", "no", frames=(Frame("m.py", 1, "f", text, 4, 9, call=call),))
    _, first, *below = failed_at(failure)
    assert first == f"  {text}" and below == ([f"  {carets}"] if carets else [])
