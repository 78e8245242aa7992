"""The program's marks on sizes (``mark_dynamic``, ``mark_static``) behind a failed guard."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from .program import FailedGuard

UNMARKED = "without a mark on its sizes"

_MARKING = re.compile(r"\b(?:_dynamo_(?:\w+_)?indices|_has_dynamo_dim_marking)\b")
"""Torch's attributes of a tensor with ``mark_dynamic``, ``mark_static`` and the like."""


def is_of_marks(guard: str) -> bool:
    """Return True if torch's guard is on the marks of a tensor."""
    return _MARKING.search(guard) is not None


def with_marks(failed: FailedGuard, old: Mapping[str, str], new: Mapping[str, str]) -> FailedGuard:
    """Return a failed guard with the program's marks on its size, by size: when its variant was compiled, and in the
    call. A guard on marks themselves gets the tensor whose marks differ."""
    if not is_of_marks(failed.text):
        before, after = (marks.get(failed.source, "") for marks in (old, new))
        # Of a limited size, torch names the line where the tensor is first used.
        line = None if is_limited(before) else failed.line
        return dataclasses.replace(failed, old_mark=before, new_mark=after, line=line)
    differing = [size for size in new if new[size] != old.get(size)]
    tensors = {size.partition(".size(")[0] for size in differing}
    if len(tensors) != 1:
        return failed
    marks = (
        [marks[size] for size in (*old, *new) if size in marks and size in differing] for marks in (old, new)
    )
    texts = [" and ".join(dict.fromkeys(each)) or UNMARKED for each in marks]
    return dataclasses.replace(failed, source=tensors.pop(), old=texts[0], new=texts[1])


def is_static(mark: str) -> bool:
    """Return True if a mark keeps a size constant."""
    return mark.startswith("mark_static(")


def is_limited(mark: str) -> bool:
    """Return True if a mark gives the smallest or largest size."""
    return ", min=" in mark or ", max=" in mark
