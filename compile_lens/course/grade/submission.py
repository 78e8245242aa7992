"""Extracts from a notebook the statements that define an exercise's function; the lesson's experiments are not run."""

from __future__ import annotations

import ast
import json
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import LensError
from ..wording import message


class Unreadable(LensError):
    """The text is not a notebook."""


@dataclass(frozen=True)
class Statement:
    """One top-level statement of a notebook and the number of its code cell, counted from 1."""

    cell: int
    node: ast.stmt


@dataclass(frozen=True)
class Submission:
    """Statements of a notebook in order, and source and error of each cell that is not valid Python, by number."""

    statements: tuple[Statement, ...]
    broken: dict[int, tuple[str, str]]

    def checks(self, key: str) -> bool:
        """Return True if a cell passes a function to ``course.check(key, ...)``."""
        return self._last_check(key) is not None

    def damage(self, key: str) -> str:
        """Return the error of the invalid cell that checks an exercise; ``""`` if there is none."""
        for cell, (source, error) in self.broken.items():
            if f'check("{key}"' in source or f"check('{key}'" in source or f"check({key}," in source:
                return message("not Python", cell=cell, error=error)
        return ""

    def function(self, key: str) -> tuple[list[Statement], ast.expr]:
        """Return the statements that an exercise's function needs, and the expression passed to ``check``."""
        at, given = self._last_check(key) or (0, ast.Constant(None))
        before = self.statements[:at]
        imported = {name for one in before for name in _imports(one.node)}
        bound = [_bound(one.node, imported) for one in before]
        fresh = [_fresh(one.node) for one in before]

        def values(name: str, end: int) -> set[int]:
            """Return the indices of the statements before ``end`` that contribute to a name's value there."""
            some = [n for n, names in enumerate(bound[:end]) if names & {name, "*"}]
            start = max((n for n in some if name in fresh[n]), default=0)
            return {n for n in some if n >= start}

        chosen = set[int]()
        more = {n for name in _loads(given) for n in values(name, at)}
        while more:
            chosen |= more
            # A function body sees a name's last value, other statements the value at that point.
            used = [(name, n) for n in more for name in _loads(before[n].node)]
            more = {m for name, n in used for m in values(name, n) | values(name, at)} - chosen
        return [before[n] for n in sorted(chosen)], given

    def _last_check(self, key: str) -> tuple[int, ast.expr] | None:
        calls = ((at, given) for at, one in enumerate(self.statements) for given in _checked(one.node, key))
        return max(calls, key=lambda call: call[0], default=None)


def read(text: str) -> Submission:
    """Return the statements of a notebook. Raises ``Unreadable`` if the text is not a notebook."""
    try:
        book = json.loads(text)
        sources = [_source(cell) for cell in book["cells"] if cell["cell_type"] == "code"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(message("no notebook", error=f"{type(error).__name__}: {error}")) from None
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
    """Return a cell's Python code, with IPython's magic and shell lines blanked."""
    lines = "".join(cell["source"]).split("\n")
    if lines[0].startswith("%%"):
        return ""
    return "\n".join("" if line.startswith(("%", "!", "?")) else line for line in lines)


def _checked(node: ast.stmt, key: str) -> Iterator[ast.expr]:
    """Yield the expressions that a statement passes to ``check`` for an exercise."""
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


def _loads(node: ast.stmt | ast.expr) -> set[str]:
    """Return the notebook's names that a statement reads, without the local variables of functions."""
    pending, names = [(_table(node), True)], set()
    while pending:
        table, outermost = pending.pop()
        names |= {
            one.get_name()
            for one in table.get_symbols()
            if one.is_referenced() and (outermost or one.is_global())
        }
        pending += [(inner, False) for inner in table.get_children()]
    return names


def _table(node: ast.stmt | ast.expr) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(node), "", "exec")


def _bound(node: ast.stmt, imported: set[str]) -> set[str]:
    """Return the names that a statement assigns and those whose objects it may change.

    Imported modules do not count as changed, so ``course.check = ...`` is never run.
    """
    names = _imports(node) | {one.get_name() for one in _table(node).get_symbols() if one.is_assigned()}
    changed = set()
    for one in _outside_functions(node):
        if isinstance(one, (ast.Attribute, ast.Subscript)) and not isinstance(one.ctx, ast.Load):
            changed.add(_root(one))
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            changed.add(_changed_by(one.value.func))
        for decorator in getattr(one, "decorator_list", ()):
            changed.add(_changed_by(decorator))
    return names | (changed - imported - {""})


def _fresh(node: ast.stmt) -> set[str]:
    """Return the names that a statement assigns independently of their earlier values."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name} - _loads(node)
    if isinstance(node, ast.Assign):
        return {one.id for one in node.targets if isinstance(one, ast.Name)} - _loads(node.value)
    return _imports(node)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        for inner in ast.iter_child_nodes(node):
            yield from _outside_functions(inner)


def _changed_by(called: ast.expr) -> str:
    """Return the name whose object may be changed by calling its method, or by using it as a decorator."""
    called = called.func if isinstance(called, ast.Call) else called
    return _root(called) if isinstance(called, ast.Attribute) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
