"""Which values a symbol stands for, by the guards of the form that it is in."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable

from .compilation import Compilation, DynamicDim
from .messages import parsed, plain_source, with_place


def with_asked(dims: tuple[DynamicDim, ...], conditions: Iterable[str]) -> tuple[DynamicDim, ...]:
    """Symbols with what the guards of their form ask of each; ``conditions`` are all that it asks of symbols.

    Torch asks it of one of the values that are one symbol, and of the others that they are as large.
    """
    each = (plain for condition in conditions for plain in _each(condition))
    asked = [(plain, _parts(plain)) for plain in dict.fromkeys(each)]
    same: dict[str, set[str]] = {}
    for one in dims:
        same.setdefault(one.symbol, set()).add(plain_source(one.source))
    return tuple(
        dataclasses.replace(one, constraints=tuple(text for text, parts in asked if parts & same[one.symbol]))
        for one in dims
    )


def of_form(compilation: Compilation) -> tuple[DynamicDim, ...]:
    """The symbols of a compilation with what its guards ask of each; as they are where those of sizes are not known."""
    shapes = [guard for guard in compilation.guards if guard.kind == _SHAPES]
    if not shapes:
        return compilation.dynamic
    return with_asked(compilation.dynamic, (guard.text for guard in shapes if guard.text != _SHAPES))


_SHAPES = "SHAPE_ENV"
"""The kind of the guard that asks of sizes; its text as well where it asks nothing."""


def _each(condition: str) -> list[str]:
    """The comparisons that a condition joins, without torch's comments: the two ends of a range are told in one."""
    text = plain_source(with_place(condition)[0])
    tree = parsed(text)
    if tree is None:
        return [text]
    both = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    return [ast.unparse(part) for part in both]


def _parts(condition: str) -> set[str]:
    """The expressions that stand in a condition."""
    tree = parsed(condition)
    nodes = () if tree is None else ast.walk(tree)
    return {ast.unparse(node) for node in nodes if isinstance(node, ast.expr)}
