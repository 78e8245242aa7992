"""Branches on a number read from a tensor: ``n = x.sum().item()``, then ``if n > 3:`` or ``numbers[n]`` of a list.

With ``capture_scalar_outputs`` the number is part of the graph, which breaks where Python needs its value. The branch
is found in the program's text; the number is followed through plain arithmetic only.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Sequence

from ...record import syntax
from ...record.graph import Frame
from ..ground import source_text
from ..ground.source_places import column

_READ_METHODS = ("item", "tolist")
_NUMBER_FUNCTIONS = ("abs", "bool", "divmod", "float", "int", "max", "min", "pow", "round", "sum")
"""Builtins that return a number if their arguments are numbers."""

_MAX_DEPTH = 3
"""Maximal depth of the program's calls into which a number is followed."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def of_frames(frames: Sequence[Frame], callers: Iterable[Frame] = ()) -> Frame | None:
    """Return the first place that branches on the number which the last frame reads, or that indexes a list with it
    (the frame's ``call``); None if none is known.

    Args:
        callers: the callers of the first frame, innermost first.
    """
    for at, frame in enumerate((*reversed(frames), *callers)):
        program = _program(source_text.text(frame.file, frame.line))
        function = None if program is None else program.function_at(frame.line)
        if program is None or function is None:
            return None
        part = _call_at(function, frame, reads=not at)
        if part is None:
            return None
        followed = _Followed(program, function, part)
        if followed.branch is not None:
            node = followed.branch
            text = source_text.line(frame.file, node.lineno).strip()
            return Frame(frame.file, node.lineno, function.name, text, call=followed.element)
        if not followed.returned:
            return None
    return None


class _Program:
    """The functions of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
        inits = [node for node in self.functions if node.name == "__init__"]
        self.lists = {name for part in (tree, *inits) for name in _list_names(part)}
        self._classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]

    def function_at(self, line: int) -> _Function | None:
        """Return the innermost function that contains a line."""
        around = [f for f in self.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
        return max(around, key=lambda f: f.lineno, default=None)

    def called(self, call: ast.Call, within: _Function) -> _Function | None:
        """Return the function of this file with the name that a call uses; None if there is no such function or
        several."""
        match call.func:
            case ast.Name(id=name):
                methods = {id(f) for c in self._classes for f in c.body}
                same = [f for f in self.functions if f.name == name and id(f) not in methods]
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                own = [c for c in self._classes if any(f is within for f in c.body)]
                same = [f for c in own for f in c.body if isinstance(f, _FUNCTIONS) and f.name == name]
            case _:
                return None
        return same[0] if len(same) == 1 else None


@functools.lru_cache(maxsize=8)
def _program(text: str) -> _Program | None:
    try:
        return _Program(syntax.parse(text))
    except (SyntaxError, ValueError):
        return None


def _call_at(function: _Function, frame: Frame, reads: bool) -> ast.expr | None:
    """Return the call at a frame's place: one that reads a number, or that of a function which returns it; None if not
    found."""
    parts = [n for n in _own_nodes(function) if isinstance(n, ast.expr) and n.lineno <= frame.line]
    parts = [n for n in parts if (n.end_lineno or n.lineno) >= frame.line and _is_call(n, reads)]
    if frame.column is not None:  # the columns of a call over several lines are relative to its first line
        exact = [n for n in parts if n.lineno == frame.line and _columns(n, frame)[0] == frame.column]
        exact = [n for n in exact if frame.end_column in (None, _columns(n, frame)[1])] or exact
        parts = exact or parts
    return parts[0] if parts else None


def _columns(node: ast.expr, frame: Frame) -> tuple[int | None, int | None]:
    """Return the columns of a node that begins on the line of a frame."""
    end = node.end_lineno or node.lineno
    return column(frame.file, node.lineno, node.col_offset), column(frame.file, end, node.end_col_offset)


def _is_call(node: ast.expr, reads: bool) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    named = isinstance(function, ast.Name) and function.id in ("bool", "float", "int")
    return not reads or named or (isinstance(function, ast.Attribute) and function.attr in _READ_METHODS)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function in the order of the text, without those of nested functions."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
            yield from _own_nodes(child)


@dataclasses.dataclass
class _Followed:
    """The uses of a number in a function.

    Attributes:
        branch: the first branch on it, or subscript of a list by it.
        element: text of that subscript; ``""`` for a branch.
        returned: True if the function returns it.
    """

    program: _Program
    function: _Function
    start: ast.expr | None = None
    names: set[str] = dataclasses.field(default_factory=set)
    depth: int = 0
    branch: ast.expr | None = dataclasses.field(default=None, init=False)
    element: str = dataclasses.field(default="", init=False)
    returned: bool = dataclasses.field(default=False, init=False)

    def __post_init__(self) -> None:
        self._numbers = _number_names(self.function)
        own = {
            n.id
            for n in _own_nodes(self.function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        own |= {n.arg for n in _own_nodes(self.function) if isinstance(n, ast.arg)}
        self._lists = {*_list_names(self.function)} | (self.program.lists - own)
        self._reached_start = self.start is None
        self._checked = False
        self._block(self.function.body)
        if self._checked:  # torch._check may decide the branch for torch
            self.branch = None

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.branch is not None:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            return
        tests: list[ast.expr] = []
        match node:
            case ast.If(test=test) | ast.While(test=test):
                tests = [test]
            case ast.Match(subject=subject):
                tests = [subject]
            case ast.For(iter=iterated):
                tests = [iterated]
        own = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        for expression in own:
            self._expressions(expression)
        for test in tests:
            ranged = (
                isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "range"
            )
            parts = test.args if isinstance(test, ast.Call) and ranged else [test]
            counts = ranged or not isinstance(node, ast.For)
            if counts and any(self._is_number(part, branch=True) for part in parts):
                self.branch = self.branch or test
        self._assign(node)
        repeated = 2 if isinstance(node, (ast.For, ast.While)) else 1
        for _ in range(repeated):
            for _, value in ast.iter_fields(node):
                if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    self._block(value)
                elif isinstance(value, list):
                    for part in value:
                        if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                            self._block(part.body)
            if repeated == 2 and isinstance(node, ast.While) and self._is_number(node.test, branch=True):
                self.branch = self.branch or node.test

    def _assign(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self._bind(targets, value)
            case ast.For(target=target, iter=value):
                self._bind([target], value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind([target], value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                kept = (name in self.names or self._is_number(value)) and self._is_plain(value)
                if name in self.names and not kept:
                    self.names.discard(name)
                elif kept and name in self._numbers:
                    self.names.add(name)
            case ast.Return(value=ast.expr() as value):
                self.returned |= self._is_number(value) or (
                    isinstance(value, ast.Tuple) and any(map(self._is_number, value.elts))
                )

    def _bind(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value] * len(target.elts)
                for one, part in zip(target.elts, parts, strict=False):
                    self._bind([one], part)
            elif isinstance(target, ast.Name):
                (self.names.add if self._is_number(value) else self.names.discard)(target.id)

    def _expressions(self, expression: ast.expr) -> None:
        """Find the read of the number, and branches on it, in an expression."""
        for node in (expression, *_own_nodes(expression)):
            if node is self.start:
                self._reached_start = True
        for node in (expression, *_own_nodes(expression)):
            match node:
                case ast.NamedExpr(target=ast.Name() as target, value=value):
                    self._bind([target], value)
        for node in (expression, *_own_nodes(expression)):
            match node:
                case ast.IfExp(test=test):
                    tests = [test]
                case ast.BoolOp(values=[*tests, _]):
                    pass
                case ast.comprehension(ifs=tests):
                    pass
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    tests = [operand]
                case ast.Subscript(value=value, slice=index) if self._is_list(value):
                    if self._is_number(index) and self.branch is None:
                        self.branch, self.element = node, ast.unparse(node)
                    continue
                case ast.Call(func=ast.Attribute(attr=attr)) if attr.startswith("_check"):
                    tests = []
                    self._checked |= any(map(self._has_number, node.args))
                case ast.Call():
                    tests = []
                    self._call(node)
                case _:
                    continue
            for test in tests:
                if self._is_number(test, branch=True):
                    self.branch = self.branch or test

    def _call(self, call: ast.Call) -> bool:
        """Follow the number into a function of the program; return True if the function returns it."""
        function = self.program.called(call, self.function) if self.depth < _MAX_DEPTH else None
        if function is None:
            return False
        parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        parameters = parameters[isinstance(call.func, ast.Attribute) :]
        parameters_with_number = {
            p for p, value in zip(parameters, call.args, strict=False) if self._is_number(value)
        }
        parameters_with_number |= {k.arg for k in call.keywords if k.arg and self._is_number(k.value)}
        if not parameters_with_number:
            return False
        inner = _Followed(self.program, function, None, parameters_with_number, self.depth + 1)
        if self.branch is None:
            self.branch, self.element = inner.branch, inner.element
        return inner.returned

    def _has_number(self, node: ast.expr) -> bool:
        return any(isinstance(n, ast.expr) and self._is_number(n) for n in (node, *_own_nodes(node)))

    def _is_number(self, node: ast.expr, branch: bool = False) -> bool:
        """Return True for an expression computed from the number; with ``branch``, for a condition that needs its
        value."""
        if node is self.start:
            return True
        if not self._reached_start:
            return False
        match node:
            case ast.Name(id=name):
                return name in self.names
            case ast.NamedExpr(value=value) | ast.UnaryOp(operand=value) | ast.Subscript(value=value):
                return self._is_number(value, branch)
            case ast.BinOp(left=left, right=right):
                return self._is_made_of((left, right))
            case ast.Compare(left=left, ops=ops, comparators=others):
                if any(isinstance(op, (ast.Is, ast.IsNot)) for op in ops):
                    return False
                if branch:
                    return any(self._is_number(part) for part in (left, *others))
                return self._is_made_of((left, *others))
            case ast.BoolOp(values=values):
                return any(self._is_number(value, branch) for value in values)
            case ast.IfExp(body=body, orelse=other):
                return self._is_number(body) or self._is_number(other)
            case ast.Call(func=ast.Name(id=name), args=args) if name in _NUMBER_FUNCTIONS:
                return bool(args) and self._is_made_of(args)
            case ast.Call():
                return self._call(node)
        return False

    def _is_list(self, node: ast.expr) -> bool:
        """Return True for an expression that is certainly a Python list or tuple."""
        return (
            _makes_list(node)
            or (isinstance(node, ast.Attribute) and node.attr == "shape")
            or ast.unparse(node) in self._lists
        )

    def _is_made_of(self, parts: Sequence[ast.expr]) -> bool:
        return any(map(self._is_number, parts)) and all(map(self._is_plain, parts))

    def _is_plain(self, node: ast.expr) -> bool:
        """Return True for an expression that is certainly no tensor."""
        if self._is_number(node):
            return True
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return name in self._numbers
            case ast.UnaryOp(operand=value):
                return self._is_plain(value)
            case ast.BinOp(left=left, right=right):
                return self._is_plain(left) and self._is_plain(right)
            case ast.Call(func=ast.Name(id=name), args=args):
                return name == "len" or (name in _NUMBER_FUNCTIONS and all(map(self._is_plain, args)))
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in ("numel", "size", "dim", *_READ_METHODS)
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return True
        return False


def _list_names(within: ast.AST) -> Iterator[str]:
    """Yield names (or ``self.name``) to which a list or tuple is assigned, and arguments annotated as one."""
    for node in _own_nodes(within):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                if _makes_list(value):
                    yield ast.unparse(target)
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                if re.match(r"(typing\.)?(list|List|tuple|Tuple|Sequence)\b", ast.unparse(annotation)):
                    yield name


def _makes_list(node: ast.expr) -> bool:
    match node:
        case ast.List() | ast.Tuple() | ast.ListComp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in ("list", "sorted", "tuple")
    return False


def _number_names(function: _Function) -> set[str]:
    """Return the names in a function that are numbers by annotation, by default value, or by every assignment."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = dict(zip([a.arg for a in reversed(positional)], reversed(arguments.defaults), strict=False))
    defaults |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d}
    names = {
        a.arg
        for a in (*positional, *arguments.kwonlyargs)
        if (isinstance(a.annotation, ast.Name) and a.annotation.id in ("bool", "float", "int"))
        or (isinstance(d := defaults.get(a.arg), ast.Constant) and isinstance(d.value, (bool, float, int)))
    }
    assigned: dict[str, bool] = {}
    for node in _own_nodes(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                plain = isinstance(value, ast.Constant) or (
                    isinstance(value, ast.Call) and _is_call(value, True)
                )
                assigned[name] = assigned.get(name, True) and plain
    return names | {name for name, plain in assigned.items() if plain}
