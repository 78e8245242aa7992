"""Parsing of Python text that works around a race in CPython."""

from __future__ import annotations

import ast
import time
from typing import Any, Literal, overload

ATTEMPTS = 20
PAUSE = 0.001
"""Seconds before the second attempt; each pause is that much longer, so that threads get out of step."""


@overload
def parse(text: str, mode: Literal["exec"] = ...) -> ast.Module: ...
@overload
def parse(text: str, mode: Literal["eval"]) -> ast.Expression: ...
def parse(text: str, mode: str = "exec") -> Any:
    """Return ``ast.parse(text, mode=mode)``.

    CPython 3.11 shares its recursion counter between threads, and raises ``SystemError`` if another thread or a
    finalizer parses at the same time (python/cpython#106905). The text is not at fault, so it is parsed again.
    """
    for attempt in range(1, ATTEMPTS):
        try:
            return ast.parse(text, mode=mode)
        except SystemError:
            time.sleep(PAUSE * attempt)
    return ast.parse(text, mode=mode)


def literal(text: str) -> Any:
    """Return ``ast.literal_eval(text)``, parsed as ``parse`` does."""
    return ast.literal_eval(parse(text.lstrip(" \t"), mode="eval"))
