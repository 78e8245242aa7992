"""Diff of two captures."""

from __future__ import annotations

import os
from typing import Any

from ..errors import UsageError
from ..results.capture import Capture
from ..results.difference import Difference


def diff(a: Any, b: Any) -> Difference:
    """Return what differs between two captures, causes before effects: an edit, an option, a torch, a target.

    Matched by structure (operators, shapes, what reads what), never by name or number: of a program whose variables
    were renamed, or whose lines moved, nothing differs. Compared at every level: settings, graph breaks, Python
    lines, operators, rewrites, lowering, fusion, kernels, counts and bytes, saved tensors, code, guards. It needs no
    torch.

    Args:
        a, b: the first and the second: captures, or the paths of saved ones.

    Returns:
        A ``Difference``: false if nothing differs; ``.summary``, ``.causes``, ``.changes``, ``.at("kernels")``,
        ``.figures``, ``.save("diff.md")``; printed it is a page.

    Raises:
        UsageError: one of the two is neither, or there is no such file.
        RecordError: a file is not a record.

    Example::

        print(compile_lens.diff(compile_lens.capture(f, x), compile_lens.capture(g, x)).summary)
    """
    from ..measures.diff.levels import difference

    return difference(_capture(a, "a"), _capture(b, "b"), Difference)


def _capture(value: Any, name: str) -> Capture:
    if isinstance(value, Capture):
        return value
    if isinstance(value, (str, os.PathLike)):
        from .load import load

        return load(value)
    raise UsageError(
        f"diff needs two captures, or paths of saved ones; {name} is {type(value).__name__}: "
        "diff(compile_lens.capture(f, x), compile_lens.capture(g, x))"
    )
