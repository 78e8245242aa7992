"""Checks of a command line without torch, whose import takes seconds: the function in the file's syntax tree, the
syntax of expressions, and the names of targets."""

from __future__ import annotations

import argparse
import ast
import importlib.machinery
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ..devices import models
from ..errors import UsageError


def check_syntax(text: str, what: str) -> None:
    """Raise ``UsageError`` if a text is not a Python expression; ``what`` names it in the error."""
    try:
        compile(text.strip(), "<string>", "eval")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{what} {text!r} cannot be evaluated: {type(error).__name__}: {error}") from None


def check_targets(args: argparse.Namespace) -> None:
    """Raise ``UsageError`` if the command line names targets but no known one."""
    target = getattr(args, "target", None)
    errors = []
    targets = target if isinstance(target, list) else [target] if target is not None else []
    for name in targets:
        try:
            models.resolve(name)
        except UsageError as error:
            errors.append(error)
    if errors and len(errors) == len(targets):
        raise errors[0]


def check_function(place: str, name: str, text: str) -> None:
    """Raise ``UsageError`` if a file, or a module's file, certainly does not define the name, or is not valid
    Python."""
    file = Path(place) if place.endswith(".py") else _file_of(place)
    # Submodules that a package imports become its attributes, so that its names are unknown.
    if file is None or not os.path.isfile(file) or file.name == "__init__.py":
        return
    try:
        tree = ast.parse(file.read_bytes())
    except OSError:
        return
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{text}: importing it raised {type(error).__name__}: {error}") from None
    except (RecursionError, MemoryError):
        return
    defined = dict(_defined(tree.body))
    if not name.isidentifier() or name in defined or name == "torch" or "" in defined:
        return
    if any(not _is_there(module, file.parent) for module in _imported(tree.body)):  # the import reports it
        return
    functions = (n for n, callable_ in defined.items() if callable_ and not n.startswith("_"))
    raise UsageError(f"{place} has no {name!r}; what can be called there: {', '.join(functions) or 'none'}")


def _imported(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the packages in the top-level import statements of a module."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.partition(".")[0]


def _is_there(package: str, folder: Path) -> bool:
    """Return True if a package can be found next to the file or on Python's path, without importing it."""
    if package in sys.builtin_module_names or package in sys.stdlib_module_names:
        return True
    find = importlib.machinery.PathFinder.find_spec
    return find(package, [str(folder)]) is not None or find(package) is not None


def _file_of(module: str) -> Path | None:
    """Return the file of a module, found without importing its packages; None if there is none."""
    path: list[str] | None = None
    spec = None
    for part in module.split("."):
        spec = importlib.machinery.PathFinder.find_spec(part, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


_DYNAMIC = ("globals", "exec", "setattr", "vars", "locals")
"""Functions by which a module can define names that are not in its text."""


def _defined(body: list[ast.stmt]) -> Iterator[tuple[str, bool]]:
    """Yield the names that a module may define, each with True for a function or class; ``""`` stands for unknown
    names."""
    for statement in body:
        for node in _parts(statement):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield ("" if node.name == "__getattr__" else node.name), True
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    yield ("" if alias.name == "*" else alias.asname or alias.name.partition(".")[0]), False
            elif isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Store):
                    yield node.id, False
                elif node.id in _DYNAMIC:
                    yield "", False
            elif isinstance(node, ast.Attribute) and node.attr in ("modules", "__dict__"):
                yield "", False
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                yield node.name, False
            elif isinstance(node, ast.Global):
                yield from ((name, False) for name in node.names)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and its descendants; within functions only those that may define global names."""
    yield node
    for inner in ast.iter_child_nodes(node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from (
                one
                for one in _parts(inner)
                if isinstance(one, (ast.Global, ast.Attribute))
                or (isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
            )
        else:
            yield from _parts(inner)
