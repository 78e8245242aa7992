"""Which of a code's forms a call came nearest to: what a guard is about, and what keeps a form from a size."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from .messages import parsed
from .program import FailedGuard

CHECK = re.compile(
    r"check_tensor\(.*, (?P<dtype>torch\.\w+), device=.*?, requires_grad=(?P<requires_grad>\w+), "
    r"size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])\)",
    re.DOTALL,
)
"""What torch asks of a tensor, in words."""


def of_zero_or_one(failed: FailedGuard) -> bool:
    """Whether a size is 0 or 1 now, and a form is for each other one as far as the program is concerned."""
    return failed.new in ("0", "1") and failed.line is None and failed.old.startswith(("2 to ", "at least 2"))


_OF_VALUE = re.compile(r"^(?:type|len)\((.*)\)$")


def value_of(source: str) -> str:
    """``k`` of ``len(k)``, and ``x`` of ``type(x)``; any other as it is."""
    return _OF_VALUE.sub(r"\1", source)


_MEASURES = ("size", "stride", "dim")
_OF_TENSORS = ("dtype", "device", "requires_grad")


def abouts(source: str) -> Iterator[str]:
    """The values that a guard is about: ``x`` of ``x.size(0)``, ``k`` of ``len(k)``."""
    for part in source.split(", "):
        tree: Any = parsed(part)
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
