"""Values and conditions of guards: the guarded value, and why a cache entry does not accept a size."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .compilation import Compilation, DynamicDim
from .messages import parse_expression, plain_numbers, plain_source, with_place
from .program import FailedGuard

TENSOR_CHECK = re.compile(
    r"check_tensor\(.*, (?P<dtype>torch\.\w+), device=.*?, requires_grad=(?P<requires_grad>\w+), "
    r"size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])\)",
    re.DOTALL,
)
"""Torch's text of a tensor check."""

DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
"""Python names of dtypes by their C++ names."""


def is_zero_one_specialized(failed: FailedGuard) -> bool:
    """Return True if a size is 0 or 1 now, and the entry accepts other sizes because of 0/1 specialization alone."""
    return (
        failed.new in ("0", "1")
        and failed.line is None
        and failed.old.startswith(("2 to ", "at least 2"))
        and not is_computed(failed.source)
    )


def is_computed(source: str) -> bool:
    """Return True if a guard checks an expression of sizes or numbers, such as ``x.size(0) % 2``."""
    return any(
        isinstance(parse_expression(part), (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare))
        for part in source.split(", ")
    )


_OF_VALUE = re.compile(r"^(?:type|len)\((.*)\)$")


def guarded_value(source: str) -> str:
    """Return ``k`` for ``len(k)`` and ``x`` for ``type(x)``; any other source unchanged."""
    return _OF_VALUE.sub(r"\1", source)


_MEASURES = ("size", "stride", "dim")
_OF_TENSORS = ("dtype", "device", "requires_grad")


def guarded_values(source: str) -> Iterator[str]:
    """Yield the values that a guard checks: ``x`` for ``x.size(0)``, ``k`` for ``len(k)``."""
    for part in source.split(", "):
        tree: Any = parse_expression(part)
        while True:
            if (
                isinstance(tree, ast.Call)
                and isinstance(tree.func, ast.Attribute)
                and tree.func.attr in _MEASURES
            ):
                tree = tree.func.value
            elif isinstance(tree, ast.Call):
                tree = next(iter(tree.args), None)
            elif isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Call):
                tree = tree.value
            elif isinstance(tree, ast.Attribute) and tree.attr in _OF_TENSORS:
                tree = tree.value
            else:
                break
        if tree is not None:
            yield ast.unparse(tree)


def with_constraints(dims: tuple[DynamicDim, ...], conditions: Iterable[str]) -> tuple[DynamicDim, ...]:
    """Return symbols with the conditions of their variant's guards on each; ``conditions`` are all those on symbols.

    If several values share a symbol, torch checks one of them, and that the others are equal.
    """
    each = (plain for condition in conditions for plain in _conjuncts(condition))
    plain_conditions = [(plain, _subexpressions(plain)) for plain in dict.fromkeys(each)]
    same: dict[str, set[str]] = {}
    for one in dims:
        same.setdefault(one.symbol, set()).add(plain_source(one.source))
    return tuple(
        dataclasses.replace(
            one, constraints=tuple(text for text, parts in plain_conditions if parts & same[one.symbol])
        )
        for one in dims
    )


def constrained_dims(compilation: Compilation) -> tuple[DynamicDim, ...]:
    """Return the symbols of a compilation with its guards' conditions on each; unchanged without guards on sizes."""
    shapes = [guard for guard in compilation.guards if guard.kind == _SHAPES]
    if not shapes:
        return compilation.dynamic
    return with_constraints(compilation.dynamic, (guard.text for guard in shapes if guard.text != _SHAPES))


_SHAPES = "SHAPE_ENV"
"""Kind of the guard on sizes; also its text if it has no condition."""


def _conjuncts(condition: str) -> list[str]:
    """Return the comparisons of a condition, without torch's comments: torch joins both ends of a range.

    Torch 2.11 also checks that a number of the program equals itself, which is left out.
    """
    text = plain_source(plain_numbers(with_place(condition)[0]))
    tree = parse_expression(text)
    if tree is None:
        return [text]
    both = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    return [ast.unparse(part) for part in both if not _is_tautology(part)]


def _is_tautology(condition: ast.expr) -> bool:
    """Return True for a check that a value equals itself."""
    return (
        isinstance(condition, ast.Compare)
        and isinstance(condition.ops[0], ast.Eq)
        and len(condition.ops) == 1
        and ast.unparse(condition.left) == ast.unparse(condition.comparators[0])
    )


def _subexpressions(condition: str) -> set[str]:
    """Return the expressions in a condition."""
    tree = parse_expression(condition)
    nodes = () if tree is None else ast.walk(tree)
    return {ast.unparse(node) for node in nodes if isinstance(node, ast.expr)}
