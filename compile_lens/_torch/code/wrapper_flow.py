"""Control flow of one call of a wrapper module, with its loops and branches, read from the text.

Bodies of ``while_loop``, ``cond`` and ``invoke_subgraph`` are functions of the module, which ``call`` calls in a loop
or branch. A line that launches one of several kernels is a branch too. Nothing is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ...record.kernel import Flow

CALL = "call"


def flow(
    tree: ast.Module, launches: Sequence[int], one_of: Mapping[int, Sequence[str]] | None = None
) -> tuple[Flow | None, dict[int, str]]:
    """Return the flow of a call, and the body that contains each launching line.

    The flow is None if a call runs every line once. ``launches`` are the launching lines; ``one_of`` has the candidates
    of lines that launch one of several kernels, each of which is a body of its own.
    """
    functions = {f.name: f for f in _functions(tree.body)}
    if CALL not in functions:
        return None, {}
    reader = _Reader(functions, set(launches), one_of or {})
    call_flow = reader.function(CALL)
    once = (
        not call_flow.iterations
        and not call_flow.branches
        and len(set(call_flow.functions)) == len(call_flow.functions)
    )
    return (None, {}) if once else (call_flow, reader.within)


def branch_name(line: int, kernel: str) -> str:
    """Return the name of the body for one of the kernels that a line may launch."""
    return f"line {line}: {kernel}"


def _functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            yield statement
        elif isinstance(statement, ast.ClassDef):
            yield from _functions(statement.body)


class _Reader:
    """Reader that follows calls from ``call`` to the functions of the module."""

    def __init__(
        self, functions: dict[str, ast.FunctionDef], launches: set[int], one_of: Mapping[int, Sequence[str]]
    ) -> None:
        self.within: dict[int, str] = {}
        self._functions = functions
        self._launches = launches
        self._one_of = one_of
        self._inside: list[str] = []

    def function(self, name: str) -> Flow:
        """Return the flow of one run of a function."""
        self._inside.append(name)
        body_flow = self._block(self._functions[name].body, "" if name == CALL else name, always=True)
        self._inside.pop()
        return body_flow

    def _block(self, statements: Sequence[ast.stmt], body: str, always: bool = False) -> Flow:
        """Return the flow of statements that run together. With ``always`` they are a whole function, which is recorded
        even if it does nothing."""
        bodies: list[str] = [body] if always else []
        iterations: list[Flow] = []
        branches: list[tuple[Flow, Flow]] = []
        pending = list(statements)
        while pending:
            statement = pending.pop(0)
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                continue
            if isinstance(statement, (ast.While, ast.For)):
                iterations.append(self._block(statement.body, f"line {statement.lineno}"))
                continue
            if isinstance(statement, ast.If):
                branch_bodies = (statement.body, statement.orelse)
                one, two = (
                    self._block(branch, f"line {branch[0].lineno}" if branch else "")
                    for branch in branch_bodies
                )
                branches.append((one, two))
                continue
            if isinstance(statement, (ast.With, ast.Try)):
                pending = [*statement.body, *(getattr(statement, "finalbody", ())), *pending]
                continue
            choices_by_line: dict[int, Sequence[str]] = {}
            for node in _calls(statement):
                if node.lineno in self._one_of:
                    choices_by_line[node.lineno] = self._one_of[node.lineno]
                elif node.lineno in self._launches:
                    self.within[node.lineno] = body
                    bodies += [] if body in bodies else [body]
                called = _called(node.func)
                if called in self._functions and called not in self._inside:
                    inner = self.function(called)
                    bodies += inner.functions
                    iterations += inner.iterations
                    branches += inner.branches
            branches += [
                pair for line, names in choices_by_line.items() for pair in _choice_flow(line, names).branches
            ]
        iterations = [one for one in iterations if one != _NOTHING]
        branches = [pair for pair in branches if pair != (_NOTHING, _NOTHING)]
        return Flow(tuple(bodies), tuple(iterations), tuple(branches))


def _choice_flow(line: int, kernels: Sequence[str]) -> Flow:
    """Return the flow of a choice of kernels as nested branches: the first kernel, or one of the others."""
    first = Flow((branch_name(line, kernels[0]),))
    return Flow((), (), ((first, _choice_flow(line, kernels[1:])),)) if len(kernels) > 1 else first


_NOTHING = Flow(())
_NO_CALL = frozenset(
    (str, int, float, bool, type(None), ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del)
)
"""Types of syntax values that contain no call, which are most of them."""

SYNTAX = frozenset(
    kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)
)
"""Types of syntax nodes, for a test without a call."""

_MAY_CALL = SYNTAX - _NO_CALL


def _calls(statement: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in a statement in the order of ``ast.walk``, which is several times slower."""
    pending = [statement]
    for node in pending:
        kind = type(node)
        if kind is ast.Call:
            yield cast(ast.Call, node)
        for value in vars(node).values():
            if type(value) is list:
                pending += [v for v in value if type(v) in _MAY_CALL]
            elif type(value) in _MAY_CALL:
                pending.append(value)


def _called(func: ast.expr) -> str:
    """Return the name of the function that an expression calls; partitions are called through a list."""
    if isinstance(func, ast.Name):
        return func.id
    if (
        isinstance(func, ast.Subscript)
        and isinstance(func.value, ast.Attribute)
        and func.value.attr == "partitions"
        and isinstance(func.slice, ast.Constant)
    ):
        return f"partition_{func.slice.value!r}"
    return ""
