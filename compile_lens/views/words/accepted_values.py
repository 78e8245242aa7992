"""Words for the sizes and numbers that a variant accepts."""

from __future__ import annotations

import re

from compile_lens.record.compilation import DynamicDim
from compile_lens.record.failed_guards import compiled_for
from compile_lens.record.messages import plain_source

_MAX_LINES = 3


def takes(symbol: DynamicDim) -> str:
    """Return the sizes that the variant's guards allow: ``for any size from 4 to 1024 where x.size(0) % 2 == 0``."""
    if symbol.constraints is None:
        return "with guards that are not known"
    source = plain_source(symbol.source)
    own, others = [], []
    for condition in symbol.constraints:
        about, words = compiled_for(condition)
        if about == source:
            own.append(words)
        elif condition == f"not math.isnan({source})":
            own.append("other than nan")
        else:
            others.append(condition)
    number = "float" if symbol.symbol.startswith(_FLOATS) else "int"
    kind = "stride" if ".stride(" in source else "size" if symbol.is_dimension else number
    phrase = " ".join(filter(None, (f"for any {kind}", _joined(own))))
    more = f" and {len(others) - _MAX_LINES} more" if len(others) > _MAX_LINES else ""
    return f"{phrase} where {' and '.join(others[:_MAX_LINES])}{more}" if others else phrase


def _joined(own: list[str]) -> str:
    """Join conditions, with ``at least 4`` and ``at most 9`` as ``from 4 to 9``; ranges come first."""
    low = next((words for words in own if words.startswith(_LOW)), "")
    high = next((words for words in own if words.startswith(_HIGH)), "")
    rest = [words for words in own if words not in (low, high)]
    if low and high:
        return _and([f"from {low.removeprefix(_LOW)} to {high.removeprefix(_HIGH)}", *rest])
    ranges = [f"from {words}" for words in rest if _RANGE.fullmatch(words)]
    others = [words for words in rest if not _RANGE.fullmatch(words)]
    return _and([*ranges, *(f"of {end}" for end in (low, high) if end), *others])


def _and(parts: list[str]) -> str:
    return " and ".join(parts)


_FLOATS = ("zf", "zuf")
"""Prefixes of torch's names for float symbols."""
_LOW, _HIGH = "at least ", "at most "
_RANGE = re.compile(r"\S+ to \S+")
