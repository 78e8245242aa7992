"""The part of a submitted notebook that defines one exercise's function. Experiments of the lesson are not run."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import LensError
from ..wording import tell


class Unreadable(LensError):
    """The text is not a notebook."""


@dataclass(frozen=True)
class Statement:
    """One top-level statement of a notebook, and the number of its cell, counted from 1."""

    cell: int
    node: ast.stmt


@dataclass(frozen=True)
class Submission:
    """Statements of a notebook, in order, and what is wrong with each cell that is not Python."""

    statements: tuple[Statement, ...]
    broken: dict[int, tuple[str, str]]

    def checks(self, key: str) -> bool:
        """Return True if a cell gives a function to ``course.check(key, ...)``."""
        return self._last_check(key) is not None

    def damage(self, key: str) -> str:
        """Return what is wrong with the cell that should check an exercise; ``""`` if no cell names it."""
        for cell, (source, error) in self.broken.items():
            if f'check("{key}"' in source or f"check('{key}'" in source or f"check({key}," in source:
                return tell("not Python", cell=cell, error=error)
        return ""

    def function(self, key: str) -> tuple[list[Statement], ast.expr]:
        """Return the statements that the function of an exercise needs, and the expression that gives it."""
        at, given = self._last_check(key) or (0, ast.Constant(None))
        before = self.statements[:at]
        imported = {name for one in before for name in _imports(one.node)}
        bound = [_bound(one.node, imported) for one in before]
        needed, chosen = _loads(given), set[int]()
        while True:
            more = {n for n, names in enumerate(bound) if n not in chosen and names & (needed | {"*"})}
            if not more:
                return [before[n] for n in sorted(chosen)], given
            chosen |= more
            needed |= {name for n in more for name in _loads(before[n].node)}

    def _last_check(self, key: str) -> tuple[int, ast.expr] | None:
        calls = ((at, given) for at, one in enumerate(self.statements) for given in _checked(one.node, key))
        return max(calls, key=lambda call: call[0], default=None)


def read(text: str) -> Submission:
    """Return the statements of a notebook. Raises ``Unreadable`` for a text that is none."""
    try:
        book = json.loads(text)
        sources = [_source(cell) for cell in book["cells"] if cell["cell_type"] == "code"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(tell("no notebook", error=f"{type(error).__name__}: {error}")) from None
    statements, broken = [], {}
    for number, source in enumerate(sources, 1):
        try:
            nodes = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            broken[number] = source, f"{type(error).__name__}: {error}"
        else:
            statements += [Statement(number, node) for node in nodes]
    return Submission(tuple(statements), broken)


def _source(cell: dict[str, Any]) -> str:
    """Return a cell's Python, without lines that only IPython understands."""
    lines = "".join(cell["source"]).split("\n")
    if lines[0].startswith("%%"):
        return ""
    return "\n".join("" if line.startswith(("%", "!", "?")) else line for line in lines)


def _checked(node: ast.stmt, key: str) -> Iterator[ast.expr]:
    """The expressions that a statement gives to ``check`` for an exercise."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Constant):
            continue
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "made")]
        if name == "check" and str(call.args[0].value) == key and given:
            yield given[0]


def _imports(node: ast.stmt) -> set[str]:
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return set()
    return {alias.asname or alias.name.partition(".")[0] for alias in node.names}


def _loads(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _bound(node: ast.stmt, imported: set[str]) -> set[str]:
    """Return the names that a statement gives a value, and those whose objects it changes.

    A statement that changes an imported module (``course.check = ...``) defines no function.
    """
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return _imports(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    names, changed = set(), set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            names.add(one.id)
        elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(one.name)
        elif isinstance(one, (ast.Import, ast.ImportFrom)):
            names |= _imports(one)
        elif isinstance(one, (ast.Attribute, ast.Subscript)) and not isinstance(one.ctx, ast.Load):
            changed.add(_root(one))
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            if isinstance(one.value.func, ast.Attribute):
                changed.add(_root(one.value.func))
    return names | (changed - imported - {""})


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
