"""Nearest cache entry of a call: the subject of a guard, and the reason why an entry does not accept a size."""

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
"""torch's check of a tensor, in words."""


def is_zero_one_specialized(failed: FailedGuard) -> bool:
    """Return True if a size is 0 or 1 now, and as far as the program is concerned the entry takes any other size."""
    return (
        failed.new in ("0", "1")
        and failed.line is None
        and failed.old.startswith(("2 to ", "at least 2"))
        and not is_computed(failed.source)
    )


def is_computed(source: str) -> bool:
    """Return True if a guard is about what is computed from sizes or numbers, such as ``x.size(0) % 2``."""
    return any(
        isinstance(parse_expression(part), (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare))
        for part in source.split(", ")
    )


_OF_VALUE = re.compile(r"^(?:type|len)\((.*)\)$")


def guarded_value(source: str) -> str:
    """``k`` of ``len(k)``, and ``x`` of ``type(x)``; any other as it is."""
    return _OF_VALUE.sub(r"\1", source)


_MEASURES = ("size", "stride", "dim")
_OF_TENSORS = ("dtype", "device", "requires_grad")


def guarded_values(source: str) -> Iterator[str]:
    """The values that a guard is about: ``x`` of ``x.size(0)``, ``k`` of ``len(k)``."""
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
    """Symbols with what the guards of their form ask of each; ``conditions`` are all that it asks of symbols.

    Torch asks it of one of the values that are one symbol, and of the others that they are as large.
    """
    each = (plain for condition in conditions for plain in _each(condition))
    plain_conditions = [(plain, _parts(plain)) for plain in dict.fromkeys(each)]
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
    """The symbols of a compilation with what its guards ask of each; as they are where those of sizes are not known."""
    shapes = [guard for guard in compilation.guards if guard.kind == _SHAPES]
    if not shapes:
        return compilation.dynamic
    return with_constraints(compilation.dynamic, (guard.text for guard in shapes if guard.text != _SHAPES))


_SHAPES = "SHAPE_ENV"
"""The kind of the guard that asks of sizes; its text as well where it asks nothing."""


def _each(condition: str) -> list[str]:
    """The comparisons that a condition joins, without torch's comments: the two ends of a range are told in one.

    Torch 2.11 also asks that a number of the program is its own value, which says nothing.
    """
    text = plain_source(plain_numbers(with_place(condition)[0]))
    tree = parse_expression(text)
    if tree is None:
        return [text]
    both = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    return [ast.unparse(part) for part in both if not _says_nothing(part)]


def _says_nothing(condition: ast.expr) -> bool:
    """Return True for a value that equals itself."""
    return (
        isinstance(condition, ast.Compare)
        and isinstance(condition.ops[0], ast.Eq)
        and len(condition.ops) == 1
        and ast.unparse(condition.left) == ast.unparse(condition.comparators[0])
    )


def _parts(condition: str) -> set[str]:
    """The expressions that stand in a condition."""
    tree = parse_expression(condition)
    nodes = () if tree is None else ast.walk(tree)
    return {ast.unparse(node) for node in nodes if isinstance(node, ast.expr)}
