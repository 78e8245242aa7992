"""The text of a function is shown only if the file can contain the code that was compiled."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import os
import sys
import types
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens._torch.ground import source_text

BODY = """import torch

def scaled(x):
    return x * 2

class Layer:
    def __init__(self):
        self.__size = 3

    def forward(self, x):
        def inner(y):
            return [v + self.__size for v in y if v is not None]
        return super().__repr__(), (lambda z: z - 1)(inner(x))

def checked(x):
    assert x is not None, "no tensor"
    y = x.sin()
    y = y + 1
    return y

async def awaited(x):
    return await x
"""

EDITS = {
    "a number": ("x * 2", "x * 3"),
    "an operator": ("x * 2", "x + 2"),
    "a name": ("x.sin", "x.cos"),
    "a line less": ("    y = y + 1\n", ""),
    "a comment": ("    y = y + 1\n", "    # y = y + 1\n"),
    "a line before": ("def checked", "# new\ndef checked"),
    "an assertion": ('x is not None, "no tensor"\n    y', 'x is not None, "no tensor"\n    z = y'),
    "an inner function": ("z - 1", "z - 2"),
    "the last line": ("return await x", "return await x()"),
}


def functions(text: str, file: str) -> dict[str, types.CodeType]:
    """Code objects of a text by name, compiled as by an import."""
    codes: dict[str, types.CodeType] = {}
    todo = [compile(text, file, "exec", dont_inherit=True)]
    while todo:
        code = todo.pop()
        codes[code.co_name] = code
        todo += [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return codes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(BODY)
    return path


def rewritten(path: Path, text: str) -> None:
    """Change a file in a way that Python always notices."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))
    linecache.checkcache(str(path))


def test_what_was_compiled_from_the_file_has_its_text(file: Path) -> None:
    codes = functions(BODY, str(file))
    assert all(map(source_text.check, codes.values()))
    assert source_text.line(str(file), 4) == "    return x * 2\n"
    assert source_text.text(str(file), 4) == BODY


@pytest.mark.parametrize("edit", EDITS)
def test_a_function_whose_text_changed_has_none(file: Path, edit: str) -> None:
    """The oracle is the text: a function keeps its source if its lines are unchanged and in the same place."""
    old, new = EDITS[edit]
    text = BODY.replace(old, new)
    assert text != BODY
    codes = functions(BODY, str(file))
    rewritten(file, text)
    before, after = BODY.splitlines(), text.splitlines()
    for name, (first, last) in {
        "scaled": (3, 4),
        "forward": (10, 13),
        "checked": (15, 19),
        "awaited": (21, 22),
    }.items():
        same = before[first - 1 : last] == after[first - 1 : last]
        assert source_text.check(codes[name]) == same, name
        assert bool(source_text.line(str(file), last)) == (same and last <= len(after)), name


def test_a_file_that_is_put_right_has_its_text_again(file: Path) -> None:
    code = functions(BODY, str(file))["scaled"]
    rewritten(file, BODY.replace("* 2", "* 5"))
    assert not source_text.check(code) and source_text.line(str(file), 4) == ""
    rewritten(file, f"{BODY}\n")
    assert source_text.check(code) and source_text.line(str(file), 4) == "    return x * 2\n"


def test_what_python_read_before_a_reload_is_read_again(file: Path) -> None:
    linecache.getlines(str(file))
    before = file.stat().st_mtime_ns
    text = BODY.replace("* 2", "* 4")
    file.write_text(text)
    os.utime(file, ns=(before + 10**9, before + 10**9))
    assert source_text.check(functions(text, str(file))["scaled"])
    assert source_text.line(str(file), 4) == "    return x * 4\n"


def test_assertions_that_a_test_framework_rewrote_change_no_text() -> None:
    """The function of this file was rewritten by the test framework."""
    code = rewritten_by_the_framework.__code__
    assert "@py_assert1" in "".join(code.co_varnames) or sys.flags.optimize
    assert source_text.check(code)


def rewritten_by_the_framework(x: Any) -> Any:
    y = x + 1
    assert y == x + 1 and y
    return y


def test_a_cell_with_commands_of_its_shell_has_its_text(file: Path) -> None:
    text = f"%matplotlib inline\n!pip list\n{BODY}"
    code = functions(f"\n\n{BODY}", str(file))["scaled"]
    rewritten(file, text)
    assert source_text.check(code)
    rewritten(file, f"{text}this is no Python")
    assert not source_text.check(code)


class Counting(SourceFileLoader):
    """A loader that adds a statement to each function, like the loaders of runtime type checkers."""

    def source_to_code(self, data: Any, path: Any, *, _optimization: int = -1) -> types.CodeType:
        tree = ast.parse(data)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.body[:0] = ast.parse("calls = 1").body
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


@pytest.mark.parametrize("loader", [Counting, SourceFileLoader])
def test_a_loader_that_adds_to_a_text_does_not_make_it_another(
    loader: type[SourceFileLoader], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "counted_model"
    spec = importlib.util.spec_from_file_location(name, file, loader=loader(name, str(file)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    assert ("calls" in module.scaled.__code__.co_varnames) is (loader is Counting)
    assert source_text.check(module.scaled.__code__)
    if loader is SourceFileLoader:
        rewritten(file, BODY.replace("* 2", "* 3"))
        assert not source_text.check(module.scaled.__code__)


@pytest.mark.parametrize("edit", [None, *EDITS])
def test_a_cell_is_compiled_statement_by_statement(edit: str | None, file: Path) -> None:
    """IPython does this: Python then does not know that ``torch`` is a module, and compiles its calls differently."""
    text = BODY.replace("x.sin()", "torch.sin(x)")
    file.write_text(text)
    tree = ast.parse(text)
    scope: dict[str, Any] = {}
    for statement in tree.body:
        exec(compile(ast.Module([statement], []), str(file), "exec", dont_inherit=True), scope)
    old, new = EDITS.get(edit or "", ("", ""))
    rewritten(file, text.replace(old, new))
    codes = [one.__code__ for one in scope.values() if isinstance(one, types.FunctionType)]
    assert all(map(source_text.check, codes)) is (
        text.replace(old, new) == text or edit == "an inner function"
    )


def test_a_warning_of_the_text_is_not_repeated(file: Path, recwarn: pytest.WarningsRecorder) -> None:
    text = 'def f(x):\n    return x is 1, "\\d"\n'
    code = functions(text, str(file))["f"]
    recwarn.clear()
    rewritten(file, text)
    assert source_text.check(code) and not recwarn.list


PROGRAM = """import torch

def doubled(x):
    return x * 2

def same(x):
    return x.cos()

def f(x):
    y = torch.sin(x)
    print("between")
    return same(doubled(y)) + 1
"""
CHANGED = PROGRAM.replace("sin", "tan").replace("x * 2", "x * 9").replace("between", "seldom")
FALSE = ("torch.tan", "x * 9", "seldom")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A program whose file changes after the import."""
    path = tmp_path / "program_that_changes.py"
    path.write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("program_that_changes")
    sys.modules.pop("program_that_changes", None)


def program_text(function: Callable[..., Any]) -> str:
    with compile_lens.watch() as program:
        torch.compile(function, backend="eager")(torch.ones(3))
    return program.text("full")


@pytest.mark.torch
def test_pages_show_no_line_that_was_not_compiled(module: Any) -> None:
    rewritten(Path(module.__file__), CHANGED)
    capture = compile_lens.capture(module.f, torch.ones(3))
    assert [source.name for source in capture.sources] == ["same"]
    frames = {frame for c in capture.compilations for n in c.graphs["dynamo"].nodes for frame in n.frames}
    assert {(f.line, f.text) for f in frames} == {(10, ""), (4, ""), (7, "return x.cos()"), (12, "")}
    assert all(f.column is None and not f.call for f in frames if not f.text)
    assert [(f.line, f.text) for one in capture.breaks for f in one.frames] == [(11, "")]
    shown = capture.text("full"), capture.to_json(), program_text(module.f)
    assert not [words for words in FALSE for one in shown if words in one]
    reason = "some lines of program_that_changes.py are not shown: its text there is not the one"
    assert all(reason in one.replace("\n    ", " ") for one in shown)
    assert capture.lacks("the text of functions").startswith(reason)


@pytest.mark.torch
def test_another_text_under_the_same_name_is_not_shown(module: Any) -> None:
    space: dict[str, Any] = {}
    exec(compile("\n\n\ndef other(x):\n    return x.exp()\n", module.__file__, "exec"), space)
    both = compile_lens.capture(lambda x: space["other"](module.doubled(x)), torch.ones(3))
    assert not [s for s in both.sources if s.name == "other"]
    alone = compile_lens.capture(space["other"], torch.ones(3))
    assert not alone.sources
    assert "has a text that is not the one that was compiled" in " ".join(alone.text("full").split())
    own = compile_lens.capture(module.same, torch.ones(3))
    assert [s.text for s in own.sources] == ["def same(x):\n    return x.cos()\n"] and not own.not_observed
